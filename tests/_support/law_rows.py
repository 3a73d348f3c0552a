"""The rows that a sketch has seen, as dense arrays: the oracle of the laws."""

from __future__ import annotations

import numpy as np

from sksketch.sketches.forgetting import age_weights


class Rows:
    """The rows that a sketch has seen and the weights they have now: the dense oracle."""

    def __init__(self, n_features):
        self.X = np.zeros((0, n_features))
        self.weights = np.zeros(0)

    def update(self, X, weights=None, decay=1.0):
        new = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
        self.X = np.concatenate([self.X, np.asarray(X, dtype=np.float64)])
        older = self.weights * decay ** len(X)
        self.weights = np.concatenate([older, new * age_weights(len(X), decay)])
        return self

    def last(self, sketch):
        """Return the rows that a sketch is about: all, or those of its window."""
        n = getattr(sketch, "rows", None)
        found = Rows(self.X.shape[1])
        found.X = self.X if n is None else self.X[-n:]
        found.weights = self.weights if n is None else self.weights[-n:]
        return found

    def merge(self, other):
        self.X = np.concatenate([self.X, other.X])
        self.weights = np.concatenate([self.weights, other.weights])
        return self

    @property
    def mean(self):
        total = self.weights.sum()
        if not total > 0:
            return np.zeros(self.X.shape[1])
        # Around one of the rows, so that equal rows have exactly that mean.
        return self.X[0] + self.weights @ (self.X - self.X[0]) / total

    def matrix(self, centered=False):
        """Return A: rows scaled by the roots of their weights, around their mean if asked."""
        X = self.X - self.mean if centered else self.X
        return np.sqrt(self.weights)[:, None] * X
