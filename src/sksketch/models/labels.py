"""What linear classifiers share: labels from scores, weights of classes, labels as plain data."""

from __future__ import annotations

import json
from typing import Any, Protocol

import numpy as np
import scipy.special
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight

from sksketch._typing import Array
from sksketch.state.guard import Guarded


class _Scored(Protocol):
    """A fitted classifier with one column of scores for two labels, or one for each of several."""

    classes_: Array
    class_weight: Any

    def _scores(self, X: Any) -> Array: ...

    def _predictions(self, scores: Array) -> Array: ...


class LinearClassifier(Guarded, ClassifierMixin):
    """A classifier whose scores are linear in the columns."""

    def decision_function(self: _Scored, X: Any) -> Array:
        """Return the scores of rows: positive for the second of two labels, or one per label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self: _Scored, X: Any) -> Array:
        """Return the label of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        return self._predictions(self._scores(X))

    def _predictions(self: _Scored, scores: Array) -> Array:
        if scores.shape[1] == 1:
            # A stream may have shown only one of its labels so far.
            return np.asarray(self.classes_[(scores[:, 0] > 0).astype(int) % len(self.classes_)])
        return np.asarray(self.classes_[np.argmax(scores, axis=1)])

    def _class_weights(self: _Scored, y: Any) -> Array | float:
        """Return the weight that its label gives to each row."""
        if self.class_weight is None:
            return 1.0
        labels = np.asarray(y)
        by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
        return np.asarray(by_class[np.argmax(labels[:, None] == self.classes_, axis=1)])


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
