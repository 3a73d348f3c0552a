"""The rows of a source that fit least, with the columns that make them outliers."""

from __future__ import annotations

import heapq
import json
from typing import Any, NamedTuple

import numpy as np
import typer

from sksketch._typing import Array
from sksketch.cli.options import Rows, Run, Spread, check_place
from sksketch.cli.printing import echo
from sksketch.cli.running import open_source
from sksketch.cli.saving import Saved, blaming, of_source, read, write
from sksketch.cli.show import progress_bar
from sksketch.cli.tables.applying import rows_to_answer
from sksketch.run import fit_stream
from sksketch.streams.files import STDIN
from sksketch.time import StreamingOutlierDetector

# Columns that are named beside a row.
NAMED = 3


class Found(NamedTuple):
    """A row that fits little: ordered by how little, later ones first where they are equal."""

    distance: float
    row: int
    ids: tuple[str, ...]
    columns: list[tuple[str, float]]
    outlier: bool


def list_anomalies(
    rows: Rows,
    model: str | None,
    contamination: float,
    top: int,
    ids: list[str],
    save: str | None,
    *,
    as_json: bool,
) -> None:
    """Print the rows that fit least, by a saved detector or by one that is learned from them."""
    if model is None:
        saved = _learned(rows, contamination, save)
    else:
        if save is not None:
            raise typer.BadParameter("--save is for a detector that is learned; leave --model out")
        with blaming(model):
            saved = read(model)
            if not isinstance(saved.model, StreamingOutlierDetector):
                raise typer.BadParameter(
                    f"{model} holds a {saved.model.kind}, and a detector is needed; save one with "
                    "--save"
                )
    found, n_rows, n_outliers = _farthest(saved, rows, top, ids)
    if as_json:
        plain = [
            {"row": f.row, "score": -f.distance, "outlier": f.outlier}
            | dict(zip(ids, f.ids, strict=True))
            | {"columns": dict(f.columns)}
            for f in found
        ]
        facts = {"rows": n_rows, "outliers": n_outliers, "offset": saved.model.offset_}
        echo(json.dumps(facts | {"top": plain}))
        return
    below = f"with scores below {saved.model.offset_:.4g}"
    echo(f"{n_outliers:,} of {n_rows:,} rows are outliers, {below}")
    for f in found:
        named = ", ".join(f"{name} {part:.3g}" for name, part in f.columns)
        label = " ".join([f"row {f.row}", *(f"{n}={v}" for n, v in zip(ids, f.ids, strict=True))])
        mark = "" if f.outlier else "  (no outlier)"
        echo(f"  {label}: {-f.distance:.4g} by {named}{mark}")


def _learned(rows: Rows, contamination: float, save: str | None) -> Saved:
    """Return a detector of all rows, with the threshold of their scores as they came."""
    if STDIN in rows.sources:
        raise typer.BadParameter("rows of stdin come once; give a file, or --model")
    if save is not None:
        check_place(save)
    run = Run(output="-", quiet=True)
    source = open_source(rows, None, run, Spread())
    detector = StreamingOutlierDetector(contamination=contamination)
    with progress_bar(shown=True) as bar:
        fit_stream(detector, source, progress=bar)
    saved = of_source(detector, source)
    if save is not None:
        write(saved, save)
    return saved


def _farthest(saved: Saved, rows: Rows, top: int, ids: list[str]) -> tuple[list[Found], int, int]:
    """Return the rows that fit least, the number of all, and of those that are outliers."""
    detector: Any = saved.model
    answered = rows_to_answer(saved, rows, ids)
    names = [str(name) for name in saved.names or range(detector.n_features_in_)]
    vars(detector).pop("feature_names_in_", None)
    kept: list[Found] = []
    n_rows = n_outliers = 0
    for X, beside in answered.blocks():
        if not X.shape[0]:
            continue
        scores = detector.score_samples(X)
        outliers = scores < detector.offset_
        least = np.argsort(scores, kind="stable")[:top]
        parts: Array = detector.contributions(X[least])
        for at, i in enumerate(least.tolist()):
            columns = np.argsort(parts[at], kind="stable")[:NAMED]
            texts = tuple(_text(beside[name][i]) for name in ids)
            named = [(names[j], float(parts[at, j])) for j in columns.tolist()]
            kept.append(Found(-float(scores[i]), n_rows + i, texts, named, bool(outliers[i])))
        kept = heapq.nsmallest(top, kept, key=lambda f: (-f.distance, f.row))
        n_rows += X.shape[0]
        n_outliers += int(np.count_nonzero(outliers))
    if not n_rows:
        raise typer.BadParameter("the source gave no rows; give one that has some")
    return kept, n_rows, n_outliers


def _text(value: Any) -> str:
    """Return a value as a table has it: CSV is read as floats, also where all are whole.

    >>> _text(10293.0), _text(0.5), _text("a")
    ('10293', '0.5', 'a')
    """
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value)
