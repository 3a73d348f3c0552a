"""The command apply: scores or predictions of rows, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Annotated, Any

import numpy as np
import typer

from sksketch._typing import Array, Matrix
from sksketch.cli.options import Output, Rows
from sksketch.cli.running import keep_sources, open_source
from sksketch.cli.saving import STDOUT, blaming, opened, read
from sksketch.cli.show import progress_bar
from sksketch.models.base import Estimator
from sksketch.online import OnlineNewtonClassifier
from sksketch.reduction import ReducedClassifier
from sksketch.streams import RowSource
from sksketch.streams.writing import ParquetWriter


def apply(
    model: Annotated[str, typer.Argument(help="A saved model.")],
    rows: Rows,
    output: Output,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Write the scores or predictions of rows: .npy, .npz, .parquet or .csv, or CSV to stdout."""
    with blaming(model):
        _apply(model, rows, output, quiet)


def _apply(model: str, rows: Rows, output: str, quiet: bool) -> None:
    saved = read(model)
    fitted = saved.model
    if not hasattr(fitted, "transform") and not hasattr(fitted, "predict"):
        raise typer.BadParameter(
            f"{model} is a sketch; read a model out of it with pca, svd or ridge"
        )
    check_output(output)
    keep_sources(rows, output)
    source = open_source(rows, names=saved.names, width=fitted.n_features_in_)
    if source.n_features != fitted.n_features_in_:
        raise typer.BadParameter(
            f"the rows have {source.n_features} columns and the model {fitted.n_features_in_}; "
            "choose them with --columns"
        )
    write_answers(fitted, source, output, quiet=quiet)


def check_output(output: str) -> None:
    """Refuse a name that does not tell the format."""
    if output != STDOUT and not output.endswith((".csv", *WRITERS)):
        raise typer.BadParameter(
            f"{output}: give a name that ends in .npy, .npz, .parquet or .csv, or -"
        )


def write_answers(fitted: Any, source: RowSource, output: str, *, quiet: bool) -> None:
    """Write what a fitted model says of all rows of a source."""
    check_output(output)
    header = _header(fitted)
    # Columns were chosen by name; the blocks are bare arrays.
    vars(fitted).pop("feature_names_in_", None)
    answer = _answer(fitted)
    with progress_bar(shown=not quiet) as progress, opened(output) as file:
        kinds = [kind for suffix, kind in WRITERS.items() if output.endswith(suffix)]
        writer = (kinds or [_Csv])[0](file, header)
        n_done = 0
        progress(n_done, source.n_rows)
        for block in source.blocks():
            writer.write(np.asarray(answer(block.X)))
            n_done += block.X.shape[0]
            progress(n_done, source.n_rows)
        writer.close()


def _answer(fitted: Estimator) -> Callable[[Any], Any]:
    """Return what gives the columns to write."""
    if isinstance(fitted, OnlineNewtonClassifier | ReducedClassifier):

        def labels_and_scores(X: Matrix) -> Array:
            scores = np.asarray(fitted.decision_function(X)).reshape(X.shape[0], -1)
            return np.column_stack([fitted.predict(X), scores])

        return labels_and_scores
    answer: Callable[[Any], Any] = getattr(fitted, "transform", None) or fitted.predict
    return answer


def _header(fitted: Estimator) -> list[str]:
    if hasattr(fitted, "transform"):
        return [str(name) for name in fitted.get_feature_names_out()]
    if isinstance(fitted, OnlineNewtonClassifier | ReducedClassifier):
        classes = [f"{label:g}" for label in fitted.classes_]
        scores = ["score"] if len(classes) == 2 else [f"score_{label}" for label in classes]
        return ["prediction", *scores]
    n_targets = 1 if fitted.coef_.ndim == 1 else len(fitted.coef_)
    return ["prediction"] if n_targets == 1 else [f"prediction{i}" for i in range(n_targets)]


class _Npy:
    """An .npy file of rows whose number is known at the end."""

    def __init__(self, file: IO[bytes], header: list[str]) -> None:
        self._file = file
        self._n_rows = 0
        self._like: Array | None = None

    def write(self, rows: Array) -> None:
        if self._like is None:
            self._like = rows[:0]
            self._write_header()
        self._file.write(np.ascontiguousarray(rows).tobytes())
        self._n_rows += len(rows)

    def close(self) -> None:
        if self._like is not None:
            # The format leaves room for a longer number of rows.
            self._file.seek(0)
            self._write_header()

    def _write_header(self) -> None:
        assert self._like is not None
        header = np.lib.format.header_data_from_array_1_0(self._like)
        shape = (self._n_rows, *self._like.shape[1:])
        # An empty array counts as ordered both ways, but its rows come one after the other.
        header |= {"shape": shape, "fortran_order": False}
        np.lib.format.write_array_header_1_0(self._file, header)


class _Csv:
    """CSV with a line of names, and numbers with all their digits."""

    def __init__(self, file: IO[bytes], header: list[str]) -> None:
        self._file = file
        self._file.write((",".join(header) + "\n").encode())

    def write(self, rows: Array) -> None:
        digits = "%.9g" if rows.dtype == np.float32 else "%.17g"
        np.savetxt(self._file, rows.reshape(len(rows), -1), fmt=digits, delimiter=",")

    def close(self) -> None:
        self._file.flush()


class _Npz:
    """An .npz file with one array X, which is gathered before it is written."""

    def __init__(self, file: IO[bytes], header: list[str]) -> None:
        self._file = file
        self._parts: list[Array] = []

    def write(self, rows: Array) -> None:
        self._parts.append(rows)

    def close(self) -> None:
        np.savez(self._file, X=np.concatenate(self._parts))


# By the end of the name; other names are CSV.
WRITERS: dict[str, Any] = {".npy": _Npy, ".npz": _Npz, ".parquet": ParquetWriter}
