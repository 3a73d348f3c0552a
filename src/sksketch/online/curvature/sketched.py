"""Online Newton with a sketch of the loss's curvature, at the cost of the non-zeros."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.threads import one_blas_thread
from sksketch.online.curvature.exact import ExactNewton
from sksketch.online.curvature.feature_store import FeatureStore
from sksketch.online.curvature.kernels import curvature_kernels, layout
from sksketch.online.curvature.kernels.buffer import Sketch
from sksketch.online.curvature.learner import CurvatureLearner
from sksketch.online.curvature.problem import Problem
from sksketch.online.kernels.layout import OWN_EIGEN_ROWS
from sksketch.online.kernels.records import Batch, ShrinkRule
from sksketch.online.learner import RowLearner
from sksketch.online.vocabulary import NumberedRows, grown
from sksketch.sketches.directions.shrink.rules import n_reduced
from sksketch.state.persistence import State


class SketchedCurvature(CurvatureLearner, RowLearner):
    """Newton steps whose curvature is a Frequent Directions sketch of the rows sqrt(l'') x.

    Parameters
    ----------
    sketch_size : int
        m of the paper: m - 1 rows survive a shrink.
    buffer_rows : int
        Rows of the buffer, more than m - 1.
    problem : Problem
        The loss, and how columns are treated.
    robust : bool
        Whether what a shrink takes is made up for: by column where columns have units of their
        own, otherwise by half of the cut in all directions.
    fraction : float, default=1.0
        1 cuts all kept directions; less leaves the leading ones alone (PFD).
    width : int, default=0
        Columns, for the size of the table.
    centers : bool, default=False
        Whether every row has every column, and columns are centered.
    """

    kind = "sketched-curvature"
    version = 1

    def __init__(
        self,
        sketch_size: int,
        *,
        buffer_rows: int,
        problem: Problem,
        robust: bool,
        fraction: float = 1.0,
        width: int = 0,
        centers: bool = False,
    ) -> None:
        self._begin(problem)
        self.sketch_size, self.buffer_rows = sketch_size, buffer_rows
        self.robust, self.fraction, self.width = robust, fraction, width
        self.centers = centers and problem.normalize
        self._ell = ell = sketch_size - 1
        self._counters[layout.COUNTED] = 0 if self.centers else -1
        self._store = FeatureStore(ell + problem.n_outputs, buffer_rows - ell, width)
        n_units = layout.N_CENTERED_UNITS if self.centers else layout.N_UNITS
        self._units = np.empty((0, n_units))
        self._K, self._L = (np.zeros((buffer_rows, buffer_rows)) for _ in "KL")
        self._beta, self._reached = (np.zeros((buffer_rows, problem.n_outputs)) for _ in "BR")

    @property
    def _sketch(self) -> Sketch:
        return Sketch(self._K, self._L, self._beta, self._reached)

    @property
    def _rule(self) -> ShrinkRule:
        ell = self._ell
        first = 0 if self.fraction == 1.0 else ell + 1 - n_reduced(ell, self.fraction)
        return ShrinkRule(ell, first, self.robust, pauses=False)

    @property
    def _raises_ridge(self) -> bool:
        return self.robust

    @property
    def _totals(self) -> Any:
        return curvature_kernels().Totals(self._counters, self._sums)

    def _make_room(self, n_known: int, longest: int) -> None:
        n_before = len(self._units)
        self._store.make_room(n_known, longest)
        self._units = grown(self._units, n_known)
        ours = [layout.SCALE, layout.BASE_SCALE]
        if not self.problem.normalize:
            self._units[n_before:, ours] = 1.0
        if n_before == 0 and self.problem.constant and len(self._units):
            self._units[0, ours] = self.problem.constant_scale(exact=False)

    def learn(self, rows: NumberedRows, n_known: int, targets: Array, weights: Array) -> Array:
        """Learn from rows; return the scores of each before it was learned from."""
        # Large buffers are shrunk by LAPACK.
        with one_blas_thread() if self.buffer_rows > OWN_EIGEN_ROWS else nullcontext():
            return self._learn(rows, n_known, targets, weights)

    def _learn(self, rows: NumberedRows, n_known: int, targets: Array, weights: Array) -> Array:
        longest = int((rows.indptr[1:] - rows.indptr[:-1]).max(initial=0))
        self._make_room(n_known, longest)
        scores = np.empty((len(rows), self.problem.n_outputs))
        centered = np.ascontiguousarray(self._centered(targets, weights))
        batch = Batch(*rows, centered, weights, scores)
        done, store, kernels = 0, self._store, curvature_kernels()
        while done < len(rows):
            before, counted = done, self._counters[layout.COUNTED]
            done = kernels.learn_sketched(
                batch,
                done,
                store.features(n_known),
                self._units,
                store.pending,
                self._sketch,
                store.table,
                self._totals,
                self._task,
                self._rule,
            )
            n = int(self._counters[layout.COUNTED])
            if n > max(counted, 1) and n & (n - 1) == 0:
                kernels.recenter_sketch(
                    store.features(n_known),
                    self._units,
                    store.pending,
                    self._sketch,
                    self._totals,
                    self._task,
                    self._ell,
                )
            elif done == before:
                store.enlarge_cache(longest)
        self._require_finite(scores, self._K, self._beta)
        return scores + self._level

    def own_weights(self, features: Array) -> tuple[Array, Array]:
        """Return the weights of features in their units, and the units; changes nothing."""
        found = np.zeros((len(features), self.problem.n_outputs))
        units = np.zeros((len(features), self._units.shape[1]))
        # Features numbered since the last row was learned from have no weight yet.
        known = features < len(self._units)
        part = np.zeros((int(known.sum()), self.problem.n_outputs))
        curvature_kernels().read_all_weights(
            features[known],
            self._store.features(0),
            self._beta,
            self._store.table,
            self._counters,
            self._ell,
            part,
        )
        found[known], units[known] = part, self._units[features[known]]
        return found, units

    def _loaded(self, n_known: int) -> Self:
        """Return a copy that has all features in its cache, up to date."""
        one = copy.deepcopy(self)
        one._make_room(n_known, 0)
        store = one._store
        if n_known > len(store.cache):
            store.enlarge_cache(n_known)
        curvature_kernels().load_all(
            store.features(n_known), one._units, store.table, one._totals, one._ell
        )
        return one

    def curvature(self, n_known: int) -> tuple[Array, float]:
        """Return B, a row for each direction and a column for each feature, and alpha."""
        one = self._loaded(n_known)
        store, k, ell = one._store, int(one._counters[layout.USED]), one._ell
        slots = store.place[:n_known, 1]
        B = np.zeros((k, n_known))
        B[:ell] = store.cache[slots, : min(k, ell)].T
        B[ell:] = store.cache_pending[slots, : max(k - ell, 0)].T
        return B, self.ridge

    def with_weights(self, W: Array) -> Self:
        """Return a copy with other weights, in the units of the features."""
        one = self._loaded(len(W))
        store, k, ell = one._store, int(one._counters[layout.USED]), one._ell
        slots = store.place[: len(W), 1]
        own = store.cache[slots, : min(k, ell)] @ one._beta[: min(k, ell)]
        own += store.cache_pending[slots, : max(k - ell, 0)] @ one._beta[ell:k]
        store.cache[slots, ell : ell + W.shape[1]] = W - own
        return one

    def state(self) -> State:
        """Return the features' rows, the cache, the pending rows and the table, as they are."""
        meta = {
            "sketch_size": self.sketch_size,
            "buffer_rows": self.buffer_rows,
            "robust": self.robust,
            "fraction": self.fraction,
            "width": self.width,
            "centers": self.centers,
            "problem": self.problem.as_meta(),
        }
        arrays = {
            "counters": self._counters,
            "sums": self._sums,
            "level": self._level,
            "units": self._units,
            "K": self._K,
            "L": self._L,
            "beta": self._beta,
            "reached": self._reached,
        }
        copies = {name: array.copy() for name, array in arrays.items()}
        copies |= self._store.arrays(self._counters, self._ell)
        return State(self.kind, self.version, meta, copies)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the learner that ``state`` was taken from."""
        state.require(cls.version)
        meta: Any = dict(state.meta)
        problem = Problem(**meta.pop("problem"))
        learner = cls(problem=problem, **meta)
        for name in ("counters", "sums", "level", "K", "L", "beta", "reached"):
            mine = getattr(learner, f"_{name}")
            mine[...] = state.array(name, *mine.shape)
        learner._store.restore(state, learner._counters, learner._ell)
        units = state.array("units", None, learner._units.shape[1])
        learner._units = np.array(units)
        learner._make_room(len(units), 0)
        return learner

    @classmethod
    def from_exact(cls, exact: ExactNewton, **options: Any) -> Self:
        """Build the learner that takes over where one with the whole curvature stops.

        Centers are given up: rows with that many columns have most of them at zero.
        """
        one = cls(problem=exact.problem, width=exact.width, **options)
        p, ell = len(exact._W), one._ell
        one._make_room(p, 0)
        one._counters[layout.T] = exact._counters[layout.T]
        one._sums[:], one._level = exact._sums, exact._level
        W, G = exact.uncentered(one._units[0, layout.SCALE])
        start = int(exact.problem.constant)
        one._units[start:p] = exact._units[start:, : layout.N_UNITS]
        one._units[:, layout.CENTER] = 0.0
        values, V = np.linalg.eigh(G)
        values, V = np.maximum(values[::-1], 0.0), V[:, ::-1]
        cut = values[ell]
        left = np.maximum(values[:ell] - np.where(np.arange(ell) < one._rule.first_reduced, 0, cut), 0)
        B = V[:, :ell] * np.sqrt(left)
        one._sums[layout.SHRINKAGE] += cut
        if one.robust and not one.problem.normalize:
            one._sums[layout.ALPHA] += 0.5 * cut
        lost = np.maximum(np.diag(G) - (B**2).sum(axis=1), 0.0)
        one._take_rows(B, W, lost)
        return one

    def _take_rows(self, B: Array, W: Array, lost: Array) -> None:
        """Begin with these rows and weights, by feature, which are in the units they have."""
        p, ell, units = len(W), self._ell, self._units[: len(W)]
        if self.robust and self.problem.normalize:
            units[:, layout.LOST] = lost * units[:, layout.SCALE] ** 2
            base2 = units[:, layout.BASE_SCALE] ** 2 + units[:, layout.LOST] / self.ridge
            scale = np.sqrt(np.exp2(np.ceil(np.log2(base2, where=base2 > 0, out=np.zeros(p)))))
            ratio = np.where(base2 > 0, units[:, layout.SCALE] / scale, 1.0)[:, None]
            units[:, layout.SCALE] = np.where(base2 > 0, scale, 0.0)
            B, W = B * ratio, W / ratio
        self._store.place[:p, 0] = 0
        self._store.rows[:p] = 0.0
        self._store.rows[:p, :ell], self._store.rows[:p, ell : ell + W.shape[1]] = B, W
        self._counters[layout.USED] = ell
        self._K[:ell, :ell] = B.T @ B
        self._L[:ell, :ell] = np.linalg.cholesky(self._K[:ell, :ell] + self.ridge * np.eye(ell))
        self._reached[:ell] = B.T @ W
        self._sums[layout.NORM2] = (W**2).sum()
        cut, length2 = self.shrinkage, (W**2).sum()
        self._sums[layout.DRIFT : layout.DRIFT + 3] = cut * length2 ** np.array([0.0, 0.5, 1.0])
