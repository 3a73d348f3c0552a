"""Labels of linear classifiers: from scores, as weights, and as plain data."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy.special
from sklearn.utils.class_weight import compute_class_weight

from sksketch._typing import Array, OneRow, Rows, RowsLike
from sksketch.models.runner import lazy


class Scored(Protocol):
    """A fitted classifier with one column of scores for two labels, or one for each of several."""

    classes_: Array

    def _scores(self, X: RowsLike) -> Array: ...


class WithLoss(Protocol):
    """A classifier that learns with a loss."""

    loss: str


def has_probabilities(*losses: str) -> Callable[[WithLoss], bool]:
    """Return a check that the scores of a classifier are logarithms of odds."""

    def check(classifier: WithLoss) -> bool:
        if classifier.loss in losses:
            return True
        allowed = " or ".join(map(repr, losses))
        raise AttributeError(f"probabilities need loss={allowed}, not {classifier.loss!r}")

    return check


# Methods of linear classifiers: they take them into their classes by name.


@lazy
def decision_function(self: Scored, X: Rows) -> Array:
    """Return the scores of rows: positive for the second of two labels, or one per label.

    Parameters
    ----------
    X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    array of shape (n_samples,) or (n_samples, n_classes)
        Scores.
    """
    scores = self._scores(X)
    return scores[:, 0] if scores.shape[1] == 1 else scores


@lazy
def predict(self: Scored, X: Rows) -> Array:
    """Return the label of each row.

    Parameters
    ----------
    X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    array of shape (n_samples,)
        Labels.
    """
    scores = self._scores(X)
    return predicted(self.classes_, scores)


class Certain(Scored, Protocol):
    """A classifier whose scores are logarithms of odds, of one label or beside one another."""

    _is_softmax: bool

    def _scores_of_one(self, x: OneRow) -> Array: ...


@lazy
def predict_proba(self: Certain, X: Rows) -> Array:
    """Return the probability of each label, for the logistic loss.

    Parameters
    ----------
    X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    array of shape (n_samples, n_classes)
        Probabilities, in the order of ``classes_``.
    """
    return probabilities(self._scores(X), softmax=self._is_softmax)


@lazy
def predict_log_proba(self: Certain, X: Rows) -> Array:
    """Return the logarithm of the probability of each label, for the logistic loss.

    Parameters
    ----------
    X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    array of shape (n_samples, n_classes)
        Logarithms, in the order of ``classes_``.
    """
    scores = self._scores(X)
    if scores.shape[1] == 1:
        return np.asarray(scipy.special.log_expit(np.hstack([-scores, scores])))
    if self._is_softmax:
        return np.asarray(scipy.special.log_softmax(scores, axis=1))
    return np.asarray(np.log(one_against_rest(scores)))


def predict_proba_one(self: Certain, x: OneRow) -> dict[Any, float]:
    """Return the probability of each label of one row, for the logistic loss.

    Parameters
    ----------
    x : dict of names and numbers, or sequence of numbers
        The row.

    Returns
    -------
    dict of labels and probabilities
        Empty before anything was learned.
    """
    if not hasattr(self, "classes_"):
        return {}
    scores = self._scores_of_one(x)
    if scores.shape[1] == 1:
        # Arrays of one number take longer than the row.
        positive = float(scipy.special.expit(scores.item(0)))
        found = [1.0 - positive, positive]
    else:
        found = probabilities(scores, softmax=self._is_softmax)[0].tolist()
    return dict(zip(self.classes_.tolist(), found, strict=False))


def refuse_balanced(class_weight: object) -> None:
    """Refuse weights that need all labels at once."""
    if class_weight == "balanced":
        raise ValueError(
            "class_weight='balanced' needs all labels at once; pass a dictionary, or call fit"
        )


def probabilities(scores: Array, *, softmax: bool) -> Array:
    """Return the probability of each label, where several are of the softmax or by themselves.

    >>> probabilities(np.zeros((1, 4)), softmax=True)
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    if softmax and scores.shape[1] > 1:
        return np.asarray(scipy.special.softmax(scores, axis=1))
    return one_against_rest(scores)


def predicted(classes: Array, scores: Array) -> Array:
    """Return the label of each row of scores.

    >>> predicted(np.array(["ham", "spam"]), np.array([[-1.0], [2.0]]))
    array(['ham', 'spam'], dtype='<U4')
    """
    if scores.shape[1] == 1:
        # A stream may have shown only one of its labels so far.
        return np.asarray(classes[(scores[:, 0] > 0).astype(int) % len(classes)])
    return np.asarray(classes[np.argmax(scores, axis=1)])


def predicted_one(classes: Array, scores: Array) -> Any:
    """Return the label of one row of scores, as `predicted` does and without arrays.

    >>> predicted_one(np.array(["ham", "spam"]), np.array([2.0]))
    'spam'
    """
    if len(scores) == 1:
        return classes.item(int(scores.item(0) > 0) % len(classes))
    return classes.item(int(scores.argmax()))


def weights_by_class(
    class_weight: dict[Any, float] | str | None, classes: Array, y: Rows
) -> Array | float:
    """Return the weight that its label gives to each row."""
    if class_weight is None:
        return 1.0
    labels = np.asarray(y)
    by_class = compute_class_weight(class_weight, classes=classes, y=labels)
    return np.asarray(by_class[np.argmax(labels[:, None] == classes, axis=1)])


def one_against_rest(scores: Array) -> Array:
    """Return the probability of each label from logistic scores.

    >>> one_against_rest(np.array([[0.0]]))
    array([[0.5, 0.5]])
    """
    positive = scipy.special.expit(scores)
    if scores.shape[1] == 1:
        return np.column_stack([1.0 - positive[:, 0], positive[:, 0]])
    return np.asarray(positive / positive.sum(axis=1, keepdims=True))


def labels_text(classes: Array) -> str:
    """Return labels as text for a saved state.

    >>> labels_of(labels_text(np.array(["ham", "spam"])))
    array(['ham', 'spam'], dtype='<U4')
    """
    return json.dumps({"labels": classes.tolist(), "dtype": classes.dtype.str})


def labels_of(text: str) -> Array:
    """Return the labels that `labels_text` has written."""
    found = json.loads(text)
    return np.array(found["labels"], dtype=np.dtype(found["dtype"]))
