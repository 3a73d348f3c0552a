"""Online learners that keep a sketch of the curvature: RFD-SON, FD-SON and PFD-SON."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import aligned_empty
from sksketch.arrays.threads import one_blas_thread
from sksketch.exceptions import StateFormatError
from sksketch.online import learner as base
from sksketch.online.kernels import layout, online_kernels
from sksketch.online.kernels.records import (
    Batch,
    Factor,
    Features,
    LossRule,
    Maps,
    Pending,
    ShrinkRule,
    Totals,
)
from sksketch.online.kernels.version_table import live_nodes, versions
from sksketch.online.learner import RowLearner, loss_meta, loss_of
from sksketch.online.losses import Loss
from sksketch.online.vocabulary import NumberedRows, grown
from sksketch.sketches.directions.shrink.rules import n_reduced
from sksketch.state.persistence import State

FEWEST_CACHED = 1024
AGAIN = "take another copy of the file or save it again"


class SketchedNewton(RowLearner):
    """Newton steps whose curvature is a Frequent Directions sketch, at the cost of the non-zeros.

    Parameters
    ----------
    sketch_size : int
        m of the paper: m - 1 rows survive a shrink.
    buffer_rows : int
        Rows of the buffer, more than m - 1.
    first_rows : int, default=None
        Rows of the buffer at first; the room for new ones doubles with every shrink up to
        ``buffer_rows``. Early shrinks give the ridge its size before much is learned under one
        that is too small, later ones are worth their cost only now and then.
    loss : Loss
    initial_ridge : float
        alpha_0; 0 takes the squared length of the first row that is added to the curvature.
    robust : bool
        Whether half of every cut is added to the ridge, as Robust Frequent Directions does.
    fraction : float
        1 cuts all kept directions; less leaves the leading ones alone (PFD).
    width : int
        Columns, for the size of the table.

    Notes
    -----
    Let H = B'B + alpha I. Each row x with gradient g = l'(z) x is handled by [1]_::

        w = the closest point to w in the norm of H with |w'x| <= C
        B = B with the row sqrt(mu + eta_t) g below; shrunk if that fills the buffer
        w = w - H^-1 g

    Projection and step both move w along H^-1 x, and one pair of triangular solves gives both
    and the new row of the Cholesky factor. The arithmetic is in `online.kernels.lazy_shrink`;
    `online.reference` has the same learner in plain numpy, line by line as in the paper.

    References
    ----------
    .. [1] Luo et al. (2019), JMLR 20(45), Algorithm 3, projecting on the incoming example.
    """

    kind = "sketched-newton"

    def __init__(
        self,
        sketch_size: int,
        *,
        buffer_rows: int,
        first_rows: int | None = None,
        loss: Loss,
        initial_ridge: float,
        robust: bool,
        fraction: float = 1.0,
        width: int = 0,
    ) -> None:
        self.sketch_size, self.buffer_rows = sketch_size, buffer_rows
        self.first_rows = buffer_rows if first_rows is None else first_rows
        self.loss, self.robust, self.fraction, self.width = loss, robust, fraction, width
        self._ell = ell = sketch_size - 1
        D, Dp = _padded(sketch_size), _padded(buffer_rows - ell)
        self.versions = versions(D, width)
        n_nodes = sum(self.versions // layout.BASE**level for level in range(5))
        self._counters = np.zeros(layout.N_COUNTERS, np.int64)
        self._sums = np.zeros(layout.N_SUMS)
        self._sums[[layout.ALPHA, layout.RIDGE]] = initial_ridge
        self._sums[layout.LIMIT] = loss.limit
        self._rows, self._place = _empty(0, D), np.empty((0, 2), np.int32)
        self._cache, self._cache_pending = _empty(FEWEST_CACHED, D), _empty(FEWEST_CACHED, Dp)
        self._cached = np.empty(FEWEST_CACHED, np.int32)
        self._pend_start = np.zeros(buffer_rows - ell + 1, np.int64)
        self._pend_slot, self._pend_value = np.empty(0, np.int32), np.empty(0)
        self._K, self._L = (np.zeros((self.first_rows, self.first_rows)) for _ in "KL")
        self._beta, self._u = np.zeros(max(buffer_rows, D)), np.zeros(buffer_rows)
        self._maps = _empty(n_nodes * D, D).reshape(n_nodes, D, D)

    def learn(self, rows: NumberedRows, n_known: int, targets: Array, weights: Array) -> Array:
        """Learn from rows; return the raw score of each before it was learned from."""
        # Large buffers are shrunk by LAPACK.
        with one_blas_thread() if self.buffer_rows > layout.OWN_EIGEN_ROWS else nullcontext():
            return self._learn(rows, n_known, targets, weights)

    def _learn(self, rows: NumberedRows, n_known: int, targets: Array, weights: Array) -> Array:
        self._rows = grown(self._rows, n_known)
        self._place = grown(self._place, n_known, -1)
        scores = np.empty(len(rows))
        longest = int((rows.indptr[1:] - rows.indptr[:-1]).max(initial=0))
        n_pending = (self.buffer_rows - self._ell) * longest
        self._pend_slot = grown(self._pend_slot, self._pend_start.max() + n_pending)
        self._pend_value = grown(self._pend_value, len(self._pend_slot))
        done = 0
        while True:
            n_buffer = len(self._K)
            done = online_kernels().learn_rows(
                Batch(*rows, targets, weights, scores),
                done,
                self._features(n_known),
                Pending(self._pend_start, self._pend_slot, self._pend_value),
                Factor(self._K, self._L, self._beta, self._u),
                self._table,
                Totals(self._counters, self._sums),
                LossRule(self.loss.code, self.loss.knee, self.loss.grows),
                ShrinkRule(
                    self._ell, self._first_reduced, self.robust, n_buffer < self.buffer_rows
                ),
            )
            self._enlarge_buffer()
            if done == len(rows):
                self._require_finite(len(rows))
                return scores
            if len(self._K) == n_buffer:
                self._enlarge_cache(longest)

    def _features(self, n_known: int) -> Features:
        arrays = self._rows, self._place, self._cache, self._cache_pending, self._cached
        return Features(*arrays, n_known)

    @property
    def _shrink_rule(self) -> ShrinkRule:
        grows = len(self._K) < self.buffer_rows
        return ShrinkRule(self._ell, self._first_reduced, self.robust, pauses=grows)

    @property
    def _table(self) -> Maps:
        return Maps(self._maps.reshape(-1, self._maps.shape[2]), self.versions)

    def _require_finite(self, n_rows: int) -> None:
        # Whatever else goes wrong is soon in |w|^2, which every step moves.
        last = self._counters.item(layout.USED) - 1
        K = self._K
        curvature = float(K.trace()) if n_rows > 1 else K.item(0) + K.item(last, last)
        self._look(self._sums, curvature, self._u.item(last))

    @property
    def _first_reduced(self) -> int:
        if self.fraction == 1.0:
            return 0
        return self._ell + 1 - n_reduced(self._ell, self.fraction)

    @property
    def _capacity(self) -> int:
        """Rows of the buffer after the shrinks so far; in later epochs it has grown already."""
        if len(self._K) == self.buffer_rows:
            return self.buffer_rows
        room = (self.first_rows - self._ell) << int(self._counters[layout.NOW])
        return min(self.buffer_rows, self._ell + room)

    def _enlarge_buffer(self) -> None:
        """Make room for more rows after a shrink, while the kept ones are orthogonal."""
        n_rows = self._capacity
        if n_rows > len(self._K):
            more = (0, n_rows - len(self._K))
            self._K, self._L = (np.pad(A, (more, more)) for A in (self._K, self._L))

    def _enlarge_cache(self, longest: int) -> None:
        n_cached = len(self._cache) + max(longest, len(self._cache))
        self._cache = grown(self._cache, n_cached)
        self._cache_pending = grown(self._cache_pending, len(self._cache))
        self._cached = grown(self._cached, len(self._cache))

    def _begin(self, kept: Array) -> None:
        """Start with the eigenvalues of rows that another learner has shrunk."""
        self._counters[[layout.USED, layout.KEPT]] = self._ell
        diagonal = np.arange(self._ell)
        self._K[diagonal, diagonal] = kept
        self._L[diagonal, diagonal] = np.sqrt(kept + self.ridge)

    def _first_step(self, B: Array, w: Array, g: Array) -> None:
        """Take those rows and the weights, by feature, and make the step for the gradient g."""
        ell = self._ell
        inner = (B @ g) / (np.diagonal(self._K)[:ell] + self.ridge)
        w = w - (g - B.T @ inner) / self.ridge
        self._rows = grown(self._rows, len(w))
        self._place = grown(self._place, len(w), -1)
        self._rows[: len(w)] = 0.0
        self._rows[: len(w), :ell], self._rows[: len(w), ell] = B.T, w
        self._place[: len(w), 0] = 0
        self._u[:ell] = B @ w
        self._sums[layout.NORM2] = w @ w

    def weights(self, features: Array) -> Array:
        """Return the weights of some features; changes nothing."""
        found = np.zeros(len(features))
        # Features numbered since the last row was learned from have no weight yet.
        known = features < len(self._place)
        part = np.empty(int(known.sum()))
        online_kernels().read_weights(
            features[known],
            self._features(0),
            self._beta,
            self._table,
            self._counters,
            self._ell,
            part,
        )
        found[known] = part
        return found

    @property
    def ridge(self) -> float:
        """Ridge alpha of the curvature now."""
        return float(self._sums[layout.ALPHA])

    @property
    def shrinkage(self) -> float:
        """Sum of all cuts."""
        return float(self._sums[layout.SHRINKAGE])

    @property
    def loss_sum(self) -> float:
        """Sum of the losses of the predictions made before each row was learned from."""
        return float(self._sums[layout.LOSS])

    def regret_bound(
        self, norm: float, radius: float | None = None, *, within: bool = False
    ) -> float:
        """Return a bound of the regret against any weights up to that norm.

        With g, H of each round, the lemma for any sequence of curvatures gives::

            2 R <= alpha_0 |w|^2 + sum g'H^-1 g + sum eta (g'(w_t - w))^2 + sum cut/2 |w_t - w|^2

        The last sum is only there for the robust sketch, and |w_t - w| is at most ``radius``, or
        |w_t| + ``norm``. The lemma needs |w'x| <= C before the row where the projection moved w,
        and the sum over eta, like mu of the logistic loss, |w'x| <= C after it where there is a
        gradient. mu of the squared loss needs that of the prediction and the target alone.
        """
        sums = self._sums
        if not within and base.can_leave(sums[layout.REACH : layout.SPAN], norm):
            return math.inf
        bound = 0.5 * (sums[layout.RIDGE] * norm**2 + sums[layout.STEPS]) + sums[layout.SLACK]
        if self.robust:
            cuts, lengths, squares = sums[layout.DRIFT : layout.DRIFT + 3]
            away = squares + 2.0 * norm * lengths + norm**2 * cuts
            bound += 0.25 * (away if radius is None else radius**2 * cuts)
        return base.rounded_up(bound)

    def state(self) -> State:
        """Return the features' rows, the cache, the pending rows and the table, as they are."""
        c = self._counters
        n_cached, n_pending = int(c[layout.CACHED]), self._n_pending
        meta = {
            "sketch_size": self.sketch_size,
            "buffer_rows": self.buffer_rows,
            "first_rows": self.first_rows,
            "robust": self.robust,
            "fraction": self.fraction,
            "width": self.width,
            "base": layout.BASE,
            **loss_meta(self.loss),
        }
        used = self._place[:, 0] >= 0
        n_known = int(np.flatnonzero(used | (self._place[:, 1] >= 0)).max(initial=-1)) + 1
        arrays = {
            "counters": c,
            "sums": self._sums,
            "rows": self._rows[:n_known],
            "place": self._place[:n_known],
            "cache": self._cache[:n_cached],
            "cache_pending": self._cache_pending[:n_cached],
            "cached": self._cached[:n_cached],
            "pend_start": self._pend_start,
            "pend_slot": self._pend_slot[:n_pending],
            "pend_value": self._pend_value[:n_pending],
            "K": self._K,
            "L": self._L,
            "beta": self._beta,
            "u": self._u,
            "maps": self._maps[self._live],
        }
        copies = {name: array.copy() for name, array in arrays.items()}
        return State(self.kind, self.version, meta, copies)

    @property
    def _n_pending(self) -> int:
        rows = max(int(self._counters[layout.USED]) - self._ell, 0)
        return int(self._pend_start[rows])

    @property
    def _live(self) -> Array:
        return live_nodes(self._counters.item(layout.NOW), self.versions)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the learner that ``state`` was taken from."""
        meta: Any = state.meta
        if meta["base"] != layout.BASE:
            raise StateFormatError(
                f"the table of this learner has the base {meta['base']}, and this release reads "
                f"{layout.BASE}; load it with the release that saved it"
            )
        a = state.arrays
        learner = cls(
            meta["sketch_size"],
            buffer_rows=meta["buffer_rows"],
            first_rows=meta.get("first_rows"),
            loss=loss_of(meta),
            initial_ridge=0.0,
            robust=meta["robust"],
            fraction=meta["fraction"],
            width=meta["width"],
        )
        learner._counters[:], learner._sums[:] = a["counters"], base.saved_sums(state, cls.version)
        n_known, n_cached, n_pending = len(a["rows"]), len(a["cache"]), len(a["pend_slot"])
        for name, length in (("place", n_known), ("cache_pending", n_cached), ("rows", n_known)):
            state.array(name, length, None)
        state.array("cached", n_cached)
        state.array("pend_value", n_pending)
        learner._rows = grown(learner._rows, n_known)
        learner._place = grown(learner._place, n_known, -1)
        learner._rows[:n_known], learner._place[:n_known] = a["rows"], a["place"]
        learner._cache = grown(learner._cache, n_cached)
        learner._cache_pending = grown(learner._cache_pending, n_cached)
        learner._cached = grown(learner._cached, n_cached)
        learner._cache[:n_cached] = a["cache"]
        learner._cache_pending[:n_cached] = a["cache_pending"]
        learner._cached[:n_cached] = a["cached"]
        learner._pend_slot = grown(learner._pend_slot, n_pending)
        learner._pend_value = grown(learner._pend_value, n_pending)
        for name in ("pend_slot", "pend_value"):
            getattr(learner, f"_{name}")[:n_pending] = a[name]
        n_rows = len(a["K"])
        for name in ("K", "L"):
            setattr(learner, f"_{name}", np.array(state.array(name, n_rows, n_rows)))
        for name in ("pend_start", "beta", "u"):
            getattr(learner, f"_{name}")[...] = a[name]
        learner._check_places(n_known, n_cached, n_pending)
        if n_rows != learner._capacity:
            raise StateFormatError(f"a learner cannot have {n_rows} rows of buffer here; {AGAIN}")
        learner._maps[learner._live] = a["maps"]
        return learner

    def _check_places(self, n_known: int, n_cached: int, n_pending: int) -> None:
        """Refuse numbers of a file that would lead a compiled loop out of its arrays."""
        c, S = self._counters, self.versions
        starts = self._pend_start[: max(int(c[layout.USED]) - self._ell, 0) + 1]
        for values, least, most in (
            (c[[layout.USED, layout.KEPT]], 0, len(self._K)),
            (c[[layout.NOW, layout.CACHED]], [0, n_cached], [S, n_cached]),
            (self._place[:n_known], -1, [c[layout.NOW], n_cached - 1]),
            (self._cached[:n_cached], 0, n_known - 1),
            (starts, np.append(0, starts[:-1]), n_pending),
            (self._pend_start, 0, 2**31),
            (self._pend_slot[:n_pending], 0, n_cached - 1),
        ):
            if (values < least).any() or (values > most).any():
                raise StateFormatError(
                    f"the places of a learner's features are outside of its arrays; {AGAIN}"
                )


def _padded(n: int) -> int:
    return 4 * math.ceil(n / 4)


def _empty(n_rows: int, n_columns: int) -> Array:
    return aligned_empty((n_rows, n_columns), np.dtype(np.float64))
