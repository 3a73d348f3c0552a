"""Online Newton with a sketch of the loss's curvature, at the cost of the non-zeros."""

from __future__ import annotations

import copy
import json
from contextlib import nullcontext
from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.threads import one_blas_thread
from sksketch.online.curvature.exact_newton import ExactNewton
from sksketch.online.curvature.feature_store import FeatureStore
from sksketch.online.curvature.kernels import curvature_kernels, layout
from sksketch.online.curvature.kernels.records import Sketch, Totals
from sksketch.online.curvature.learner import CurvatureLearner
from sksketch.online.curvature.problem import Problem, SketchOptions
from sksketch.online.kernels.layout import OWN_EIGEN_ROWS
from sksketch.online.kernels.records import Batch, ShrinkRule
from sksketch.online.learner import RowLearner
from sksketch.online.vocabulary import NumberedRows, Vocabulary, grown
from sksketch.sketches.directions.shrink.rules import n_reduced
from sksketch.state.persistence import State


class SketchedCurvature(CurvatureLearner, RowLearner):
    """Newton steps whose curvature is a Frequent Directions sketch of the rows sqrt(l'') x.

    Parameters
    ----------
    sketch : SketchOptions
        How the curvature is sketched.
    problem : Problem
        The loss, and how columns are treated.
    width : int, default=0
        Columns, for the size of the table.
    centers : bool, default=False
        Whether every row has every column, and columns are centered.
    """

    kind = "sketched-curvature"
    version = 1

    def __init__(
        self, sketch: SketchOptions, problem: Problem, *, width: int = 0, centers: bool = False
    ) -> None:
        self._begin(problem)
        self.sketch, self.width = sketch, width
        self.centers = self.takes_all_columns = centers and problem.normalize
        self._ell = ell = sketch.sketch_size - 1
        self._counters[layout.COUNTED] = 0 if self.centers else -1
        N = sketch.buffer_rows
        self._store = FeatureStore(ell + problem.n_outputs, N - ell, width)
        n_units = layout.N_CENTERED_UNITS if self.centers else layout.N_UNITS
        self._units = np.empty((0, n_units))
        self._K, self._L = np.zeros((N, N)), np.zeros((N, N))
        self._beta, self._reached = (np.zeros((N, problem.n_outputs)) for _ in range(2))

    @property
    def _sketch(self) -> Sketch:
        return Sketch(self._K, self._L, self._beta, self._reached, self._means)

    @property
    def _rule(self) -> ShrinkRule:
        ell, fraction = self._ell, self.sketch.fraction
        first = 0 if fraction == 1.0 else ell + 1 - n_reduced(ell, fraction)
        return ShrinkRule(ell, first, self.sketch.robust, pauses=False)

    @property
    def _raises_ridge(self) -> bool:
        return self.sketch.robust

    @property
    def _totals(self) -> Totals:
        return Totals(self._counters, self._sums)

    def _make_room(self, n_known: int, longest: int) -> None:
        n_before = len(self._units)
        self._store.make_room(n_known, longest)
        self._units = grown(self._units, n_known)
        ours = [layout.SCALE, layout.BASE_SCALE]
        if not self.problem.normalize:
            self._units[n_before:, ours] = 1.0
        if n_before == 0 and self.problem.constant and len(self._units):
            self._units[0, ours] = self.problem.constant_scale(exact=False)

    def learn_rows(self, X: Any, vocabulary: Vocabulary, targets: Array, weights: Array) -> Array:
        """Learn from rows; return the scores of each before it was learned from."""
        scores = np.empty((X.shape[0], self.problem.n_outputs))
        blocks = vocabulary.whole_blocks(X) if self.centers else vocabulary.blocks(X)
        for part, rows in blocks:
            scores[part] = self.learn(rows, vocabulary.size, targets[part], weights[part])
        return scores

    def learn(self, rows: NumberedRows, n_known: int, targets: Array, weights: Array) -> Array:
        """Learn from rows; return the scores of each before it was learned from."""
        # Large buffers are shrunk by LAPACK.
        with one_blas_thread() if self.sketch.buffer_rows > OWN_EIGEN_ROWS else nullcontext():
            return self._learn(rows, n_known, targets, weights)

    def _learn(self, rows: NumberedRows, n_known: int, targets: Array, weights: Array) -> Array:
        longest = int((rows.indptr[1:] - rows.indptr[:-1]).max(initial=0))
        self._make_room(n_known, longest)
        scores = np.empty((len(rows), self.problem.n_outputs))
        batch = Batch(*rows, np.ascontiguousarray(targets), weights, scores)
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
            if n > max(counted, 2) and n & (n - 1) == 0:
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
        used = self._store.cache[: self._counters[layout.CACHED]]
        self._require_finite(scores, self._K, self._beta, used)
        far = np.abs(self._units[:n_known, layout.CENTER :])
        self.strained |= bool((far > self._comfortable).any())
        return scores

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
        B[: min(k, ell)] = store.cache[slots, : min(k, ell)].T
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
        one._forget_regret()
        return one

    def state(self) -> State:
        """Return the features' rows, the cache, the pending rows and the table, as they are."""
        meta = {
            "width": self.width,
            "centers": self.centers,
            "problem": self.problem.as_meta(),
            "sketch": self.sketch.as_meta(),
        }
        arrays = {
            "counters": self._counters,
            "sums": self._sums,
            "means": self._means,
            "K": self._K,
            "L": self._L,
            "beta": self._beta,
            "reached": self._reached,
        }
        copies = {name: array.copy() for name, array in arrays.items()}
        copies |= self._store.arrays(self._counters, self._ell)
        copies["units"] = self._units[: len(copies["rows"])].copy()
        return State(self.kind, self.version, {"facts": json.dumps(meta)}, copies)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the learner that ``state`` was taken from."""
        state.require(cls.version)
        facts = json.loads(str(state.meta["facts"]))
        learner = cls(
            SketchOptions(**facts["sketch"]),
            Problem(**facts["problem"]),
            width=facts["width"],
            centers=facts["centers"],
        )
        for name in ("counters", "sums", "means", "K", "L", "beta", "reached"):
            mine = getattr(learner, f"_{name}")
            mine[...] = state.array(name, *mine.shape)
        learner._store.restore(state, learner._counters, learner._ell)
        units = state.array("units", None, learner._units.shape[1])
        learner._units = np.array(units)
        learner._make_room(len(units), 0)
        return learner

    def widened(self, width: int, vocabulary: Vocabulary) -> Self:
        """Return this learner: features get their numbers as they come."""
        return self

    def with_outputs(self, n_outputs: int, n_known: int) -> SketchedCurvature:
        """Return a learner that continues with more labels."""
        W, units = self.own_weights(np.arange(n_known))
        one = SketchedCurvature(
            self.sketch, self.problem.grown(n_outputs), width=self.width, centers=self.centers
        )
        one._make_room(n_known, 0)
        one._units[:n_known] = units
        one._counters[[layout.T, layout.COUNTED]] = self._counters[[layout.T, layout.COUNTED]]
        one._sums[:] = self._sums
        one._take_rows(self.curvature(n_known)[0], self.problem.weights_of_more(W, n_outputs))
        return one

    @classmethod
    def from_exact(cls, exact: ExactNewton, sketch: SketchOptions, width: int) -> Self:
        """Build the learner that takes over where one with the whole curvature stops.

        Centers are given up: rows with that many columns have most of them at zero.
        """
        one = cls(sketch, exact.problem, width=width)
        p, start = len(exact._W), int(exact.problem.constant)
        one._make_room(p, 0)
        one._units[start:p] = exact._units[start:, : layout.N_UNITS]
        one._units[:, layout.CENTER] = 0.0
        one._counters[layout.T] = exact._counters[layout.T]
        one._sums[:], one._means[:] = exact._sums, exact._means
        W, G = exact.uncentered(float(one._units[0, layout.SCALE]))
        values, V = np.linalg.eigh(G)
        one._take_rows(np.sqrt(np.maximum(values, 0.0))[:, None] * V.T, W)
        return one

    def _take_rows(self, rows: Array, W: Array) -> None:
        """Begin with a shrink of these rows of B, and weights, in the units that features have."""
        p, ell, units = len(W), self._ell, self._units[: len(W)]
        values, V = np.linalg.eigh(rows @ rows.T)
        values, V = np.maximum(values[::-1][: ell + 1], 0.0), V[:, ::-1][:, :ell]
        cut = float(values[ell]) if len(values) > ell else 0.0
        left = np.maximum(
            values[:ell]
            - np.where(np.arange(len(values[:ell])) < self._rule.first_reduced, 0.0, cut),
            0.0,
        )
        root = np.sqrt(
            np.divide(left, values[:ell], where=values[:ell] > 0.0, out=np.zeros(len(left)))
        )
        B = np.zeros((p, ell))
        B[:, : len(left)] = rows.T @ (V * root)
        self._sums[layout.SHRINKAGE] += cut
        if self.sketch.robust and not self.problem.normalize:
            self._sums[layout.ALPHA] += 0.5 * cut
        if self.sketch.robust and self.problem.normalize:
            lost = np.maximum((rows**2).sum(axis=0) - (B**2).sum(axis=1), 0.0)
            ratio = _rescaled(units, lost, self.ridge)[:, None]
            B, W = B * ratio, W / ratio
        self._store.place[:p, 0] = 0
        self._store.rows[:p] = 0.0
        self._store.rows[:p, :ell], self._store.rows[:p, ell : ell + W.shape[1]] = B, W
        self._counters[layout.USED] = ell
        self._K[:ell, :ell] = B.T @ B
        self._L[:ell, :ell] = np.linalg.cholesky(self._K[:ell, :ell] + self.ridge * np.eye(ell))
        self._reached[:ell] = B.T @ W
        length2 = float((W**2).sum())
        self._sums[layout.NORM2] = length2
        self._sums[layout.DRIFT : layout.DRIFT + 3] += cut * length2 ** np.array([0.0, 0.5, 1.0])


def _rescaled(units: Array, lost: Array, alpha: float) -> Array:
    """Note what features have lost, give them their scales, and return old over new ones."""
    scale = units[:, layout.SCALE].copy()
    units[:, layout.LOST] += lost * scale**2
    for j in np.flatnonzero(scale):
        base, gone = units[j, layout.BASE_SCALE], units[j, layout.LOST]
        units[j, layout.SCALE] = curvature_kernels().scale_of(base, gone, alpha)
    return np.divide(scale, units[:, layout.SCALE], where=scale > 0.0, out=np.ones(len(scale)))
