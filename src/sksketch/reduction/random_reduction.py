"""Rows of very many columns to few coordinates, by a random projection."""

from __future__ import annotations

import json
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sksketch._typing import Array, PathLike
from sksketch.exceptions import NotMergeableError, StateFormatError
from sksketch.models.callbacks import CallbackSupport
from sksketch.models.checks import checked_rows, host_rows, or_as_before, seed_of
from sksketch.reduction.reduction_base import Reduction, check_reduction
from sksketch.reduction.residual import Blocks
from sksketch.reduction.subspace import ColumnSample, LinearMap, RandomMap
from sksketch.sketches import make_sketch
from sksketch.sketches.projections.projection import Projection
from sksketch.state.persistence import State, write_state

# Of a saved projection: more than so many have at least as many columns.
MOST_COMPONENTS = 2**20


class RandomReduction(Reduction, CallbackSupport, BaseEstimator):
    """Coordinates of rows by a random projection that knows nothing of the data.

    Parameters
    ----------
    n_components : int
        Number of coordinates.
    operator : {"countsketch", "gaussian", "srht", "sample"}
        The projection: one sign for each column, normal numbers, a randomised Hadamard
        transform, or some of the columns themselves. The sketch of the same name makes the
        first three.
    random_state : int, RandomState or None
        Chooses the projection.

    Attributes
    ----------
    n_components_ : int
        Number of coordinates.
    components_ : array of shape (n_components_, n_features)
        The projection, computed when read.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((100, 2000))
    >>> Z = RandomReduction(n_components=400, operator="gaussian").fit_transform(X)
    >>> Z.shape, float(((Z**2).sum() / (X**2).sum()).round(1))
    ((100, 400), 1.0)

    Notes
    -----
    Squared lengths are right on average. "sample" may lose any row that has few columns, so
    take it for dense data only.
    """

    kind = "random-reduction"
    version = 1
    n_features_in_: int
    feature_names_in_: Array

    def __init__(
        self, n_components: int = 100, *, operator: str = "countsketch", random_state: Any = 0
    ) -> None:
        self.n_components = n_components
        self.operator = operator
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the projection for the columns of ``X``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; only their number of columns counts.
        y : ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        self
        """
        check_reduction(self.n_components, self.operator)
        with or_as_before(self):
            self._validated(X, reset=True)
            self._begin(seed_of(self.random_state))
            self._map()
        return self

    def _fit_blocks(self, blocks: Blocks) -> Self:
        """Draw the projection for rows that come in blocks, each with its weights."""
        for rows, _ in blocks():
            self.partial_fit(rows)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Do as `fit` the first time, and check that later rows have the same columns."""
        if not hasattr(self, "seed_"):
            return self.fit(X)
        self._validated(X, reset=False)
        return self

    def _begin(self, seed: int) -> None:
        self.seed_ = seed
        self._drawn: LinearMap | None = None

    def _map(self) -> LinearMap:
        check_is_fitted(self, "seed_")
        if self._drawn is None:
            # Of a saved one with the first rows: a small file may name any size.
            self._drawn = self._draw()
        return self._drawn

    def _draw(self) -> LinearMap:
        size, width = self.n_components, self.n_features_in_
        if self.operator == "sample":
            return ColumnSample(size, width, self.seed_)
        operator = make_sketch(self.operator, size, seed=self.seed_)
        assert isinstance(operator, Projection)
        return RandomMap(operator, width)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        return checked_rows(self, host_rows(X), reset=reset)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "seed_")
        rows = self._validated(X, reset=False)
        return sp.csr_array(rows) if sp.issparse(rows) else rows

    def merge(self, other: Self) -> Self:
        """Check that two projections are the same; there is nothing to add.

        Parameters
        ----------
        other : RandomReduction

        Returns
        -------
        self
        """
        check_is_fitted(other, "seed_")
        mine = (self.n_components, self.operator)
        if type(other) is not type(self) or mine != (other.n_components, other.operator):
            raise NotMergeableError(f"cannot merge {other!r} into {self!r}; draw both alike")
        if not hasattr(self, "seed_"):
            self.n_features_in_ = other.n_features_in_
            self._begin(other.seed_)
        if (self.seed_, self.n_features_in_) != (other.seed_, other.n_features_in_):
            raise NotMergeableError(
                "cannot merge projections of other random_state or columns; draw both alike"
            )
        return self

    def save(self, path: PathLike) -> None:
        """Write the projection to one file, atomically; `sksketch.load` reads it."""
        check_is_fitted(self, "seed_")
        write_state(self.state(), path)

    def state(self) -> State:
        """Return the parameters and the seed, as plain data."""
        check_is_fitted(self, "seed_")
        meta = {f"param.{name}": value for name, value in self.get_params(deep=False).items()}
        meta |= {"param.random_state": self.seed_, "n_features_in": self.n_features_in_}
        if hasattr(self, "feature_names_in_"):
            meta["feature_names"] = json.dumps(list(self.feature_names_in_))
        return State(self.kind, self.version, meta, {})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the estimator that ``state`` was taken from."""
        state.require(cls.version)
        meta: Any = state.meta
        start = "param."
        params = {name[len(start) :]: meta[name] for name in meta if name.startswith(start)}
        estimator = cls(**params)
        check_reduction(estimator.n_components, estimator.operator)
        estimator.n_features_in_ = state.count("n_features_in")
        if estimator.n_components > max(estimator.n_features_in_, MOST_COMPONENTS):
            raise StateFormatError(
                f"the file asks for {estimator.n_components:,} components of "
                f"{estimator.n_features_in_:,} columns, which nobody draws; save it again"
            )
        if "feature_names" in meta:
            names = json.loads(meta["feature_names"])
            estimator.feature_names_in_ = np.asarray(names, dtype=object)
        estimator._begin(meta["param.random_state"])
        return estimator
