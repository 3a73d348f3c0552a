"""The other online learners of the paper: AdaGrad, gradient steps, full curvature, RP and Oja."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.random import stream
from sksketch.arrays.threads import one_blas_thread
from sksketch.online.kernels import layout, online_kernels
from sksketch.online.kernels.records import Batch, LossRule, OjaState, ProjectedState, Totals
from sksketch.online.learner import (
    RowLearner,
    can_leave,
    loss_meta,
    loss_of,
    rounded_up,
    saved_sums,
)
from sksketch.online.losses import Loss
from sksketch.online.vocabulary import NumberedRows, grown
from sksketch.state.persistence import State

# Random vectors are drawn for this many rows at a time, whatever the blocks.
TILE_ROWS = 256


class _Unbuffered(RowLearner):
    """Base of the learners here: two arrays of numbers, options, a few arrays by name."""

    _arrays: ClassVar[tuple[str, ...]]
    # Of those, the ones with a row for each feature.
    _by_feature: ClassVar[tuple[str, ...]]

    def __init__(self, *, loss: Loss, initial_ridge: float) -> None:
        self.loss = loss
        self._counters = np.zeros(layout.N_COUNTERS, np.int64)
        self._sums = np.zeros(layout.N_SUMS)
        self._sums[[layout.ALPHA, layout.RIDGE]] = initial_ridge
        self._sums[layout.LIMIT] = loss.limit
        self._n_known = 0

    def learn(self, rows: NumberedRows, n_known: int, targets: Array, weights: Array) -> Array:
        """Learn from rows; return the raw score of each before it was learned from."""
        self._meet(n_known)
        self._n_known = max(n_known, self._n_known)
        scores = np.empty(len(rows))
        self._run(Batch(*rows, targets, weights, scores))
        self._require_finite()
        return scores

    def _require_finite(self) -> None:
        """Refuse rows after which something is not finite; here losses and steps tell."""
        self._look(self._sums)

    def _meet(self, n_known: int) -> None:
        """Make room for features that are new."""
        for name in self._by_feature:
            setattr(self, name, grown(getattr(self, name), n_known))

    @abstractmethod
    def _run(self, batch: Batch) -> None:
        """Call the compiled loop."""

    @property
    def _totals(self) -> Totals:
        return Totals(self._counters, self._sums)

    @property
    def _rule(self) -> LossRule:
        return LossRule(self.loss.code, self.loss.knee, self.loss.grows)

    @property
    def ridge(self) -> float:
        """Ridge of the curvature."""
        return float(self._sums[layout.ALPHA])

    @property
    def loss_sum(self) -> float:
        """Sum of the losses of the predictions made before each row was learned from."""
        return float(self._sums[layout.LOSS])

    def regret_bound(
        self, norm: float, radius: float | None = None, *, within: bool = False
    ) -> float:
        """Return a bound of the regret; no curvature of this kind has one."""
        return math.inf

    def _options(self) -> dict[str, Any]:
        return {}

    def state(self) -> State:
        """Return all it is, as plain data."""
        arrays = {"counters": self._counters, "sums": self._sums}
        for name in self._arrays:
            array = getattr(self, name)
            arrays[name.strip("_")] = array[: self._n_known] if name in self._by_feature else array
        meta = {"n_known": self._n_known, **self._options(), **loss_meta(self.loss)}
        copies = {name: array.copy() for name, array in arrays.items()}
        return State(self.kind, self.version, meta, copies)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the learner that ``state`` was taken from."""
        meta: Any = dict(state.meta)
        loss, n_known = loss_of(meta), meta["n_known"]
        for name in ("n_known", *loss_meta(loss)):
            del meta[name]
        learner = cls(loss=loss, initial_ridge=0.0, **meta)
        learner._counters[:], learner._sums[:] = (
            state.arrays["counters"],
            saved_sums(state, cls.version),
        )
        learner._n_known = n_known
        for name in cls._arrays:
            fresh = getattr(learner, name)
            # What is empty at first has a place for every feature.
            saved = state.array(name.strip("_"), *(size or n_known for size in fresh.shape))
            setattr(learner, name, saved.astype(fresh.dtype))
        return learner


class Diagonal(_Unbuffered):
    """AdaGrad, or plain gradient steps.

    Parameters
    ----------
    adaptive : bool
        True is AdaGrad, H = diag(alpha_0 + sqrt(sum of g^2)); False H = alpha_0 sqrt(t) I.
    """

    kind = "diagonal-online"
    _arrays = _by_feature = ("_w", "_G")

    def __init__(self, *, adaptive: bool, loss: Loss, initial_ridge: float) -> None:
        super().__init__(loss=loss, initial_ridge=initial_ridge)
        self.adaptive = adaptive
        self._w, self._G = np.zeros(0), np.zeros(0)

    def _run(self, batch: Batch) -> None:
        loop = online_kernels().learn_diagonal
        loop(batch, self._w, self._G, self._totals, self.adaptive, self._rule)

    def weights(self, features: Array) -> Array:
        """Return the weights of some features."""
        return _known(self._w, features)

    def regret_bound(
        self, norm: float, radius: float | None = None, *, within: bool = False
    ) -> float:
        """Return a bound of the regret against weights of that norm.

        ``radius`` must bound the distance of all iterates from them; without it there is none::

            2 R <= alpha_0 |w|^2 + sum g'H^-1 g + radius^2 (growth of H)

        The losses need to be convex only, so that w has to keep the limit in the rounds whose
        projection moved the iterate: only to points inside does a projection not lead away.
        """
        moved = self._sums[layout.REACH : layout.REACH + 1]
        if radius is None or (not within and can_leave(moved, norm)):
            return math.inf
        sums, t = self._sums, self._counters[layout.T]
        growth = np.sqrt(self._G).sum() if self.adaptive else self.ridge * (math.sqrt(t) - 1.0)
        bound = sums[layout.RIDGE] * norm**2 + sums[layout.STEPS] + radius**2 * max(growth, 0.0)
        return rounded_up(0.5 * bound)

    def _options(self) -> dict[str, Any]:
        return {"adaptive": self.adaptive}


class FullNewton(_Unbuffered):
    """Newton steps with the whole curvature, for few features: O(features^2) a row."""

    kind = "full-newton"
    _arrays = ("_w", "_inverse")
    _by_feature = ("_w",)

    def __init__(self, *, loss: Loss, initial_ridge: float) -> None:
        super().__init__(loss=loss, initial_ridge=initial_ridge)
        self._w, self._inverse = np.zeros(0), np.zeros((0, 0))

    def _meet(self, n_known: int) -> None:
        super()._meet(n_known)
        n_old = len(self._inverse)
        if n_known > n_old:
            inverse = np.eye(n_known)
            inverse[:n_old, :n_old] = self._inverse
            self._inverse = inverse

    def _run(self, batch: Batch) -> None:
        loop = online_kernels().learn_full
        n = len(self._inverse)
        loop(batch, self._w, self._inverse, n, self._totals, self._rule)

    def _require_finite(self) -> None:
        self._look(self._sums, online_kernels().sum_of(self._inverse, self._w))

    def weights(self, features: Array) -> Array:
        """Return the weights of some features."""
        return _known(self._w, features)

    def regret_bound(
        self, norm: float, radius: float | None = None, *, within: bool = False
    ) -> float:
        """Return a bound of the regret against any weights up to that norm."""
        sums = self._sums
        if not within and can_leave(sums[layout.REACH : layout.SPAN], norm):
            return math.inf
        bound = 0.5 * (sums[layout.RIDGE] * norm**2 + sums[layout.STEPS]) + sums[layout.SLACK]
        return rounded_up(bound)


class ProjectedNewton(_Unbuffered):
    """RP-SON: every row is added to the curvature times a random vector of m numbers.

    Parameters
    ----------
    sketch_size : int
        m.
    seed : int
        The vector of row t depends on the seed and t alone.
    """

    kind = "projected-newton"
    _comfortable = 1e8
    _arrays = ("_rows", "_K", "_beta")
    _by_feature = ("_rows",)

    def __init__(self, *, sketch_size: int, seed: int, loss: Loss, initial_ridge: float) -> None:
        super().__init__(loss=loss, initial_ridge=initial_ridge)
        self.sketch_size, self.seed = sketch_size, seed
        self._rows = np.zeros((0, sketch_size + 1))
        self._K, self._beta = np.zeros((sketch_size, sketch_size)), np.zeros(sketch_size)

    def _run(self, batch: Batch) -> None:
        t, n_rows, m = int(self._counters[layout.T]), len(batch.targets), self.sketch_size
        tiles = range(t // TILE_ROWS, (t + n_rows) // TILE_ROWS + 1)
        drawn = [stream(self.seed, "rp-son", k).standard_normal((TILE_ROWS, m)) for k in tiles]
        vectors = np.concatenate(drawn)[t % TILE_ROWS :] / math.sqrt(m)
        state = ProjectedState(self._rows, self._K, np.zeros_like(self._K), self._beta, vectors)
        online_kernels().learn_projected(batch, state, self._totals, self._rule)

    def _require_finite(self) -> None:
        # The steps of single features are made of these.
        self._look(self._sums, online_kernels().sum_of(self._K, self._beta))

    def weights(self, features: Array) -> Array:
        """Return the weights of some features."""
        rows = _known(self._rows, features)
        return np.asarray(rows[:, -1] + rows[:, :-1] @ self._beta)

    def _options(self) -> dict[str, Any]:
        return {"sketch_size": self.sketch_size, "seed": self.seed}


class OjaNewton(_Unbuffered):
    """Oja-SON: m eigenpairs of the curvature are tracked by gradient steps of length 1/t.

    Parameters
    ----------
    sketch_size : int
        m.
    width : int
        Columns. All of them get a random start, O(m width) numbers.
    seed : int
        Seed of the random start.
    """

    kind = "oja-newton"
    _comfortable = 1e8
    _arrays = ("_rows", "_F", "_inverse", "_eigenvalues", "_beta", "_turn")
    _by_feature = ("_rows",)

    def __init__(
        self, *, sketch_size: int, width: int, seed: int, loss: Loss, initial_ridge: float
    ) -> None:
        super().__init__(loss=loss, initial_ridge=initial_ridge)
        self.sketch_size, self.width, self.seed = sketch_size, width, seed
        m = min(sketch_size, width)
        self._rows = np.zeros((0, m + 1))
        self._F, self._inverse = np.eye(m), np.eye(m)
        self._eigenvalues, self._beta = np.zeros(m), np.zeros(m)
        # All that was multiplied into Z so far, for the start of columns that are met later.
        self._turn = np.eye(m)

    @cached_property
    def _start(self) -> Array:
        """The random start of all columns, met or not, orthonormal; drawn when one is met."""
        width, m = self.width, len(self._F)
        start = stream(self.seed, "oja-son").standard_normal((width, m)) / math.sqrt(width)
        with one_blas_thread():
            factor = np.linalg.cholesky(start.T @ start)
            return np.ascontiguousarray(np.linalg.solve(factor, start.T).T)

    def meet_columns(self, columns: Array, constant: bool) -> None:
        """Give the features of these columns their random start; a constant has none."""
        known = self._n_known
        n_known = len(columns) + constant
        self._rows = grown(self._rows, n_known)
        first = max(known - constant, 0)
        fresh = np.zeros((n_known - constant - first, self._rows.shape[1]))
        fresh[:, :-1] = self._start[columns[first:]]
        online_kernels().turn_rows(fresh, len(fresh), self._turn, np.zeros(len(self._turn)))
        self._rows[constant + first : n_known] = fresh
        self._n_known = max(known, n_known)

    def _run(self, batch: Batch) -> None:
        done = 0
        while done < len(batch.targets):
            state = OjaState(self._rows, self._F, self._inverse, self._eigenvalues, self._beta)
            done = online_kernels().learn_oja(batch, done, state, self._totals, self._rule)
            if self._counters[layout.WORN]:
                # While it can still be seen.
                self._require_finite()
                self._refresh()

    def _require_finite(self) -> None:
        found = online_kernels().sum_of
        small = found(self._F, self._beta), found(self._inverse, self._eigenvalues)
        self._look(self._sums, *small)

    def _refresh(self) -> None:
        """Multiply F into Z, so that neither F nor its inverse grows without end."""
        online_kernels().turn_rows(self._rows, self._n_known, self._F, self._beta)
        m = len(self._F)
        with one_blas_thread():
            self._turn = self._F @ self._turn
        self._F, self._inverse, self._beta = np.eye(m), np.eye(m), np.zeros(m)
        self._counters[layout.WORN] = 0

    def weights(self, features: Array) -> Array:
        """Return the weights of some features."""
        rows = _known(self._rows, features)
        return np.asarray(rows[:, -1] + rows[:, :-1] @ self._beta)

    def _options(self) -> dict[str, Any]:
        return {"sketch_size": self.sketch_size, "width": self.width, "seed": self.seed}


def _known(values: Array, features: Array) -> Array:
    """Return the values of some features, zeros for those that were not learned from yet."""
    found = np.zeros((len(features), *values.shape[1:]))
    known = features < len(values)
    found[known] = values[features[known]]
    return found
