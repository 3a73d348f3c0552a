"""Answers of a fitted model for all rows of a source: coordinates, predictions, or one score."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import numpy as np

from sksketch._typing import Array, PathLike
from sksketch.models.scikit_learn import is_classifier
from sksketch.run.progress import Progress, reporting
from sksketch.state.disk import replacing
from sksketch.streams import RowSource, open_rows
from sksketch.streams.blocks import Block, concatenated
from sksketch.streams.columns import NotNumericError
from sksketch.streams.writing import as_columns, is_known, writing


def transform_stream(
    model: Any, source: object, out: PathLike | None = None, progress: bool | Progress = True
) -> Any:
    """Return or write what ``model.transform`` gives for all rows of a source.

    Parameters
    ----------
    model : fitted transformer or pipeline
        Any with ``transform``.
    source : RowSource or anything that `open_rows` takes
        Rows. Where the model knows its columns by name, those of a table are chosen by name.
    out : path, default=None
        A file to write, block by block: ``.npy .npz .parquet .csv``. It stands under its name once
        it is whole. By default the result is returned.
    progress : bool or callable, default=True
        True writes one line to stderr. A callable gets the rows done and all rows.

    Returns
    -------
    array, CSR matrix or None
        The rows, or None if they were written to a file.

    See Also
    --------
    predict_stream : Predictions.
    score_stream : How good they are.
    fit_stream : Learns from all rows.

    Examples
    --------
    >>> from sksketch import StreamingPCA, datasets, fit_stream
    >>> rows = datasets.low_rank_plus_noise(2_000, 30, rank=2, noise=0.01, seed=0)
    >>> pca = fit_stream(StreamingPCA(2), rows, progress=False)
    >>> transform_stream(pca, rows, progress=False).shape
    (2000, 2)
    """
    return _answers(model, "transform", source, out, progress)


def predict_stream(
    model: Any, source: object, out: PathLike | None = None, progress: bool | Progress = True
) -> Any:
    """Return or write what ``model.predict`` gives for all rows of a source.

    Parameters
    ----------
    model : fitted classifier, regression or pipeline
        Any with ``predict``.
    source : RowSource or anything that `open_rows` takes
        Rows. Where the model knows its columns by name, those of a table are chosen by name.
    out : path, default=None
        A file to write, block by block: ``.npy .npz .parquet .csv``. It stands under its name once
        it is whole. By default the result is returned.
    progress : bool or callable, default=True
        True writes one line to stderr. A callable gets the rows done and all rows.

    Returns
    -------
    array or None
        The predictions, or None if they were written to a file.

    See Also
    --------
    transform_stream : Coordinates.
    score_stream : How good predictions are.

    Examples
    --------
    >>> from sksketch import StreamingRidge
    >>> X = np.arange(10.0).reshape(5, 2)
    >>> model = StreamingRidge(0.0).fit(X, X[:, 0])
    >>> predict_stream(model, X, progress=False).round(6)
    array([0., 2., 4., 6., 8.])
    """
    return _answers(model, "predict", source, out, progress)


def score_stream(
    model: Any, source: object, out: PathLike | None = None, progress: bool | Progress = True
) -> float:
    """Return what ``model.score`` would give for all rows of a source, block by block.

    Parameters
    ----------
    model : fitted estimator or pipeline
        A classifier, whose score is its accuracy; a regression, R2; or any with
        ``score_samples``, the mean of which it is.
    source : RowSource or anything that `open_rows` takes
        Rows, with targets for classifiers and regressions.
    out : path, default=None
        A file for the predictions or scores of the rows: ``.npy .npz .parquet .csv``.
    progress : bool or callable, default=True
        True writes one line to stderr. A callable gets the rows done and all rows.

    Returns
    -------
    float
        The score.

    See Also
    --------
    predict_stream : The predictions.

    Examples
    --------
    >>> from sksketch import StreamingRidge
    >>> X = np.arange(10.0).reshape(5, 2)
    >>> model = StreamingRidge(0.0).fit(X, X[:, 0])
    >>> round(score_stream(model, (X, X[:, 0]), progress=False), 6)
    1.0
    """
    method = "score_samples" if hasattr(model, "score_samples") else "predict"
    tally = _Mean() if method == "score_samples" else _tally(model)
    _answers(model, method, source, out, progress, tally)
    return tally.result()


def open_for(model: Any, source: object) -> RowSource:
    """Return rows to give to a fitted model, opened as it takes them."""
    if isinstance(source, RowSource):
        return source
    first = model.steps[0][1] if hasattr(model, "steps") else model
    raw = bool(getattr(first, "takes_tables", False))
    names = getattr(first, "feature_names_in_", None)
    wanted = None if names is None else [str(name) for name in names]
    try:
        rows = open_rows(source, raw=raw)
    except NotNumericError:
        # Perhaps a column that the model does not want. What is read once has lost rows by now.
        if wanted is None or isinstance(source, Iterator):
            raise
        return open_rows(source, columns=wanted, raw=raw)
    if wanted is None or rows.feature_names is None or rows.reads_once:
        return rows
    return rows if rows.feature_names == wanted else open_rows(source, columns=wanted, raw=raw)


def answer_blocks(model: Any, method: str, rows: RowSource) -> Iterator[tuple[Block, Any]]:
    """Yield the blocks of a source, each with the model's answer."""
    answer = getattr(model, method)
    for block in rows.blocks():
        with warnings.catch_warnings():
            # Blocks are bare arrays, of the columns that the model knows by name.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            yield block, answer(block.X)


def _answers(
    model: Any,
    method: str,
    source: object,
    out: PathLike | None,
    progress: bool | Progress,
    tally: _Tally | None = None,
) -> Any:
    if not hasattr(model, method):
        raise TypeError(f"{type(model).__name__} has no {method}; give a fitted model that has")
    name = None if out is None else os.fspath(out)
    if name is not None and not is_known(str(name)):
        raise ValueError(f"{name}: give a name that ends in .npy, .npz, .parquet or .csv")
    rows = open_for(model, source)
    parts: list[Any] = []
    n_done = 0
    with reporting(progress) as report, ExitStack() as stack:
        writer = None
        if name is not None:
            file = stack.enter_context(replacing(name))
            writer = stack.enter_context(writing(str(name), file))
        report(0, rows.n_rows)
        for block, answer in answer_blocks(model, method, rows):
            if tally is not None:
                tally.add(block, answer)
            if writer is not None:
                values = np.asarray(answer.toarray() if hasattr(answer, "toarray") else answer)
                writer.write(as_columns(_names(model, method, values), values))
            elif tally is None:
                parts.append(answer)
            n_done += int(block.X.shape[0])
            report(n_done, rows.n_rows)
        if not n_done:
            raise ValueError("the source gave no rows; give one that has some")
    return concatenated(parts) if parts else None


def _names(model: Any, method: str, values: Array) -> list[str]:
    n_columns = 1 if values.ndim == 1 else values.shape[1]
    if method == "transform" and hasattr(model, "get_feature_names_out"):
        return [str(name) for name in model.get_feature_names_out()]
    word = "prediction" if method == "predict" else "score"
    return [word] if n_columns == 1 else [f"{word}{i}" for i in range(n_columns)]


class _Tally(Protocol):
    """A score, added up block by block."""

    def add(self, block: Block, answer: Array) -> None:
        """Add the answers for some rows."""

    def result(self) -> float:
        """Return the score."""


class _Mean:
    """The mean of numbers of the rows."""

    def __init__(self) -> None:
        self._sum, self._n = 0.0, 0

    def add(self, block: Block, answer: Array) -> None:
        self._sum += float(np.sum(answer))
        self._n += len(answer)

    def result(self) -> float:
        return self._sum / self._n


class _Accuracy(_Mean):
    """The share of labels predicted rightly."""

    def add(self, block: Block, answer: Array) -> None:
        super().add(block, np.asarray(answer) == np.asarray(_targets(block)))


class _R2:
    """R2, the mean over targets."""

    def __init__(self) -> None:
        self._n = 0
        self._errors: Any = 0.0
        self._origin: Any = None
        self._sums: Any = 0.0
        self._squares: Any = 0.0

    def add(self, block: Block, answer: Array) -> None:
        y = np.asarray(_targets(block), dtype=np.float64)
        if self._origin is None:
            self._origin = y[0]
        self._errors = self._errors + ((y - np.asarray(answer)) ** 2).sum(axis=0)
        away = y - self._origin
        self._sums, self._squares = self._sums + away.sum(axis=0), self._squares + (away**2).sum(0)
        self._n += len(y)

    def result(self) -> float:
        spread = self._squares - self._sums**2 / self._n
        # As in scikit-learn, predictions of targets that are all the same are perfect or not.
        same = np.where(self._errors == 0.0, 1.0, 0.0)
        shares = 1.0 - self._errors / np.where(spread > 0, spread, 1.0)
        return float(np.mean(np.where(spread > 0, shares, same)))


def _tally(model: Any) -> _Tally:
    return _Accuracy() if is_classifier(model) else _R2()


def _targets(block: Block) -> Array:
    if block.y is None:
        raise ValueError("the rows have no targets to compare predictions with; name the target")
    return block.y
