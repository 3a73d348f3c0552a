"""Rating a fitted model on rows that it has not learned from."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.models.quality import LabelRating, RegressionRating
from sksketch.run.progress import Progress
from sksketch.streams import RowSource


def rate(model: Any, rows: RowSource, progress: Progress | None = None) -> dict[str, float]:
    """Predict all rows of a source and say how good that was, beside a constant.

    Parameters
    ----------
    model : classifier or regression of sksketch
        Fitted. It gets the result as ``holdout_quality_``, and its file as well.
    rows : RowSource
        With targets.
    progress : callable, default=None
        Gets the rows done and all rows.

    Returns
    -------
    dict
        Rows, R2 and RMSE of numbers, or accuracy and log loss of labels; those of a constant,
        the mean target or the commonest label learned from, have names with ``baseline_``.

    Examples
    --------
    >>> from sksketch import StreamingRidge, open_rows
    >>> X = np.arange(20.0).reshape(10, 2) ** 2
    >>> model = StreamingRidge(1e-6).fit(X[:8], X[:8, 0])
    >>> quality = rate(model, open_rows(np.column_stack([X[8:], X[8:, 0]]), target=2))
    >>> quality["rows"], round(quality["r2"], 3)
    (2, 1.0)
    """
    classifies = hasattr(model, "classes_")
    rating: Any = LabelRating(model.baseline_) if classifies else RegressionRating(model.baseline_)
    n_done = 0
    for block in rows.blocks():
        weights = block.sample_weight
        counted = np.ones(block.X.shape[0]) if weights is None else np.asarray(weights)
        y = np.asarray(block.y)
        with warnings.catch_warnings():
            # Blocks are bare arrays, of the columns that the model knows by name.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            if classifies:
                rating.add(*_labels(model, block.X, y.ravel()), counted)
            else:
                predicted = np.asarray(model.predict(block.X), dtype=np.float64)
                rating.add(y.reshape(len(y), -1), predicted.reshape(len(y), -1), counted)
        n_done += len(y)
        if progress is not None:
            progress(n_done, rows.n_rows)
    if not n_done:
        raise ValueError("no row was kept apart; enlarge the share, or give more rows")
    quality: dict[str, float] = rating.result()
    model.holdout_quality_ = quality
    return quality


def _labels(model: Any, X: Any, y: Array) -> tuple[Array, Array, Array | None]:
    """Return numbers of true and predicted labels, and probabilities where there are any."""
    classes = model.classes_
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    codes = np.where(classes[places] == y, places, -1)
    predicted = np.searchsorted(classes, model.predict(X))
    return codes, predicted, model.predict_proba(X) if hasattr(model, "predict_proba") else None
