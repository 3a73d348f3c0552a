"""Coordinates or predictions of rows, block by block, to a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import typer

from sksketch._typing import Array, Matrix
from sksketch.cli.options import Rows, check_place
from sksketch.cli.printing import echo, label_text
from sksketch.cli.running import keep_sources
from sksketch.cli.saving import STDOUT, Saved, blaming, opened, read
from sksketch.cli.show import progress_bar, warnings_in_one_line
from sksketch.cli.tables.applying import Answered, rows_to_answer
from sksketch.models.base import Estimator
from sksketch.online import OnlineNewtonClassifier
from sksketch.reduction import ReducedClassifier
from sksketch.streams import RowSource
from sksketch.streams.writing import as_columns, is_known, writing

CLASSIFIERS = (OnlineNewtonClassifier, ReducedClassifier)


def apply_saved(model: str, rows: Rows, output: str, beside: list[str], *, quiet: bool) -> None:
    """Write what a saved model says of rows, with other columns of them beside."""
    with blaming(model):
        _apply(model, rows, output, beside, quiet)


def _apply(model: str, rows: Rows, output: str, beside: list[str], quiet: bool) -> None:
    saved = read(model)
    fitted = saved.model
    if not hasattr(fitted, "transform") and not hasattr(fitted, "predict"):
        raise typer.BadParameter(
            f"{model} is a sketch; read a model out of it with pca, svd or ridge"
        )
    check_output(output)
    if beside and output.endswith((".npy", ".npz")):
        raise typer.BadParameter(
            f"{output} holds numbers only; --id and --keep need .csv or .parquet"
        )
    keep_sources(rows, output)
    found = rows_to_answer(saved, rows, beside)
    _write(saved, found, output, quiet=quiet)
    if found.n_missing and not quiet:
        echo(f"sksketch: {found.n_missing:,} missing values were filled", err=True)
    if found.n_dropped:
        hint = "" if beside else "; --id NAME tells which are left"
        echo(f"sksketch: {found.n_dropped:,} rows with missing values left out{hint}", err=True)


def check_output(output: str) -> None:
    """Refuse a name that does not tell the format, or that cannot be written to."""
    if output != STDOUT and not is_known(output):
        raise typer.BadParameter(
            f"{output}: give a name that ends in .npy, .npz, .parquet or .csv, or -"
        )
    check_place(output)


def write_answers(fitted: Any, source: RowSource, output: str, *, quiet: bool) -> None:
    """Write what a fitted model says of all rows of a source."""
    check_output(output)
    _write(Saved(fitted, source.feature_names), Answered.of(source), output, quiet=quiet)


def _write(saved: Saved, rows: Answered, output: str, *, quiet: bool) -> None:
    fitted = saved.model
    # Columns were chosen by name; the blocks are bare arrays.
    vars(fitted).pop("feature_names_in_", None)
    answer = _answer(fitted)
    with (
        progress_bar(shown=not quiet) as progress,
        warnings_in_one_line(),
        opened(output) as file,
        writing(output, file) as writer,
    ):
        n_done = 0
        progress(n_done, rows.n_rows)
        for X, beside in rows.blocks():
            if X.shape[0]:
                writer.write({**beside, **answer(X)})
            n_done += X.shape[0]
            progress(n_done, rows.n_rows)
        if not n_done:
            raise typer.BadParameter("no row is left to write")


def _answer(fitted: Estimator) -> Callable[[Any], dict[str, Array]]:
    """Return what gives the columns to write."""
    names = _names(fitted)
    if isinstance(fitted, CLASSIFIERS):

        def labels_and_scores(X: Matrix) -> dict[str, Array]:
            scores = np.asarray(fitted.decision_function(X)).reshape(X.shape[0], -1)
            return {names[0]: np.asarray(fitted.predict(X)), **as_columns(names[1:], scores)}

        return labels_and_scores
    answer: Callable[[Any], Any] = getattr(fitted, "transform", None) or fitted.predict
    return lambda X: as_columns(names, np.asarray(answer(X)))


def _names(fitted: Estimator) -> list[str]:
    if hasattr(fitted, "transform"):
        return [str(name) for name in fitted.get_feature_names_out()]
    if isinstance(fitted, CLASSIFIERS):
        classes = [label_text(label) for label in fitted.classes_]
        scores = ["score"] if len(classes) == 2 else [f"score_{label}" for label in classes]
        return ["prediction", *scores]
    n_targets = 1 if fitted.coef_.ndim == 1 else len(fitted.coef_)
    return ["prediction"] if n_targets == 1 else [f"prediction{i}" for i in range(n_targets)]
