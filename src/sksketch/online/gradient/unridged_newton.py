"""RFD-SON that starts without a ridge: exact curvature and pseudo-inverses until the first cut."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.threads import one_blas_thread
from sksketch.online.gradient.newton import SketchedNewton
from sksketch.online.kernels import layout
from sksketch.online.learner import LARGEST, NOT_FINITE, RowLearner, loss_meta, loss_of
from sksketch.online.losses import Loss
from sksketch.online.vocabulary import NumberedRows
from sksketch.state.persistence import State

RULES = ("exact", "range", "printed", "clip")
# Singular values below this part of the largest are zero, and so is a part of x outside the range.
RANK_TOLERANCE, RANGE_TOLERANCE = 1e-8, 1e-6
# A cut below this part of the largest eigenvalue is rounding.
CUT_TOLERANCE = 1e-12


class UnridgedNewton(RowLearner):
    """RFD0-SON: alpha_0 = 0, so nothing at all has to be chosen.

    Parameters
    ----------
    sketch_size, buffer_rows, loss, width
        As for `SketchedNewton`, which takes over at the first shrink that cuts something.
    rule : str
        How w is moved when the prediction is beyond the limit and H is singular: ``"exact"``
        takes the closest point, ``"range"`` moves inside of the range of H, ``"printed"`` takes
        the better of the paper's two formulas, ``"clip"`` leaves w.

    Notes
    -----
    While alpha = 0, H = B'B holds the whole weighted Gram matrix of the gradients seen. On its
    null space every move is free, so the exact minimizer moves along x - VV'x if that is not
    zero. The paper prints x - V S^-2 V'x there, which is not in the null space but is feasible.
    """

    kind = "unridged-newton"

    def __init__(
        self, sketch_size: int, *, buffer_rows: int, loss: Loss, width: int, rule: str
    ) -> None:
        self.sketch_size, self.buffer_rows = sketch_size, buffer_rows
        self.loss, self.width, self.rule = loss, width, rule
        self._B, self._w = np.zeros((0, 0)), np.zeros(0)
        self._n_rows, self._loss_sum, self._limit = 0, 0.0, loss.limit
        self._taken_over: SketchedNewton | None = None

    def learn(self, rows: NumberedRows, n_known: int, targets: Array, weights: Array) -> Array:
        """Learn from rows; return the raw score of each before it was learned from."""
        scores = np.empty(len(rows))
        done = 0
        with one_blas_thread():
            while self._taken_over is None and done < len(rows):
                part = slice(rows.indptr[done], rows.indptr[done + 1])
                given = rows.ids[part], rows.values[part]
                scores[done] = self._learn_one(*given, float(targets[done]), float(weights[done]))
                done += 1
        largest = max(np.abs(self._w).max(initial=0.0), np.abs(self._B).max(initial=0.0))
        if self._taken_over is None and not largest <= LARGEST**0.5:
            raise ValueError(NOT_FINITE)
        if done < len(rows) and self._taken_over is not None:
            first = rows.indptr[done]
            rest = NumberedRows(rows.indptr[done:] - first, rows.ids[first:], rows.values[first:])
            scores[done:] = self._taken_over.learn(rest, n_known, targets[done:], weights[done:])
        return scores

    def _learn_one(self, ids: Array, values: Array, y: float, weight: float) -> float:
        # As wide as the features met so far, and not as those of the rest of the block.
        more = int(ids.max(initial=-1)) + 1 - len(self._w)
        if more > 0:
            self._w = np.pad(self._w, (0, more))
            self._B = np.pad(self._B, ((0, 0), (0, more)))
        x = np.zeros(len(self._w))
        x[ids] = values
        raw = float(self._w @ x)
        if weight == 0.0:
            return raw
        self._n_rows += 1
        z = min(max(raw, -self._limit), self._limit)
        self._loss_sum += weight * self.loss.value(z, y)
        if self.loss.grows:
            self._limit = max(self._limit, abs(y))
        slope, over = self.loss.slope(z, y), raw - z
        if not x.any() or (slope == 0.0 and over == 0.0):
            return raw
        if over != 0.0:
            self._w = self._projected(x, over)
        if slope != 0.0:
            mu, eta = self.loss.weights(self._n_rows, self._limit)
            self._B = np.vstack([self._B, math.sqrt((mu + eta) * weight) * slope * x])
            if len(self._B) == self.buffer_rows:
                self._shrink()
            self._step(weight * slope * x)
        return raw

    def _range(self) -> tuple[Array, Array]:
        """Return singular values of B that are not zero and their vectors, as rows."""
        if not len(self._B):
            return np.zeros(0), np.zeros((0, len(self._w)))
        _, values, vectors = np.linalg.svd(self._B, full_matrices=False)
        rank = int((values > RANK_TOLERANCE * values[0]).sum())
        return values[:rank], vectors[:rank]

    def _projected(self, x: Array, over: float) -> Array:
        """Return the weights moved so that the prediction is at the limit, by the rule."""
        values, V = self._range()
        inside = V @ x
        along = V.T @ (inside / values**2)
        outside = x - V.T @ inside
        length = float(x @ along)
        within = self._w - over / length * along if length > 0.0 else self._w
        if self.rule == "clip":
            return self._w
        if self.rule == "range":
            return within
        if self.rule == "exact":
            if np.linalg.norm(outside) > RANGE_TOLERANCE * np.linalg.norm(x):
                return np.asarray(self._w - over / float(x @ outside) * outside)
            return within
        beyond = x - along
        reach = float(x @ beyond)
        if reach == 0.0 or length == 0.0:
            return within if length > 0.0 else self._w
        other = self._w - over / reach * beyond
        moved = [np.linalg.norm(self._B @ (w - self._w)) for w in (within, other)]
        return np.asarray(within if moved[0] <= moved[1] else other)

    def _step(self, g: Array) -> None:
        if self._taken_over is None:
            values, V = self._range()
            self._w = self._w - V.T @ ((V @ g) / values**2)
            return
        self._taken_over._first_step(self._B, self._w, g)

    def _shrink(self) -> None:
        ell = self.sketch_size - 1
        _, values, vectors = np.linalg.svd(self._B, full_matrices=False)
        squares = np.zeros(self.buffer_rows)
        squares[: len(values)] = values**2
        cut = float(squares[ell])
        real = cut > CUT_TOLERANCE * squares[0]
        kept = np.maximum(squares[:ell] - (cut if real else 0.0), 0.0)
        n = min(ell, len(vectors))
        B = np.zeros((ell, len(self._w)))
        B[:n] = np.sqrt(kept[:n])[:, None] * vectors[:n]
        self._B = B
        if real:
            self._taken_over = self._successor(kept, cut)

    def _successor(self, kept: Array, cut: float) -> SketchedNewton:
        learner = SketchedNewton(
            self.sketch_size,
            buffer_rows=self.buffer_rows,
            loss=self.loss,
            initial_ridge=0.5 * cut,
            robust=True,
            width=self.width,
        )
        learner._counters[layout.T] = self._n_rows
        sums = learner._sums
        sums[[layout.SHRINKAGE, layout.LIMIT, layout.LOSS]] = cut, self._limit, self._loss_sum
        # What the first rounds cost is not known without their exact curvature.
        sums[layout.STEPS] = math.inf
        learner._begin(kept)
        return learner

    def weights(self, features: Array) -> Array:
        """Return the weights of some features."""
        if self._taken_over is not None:
            return self._taken_over.weights(features)
        found = np.zeros(len(features))
        known = features < len(self._w)
        found[known] = self._w[features[known]]
        return found

    @property
    def ridge(self) -> float:
        """Ridge of the curvature now; 0 at first."""
        return 0.0 if self._taken_over is None else self._taken_over.ridge

    @property
    def loss_sum(self) -> float:
        """Sum of the losses of the predictions made before each row was learned from."""
        return self._loss_sum if self._taken_over is None else self._taken_over.loss_sum

    def regret_bound(
        self, norm: float, radius: float | None = None, *, within: bool = False
    ) -> float:
        """Return a bound of the regret; there is none that the state would give."""
        return math.inf

    def state(self) -> State:
        """Return the buffer and weights, or the learner that has taken over."""
        meta = {
            "sketch_size": self.sketch_size,
            "buffer_rows": self.buffer_rows,
            "width": self.width,
            "rule": self.rule,
            "n_rows": self._n_rows,
            "loss_sum": self._loss_sum,
            "limit_now": self._limit,
            **loss_meta(self.loss),
        }
        if self._taken_over is not None:
            return State(self.kind, 1, meta, {}).with_inner("next", self._taken_over.state())
        return State(self.kind, 1, meta, {"B": self._B.copy(), "w": self._w.copy()})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the learner that ``state`` was taken from."""
        meta: Any = state.meta
        learner = cls(
            meta["sketch_size"],
            buffer_rows=meta["buffer_rows"],
            loss=loss_of(meta),
            width=meta["width"],
            rule=meta["rule"],
        )
        learner._n_rows, learner._loss_sum = meta["n_rows"], meta["loss_sum"]
        learner._limit = meta["limit_now"]
        if "next.kind" in meta:
            learner._taken_over = SketchedNewton.from_state(state.inner("next"))
        else:
            learner._B, learner._w = state.arrays["B"].copy(), state.arrays["w"].copy()
        return learner
