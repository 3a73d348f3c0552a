"""The second pass of robust standard errors: sums of products of scores, by rows or groups."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, RowsLike
from sksketch.arrays.device_sparse import on_host
from sksketch.arrays.namespace import to_numpy
from sksketch.arrays.rows import as_rows, as_weights
from sksketch.exceptions import NotMergeableError
from sksketch.state.guard import Guarded
from sksketch.state.persistence import State

BLOCK_BYTES = 8 << 20
# Rows whose leverage is this near to one are met exactly, and say nothing about their noise.
LEVERAGE = 1e-10
#: Covariances that need a second pass.
ROBUST = ("HC0", "HC1", "HC2", "HC3", "cluster")
# Sums of the second pass may differ by as much from those of the first, through rounding.
SAME = 1e-7


class RobustPass(Guarded):
    """Learns from all rows a second time, for standard errors that hold whatever the noise is.

    It is given to `fit_stream`, `fit_dask` or `fit_spark` like an estimator, or called block by
    block, and then to `StreamingRidge.inference`.

    Parameters
    ----------
    covariance : {"HC0", "HC1", "HC2", "HC3", "cluster"}
        What is estimated. With "cluster" the targets have one column more, the last: the group.
    weights : {"frequency", "analytic"}
        What weights mean.
    intercept : bool
        Whether the model has an intercept.
    center, bread, around : arrays
        Of the model: a point near the mean, the inverse of the products around it, and
        coefficients of ones and columns around it, of shape (n_coef, n_targets).

    Examples
    --------
    >>> from sksketch import StreamingRidge, fit_stream
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 2))
    >>> y = X[:, 0] + rng.standard_normal(200) * X[:, 1]
    >>> model = fit_stream(StreamingRidge(alpha=0.0), (X, y), progress=False)
    >>> second = fit_stream(model.robust_pass("HC3"), (X, y), progress=False)
    >>> model.inference("HC3", second_pass=second).standard_error.round(2)
    array([0.07, 0.08, 0.11])
    """

    kind: ClassVar[str] = "robust-pass"
    version: ClassVar[int] = 1

    def __init__(
        self,
        covariance: str,
        weights: str,
        intercept: bool,
        center: Array,
        bread: Array,
        around: Array,
    ) -> None:
        self.covariance, self.weights, self.intercept = covariance, weights, intercept
        self.center, self.bread, self.around = center, bread, around

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """Return what it was built with.

        Parameters
        ----------
        deep : bool, default=False
            Ignored.

        Returns
        -------
        dict
        """
        names = ("covariance", "weights", "intercept", "center", "bread", "around")
        return {name: getattr(self, name) for name in names}

    def partial_fit(
        self,
        X: RowsLike,
        y: RowsLike,
        sample_weight: RowsLike | None = None,
        groups: object = None,
    ) -> Self:
        """Learn from one more block of the rows that the model was learned from.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; the last column is the group with ``covariance="cluster"``, unless ``groups``
            are given.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, the same as before.
        groups : array-like of shape (n_samples,), default=None
            The group of each row, as a number.

        Returns
        -------
        self
            This object.
        """
        rows = on_host(as_rows(X, n_features=len(self.center)))
        n_rows = rows.shape[0]
        targets = np.asarray(to_numpy(y), dtype=np.float64).reshape(n_rows, -1)
        numbers = None
        if self.covariance == "cluster":
            if groups is None:
                targets, numbers = targets[:, :-1], targets[:, -1]
            else:
                numbers = np.asarray(groups, dtype=np.float64).reshape(-1)
        n_targets = self.around.shape[1]
        if targets.shape[1] != n_targets or (numbers is not None and len(numbers) != n_rows):
            raise ValueError(
                f"got {targets.shape[1]} targets for each row, expected {n_targets}"
                + (" and the group of each row" if self.covariance == "cluster" else "")
            )
        if not np.isfinite(targets).all() or not (numbers is None or np.isfinite(numbers).all()):
            raise ValueError("targets or groups contain NaN or infinity; drop such rows")
        weights = as_weights(sample_weight, n_rows)
        counts = np.ones(n_rows) if weights is None else np.asarray(weights, dtype=np.float64)
        sums = self._sums() if "meats_" in self.__dict__ else self._nothing()
        step = max(1, BLOCK_BYTES // (8 * max(len(self.center), 1)))
        for start in range(0, n_rows, step):
            part = slice(start, start + step)
            group = None if numbers is None else numbers[part]
            sums = self._with(sums, rows[part], targets[part], counts[part], group)
        self.meats_, self.checks_, self.groups_, self.scores_ = sums
        return self

    def _sums(self) -> tuple[Array, Array, Array, Array]:
        return self.meats_, self.checks_, self.groups_, self.scores_

    def _nothing(self) -> tuple[Array, Array, Array, Array]:
        k, t = self.around.shape
        return np.zeros((t, k, k)), np.zeros(2 + k + t), np.zeros(0), np.zeros((0, k * t))

    def _with(
        self,
        sums: tuple[Array, Array, Array, Array],
        rows: Any,
        targets: Array,
        weights: Array,
        groups: Array | None,
    ) -> tuple[Array, Array, Array, Array]:
        """Return the sums with a block of rows."""
        meats, checks, known, scores = sums
        dense = rows.toarray() if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)
        U = dense - self.center
        if self.intercept:
            U = np.hstack([np.ones((len(U), 1)), U])
        residuals = targets - U @ self.around
        counted = [np.count_nonzero(weights), weights.sum(), *(weights @ U), *(weights @ residuals)]
        checks = checks + np.array(counted)
        scaled = residuals
        if self.covariance in ("HC2", "HC3"):
            leverage = ((U @ self.bread) * U).sum(axis=1)
            leverage = leverage * weights if self.weights == "analytic" else leverage
            left = 1.0 - leverage
            met = left <= LEVERAGE
            power = 0.5 if self.covariance == "HC2" else 1.0
            roots = np.where(met, 1.0, left)[:, None] ** power
            scaled = np.where(met[:, None], 0.0, residuals / roots)
        if groups is not None:
            values, places = np.unique(groups, return_inverse=True)
            each = (weights[:, None, None] * scaled[:, :, None]) * U[:, None, :]
            member = sp.csr_array(
                (np.ones(len(U)), (places.reshape(-1), np.arange(len(U)))),
                shape=(len(values), len(U)),
            )
            known, scores = _joined(known, scores, values, member @ each.reshape(len(U), -1))
            return meats, checks, known, scores
        factors = weights[:, None] if self.weights == "analytic" else np.sqrt(weights)[:, None]
        new = [U * (factors * scaled[:, [target]]) for target in range(scaled.shape[1])]
        return meats + np.stack([part.T @ part for part in new]), checks, known, scores

    def meats(self) -> tuple[Array, int]:
        """Return the sums of products of scores, and the number of groups.

        Returns
        -------
        tuple of array and int
            Of shape (n_targets, n_coef, n_coef).
        """
        if "meats_" not in self.__dict__:
            raise ValueError("the second pass has seen no rows yet; give it all of them")
        if self.covariance != "cluster":
            return self.meats_, 0
        k, t = self.around.shape
        parts = self.scores_.reshape(-1, t, k)
        return np.einsum("gti,gtj->tij", parts, parts), len(self.groups_)

    def require_rows(self, n_rows: int, weight: float, residual_size: float) -> None:
        """Refuse a second pass over other rows than those of the first.

        Parameters
        ----------
        n_rows : int
            Rows of positive weight.
        weight : float
            Sum of the weights.
        residual_size : float
            Root of the sum of squared targets, which residuals cancel against.
        """
        n_seen, seen, *sums = self.checks_.tolist()
        same = n_seen == n_rows and abs(seen - weight) <= SAME * weight
        if same and self.intercept:
            ends = sums[len(self.bread) :]
            same = all(abs(end) <= SAME * np.sqrt(weight) * residual_size + 1e-300 for end in ends)
        if not same:
            raise ValueError(
                f"the second pass has seen {n_seen:,.0f} rows of weight {seen:.10g} that do not "
                f"look like the {n_rows:,} rows of weight {weight:.10g} learned from; give all of "
                "these once more, with the same weights"
            )

    # Rows in parts

    def shard_template(self) -> Self:
        """Return an empty copy for parts of the rows.

        Returns
        -------
        RobustPass
            The copy.
        """
        return type(self)(**self.get_params())

    def for_shard(self, index: int, n_shards: int) -> Self:
        """Return an empty copy for one part.

        Parameters
        ----------
        index, n_shards : int
            Number of the part, and of all parts.

        Returns
        -------
        RobustPass
            The copy.
        """
        return self.shard_template()

    def compact(self) -> None:
        """Do nothing: no rows wait."""

    def merge(self, other: Self) -> Self:
        """Add what another one has learned from other rows.

        Parameters
        ----------
        other : RobustPass
            For the same model.

        Returns
        -------
        self
            This object.
        """
        mine, theirs = self.get_params(), other.get_params()
        if not all(np.array_equal(mine[name], theirs[name]) for name in mine):
            raise NotMergeableError("the two are for different models; build both by one model")
        if "meats_" not in other.__dict__:
            return self
        sums = self._sums() if "meats_" in self.__dict__ else self._nothing()
        meats, checks, known, scores = other._sums()
        self.meats_, self.checks_ = sums[0] + meats, sums[1] + checks
        self.groups_, self.scores_ = _joined(sums[2], sums[3], known, scores)
        return self

    def state(self) -> State:
        """Return all that it is, as plain data.

        Returns
        -------
        State
            Plain values and arrays.
        """
        meta = {name: getattr(self, name) for name in ("covariance", "weights", "intercept")}
        arrays = {name: getattr(self, name) for name in ("center", "bread", "around")}
        if "meats_" in self.__dict__:
            names = ("meats", "checks", "groups", "scores")
            arrays |= dict(zip(names, self._sums(), strict=True))
        arrays = {name: np.array(value) for name, value in arrays.items()}
        return State(self.kind, self.version, meta, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build what `state` was taken from.

        Parameters
        ----------
        state : State
            Plain data.

        Returns
        -------
        RobustPass
            One that continues there.
        """
        state.require(cls.version)
        meta: Any = state.meta
        arrays = state.arrays
        given = (meta["covariance"], meta["weights"], bool(meta["intercept"]))
        made = cls(*given, *(arrays[name] for name in ("center", "bread", "around")))
        if "meats" in arrays:
            made.meats_, made.checks_ = arrays["meats"], arrays["checks"]
            made.groups_, made.scores_ = arrays["groups"], arrays["scores"]
        return made


def _joined(known: Array, scores: Array, values: Array, new: Array) -> tuple[Array, Array]:
    """Return groups and the sums of their scores, with others added."""
    every = np.union1d(known, values)
    total = np.zeros((len(every), scores.shape[1]))
    total[np.searchsorted(every, known)] = scores
    total[np.searchsorted(every, values)] += new
    return every, total


def numbers_of(groups: object) -> Array:
    """Return groups of any kind as numbers.

    >>> numbers_of(["b", "a", "b"])
    array([1., 0., 1.])
    """
    return np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1).astype(np.float64)
