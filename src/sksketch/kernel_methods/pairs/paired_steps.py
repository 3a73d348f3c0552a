"""Doubly stochastic steps for two views: singular functions and canonical correlations.

Xie, Liang and Song (2015). With u = U(x) and v = V(y) on a batch and W = (u'v + v'u) / n, the
singular functions of the cross-covariance move along E[Phi(x) v] - a W, and the canonical
functions along E[Phi(x) (v - u W)]. At the end each view's functions have length, or variance,
one half.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import finite, like, namespace, to_numpy
from sksketch.arrays.subspace import orthonormal
from sksketch.kernel_methods.expansions import Functions
from sksketch.kernel_methods.feature_blocks import FeatureBlocks
from sksketch.kernel_methods.feature_maps import FeatureMap
from sksketch.kernel_methods.pairs.pair_moments import (
    PairedFunctions,
    canonical_pairs,
    leading_pairs,
)
from sksketch.kernel_methods.pairs.pair_pilot import (
    Preconditioner,
    pilot_cca,
    pilot_svd,
    whole_features,
)
from sksketch.kernel_methods.pca.doubly_stochastic import step_sizes
from sksketch.state.persistence import State

# Directions of each view that the gradient is divided by, at most.
MAX_DIRECTIONS = 1000
# Steps at which is looked whether all is well.
CHECK_EVERY = 50
CHECK_EARLY = (3, 6, 12, 25)
MEMORY = 0.01


class View:
    """One side: its features, their means, and the coefficients of the functions."""

    def __init__(
        self, features: FeatureMap, means: Any, coefficients: Any, n_seen: int, center: bool
    ) -> None:
        self.features = features
        self.means = means
        self.coefficients = coefficients
        self.n_seen = n_seen
        self.center = center

    def values(self, X: Rows) -> tuple[Any, FeatureBlocks]:
        """Return the functions on rows in float64, and the features behind them."""
        # The rows may be on another device than those before.
        self.coefficients, self.means = like(self.coefficients, X), like(self.means, X)
        blocks = FeatureBlocks(self.features, X, 0, self.coefficients.shape[0])
        return blocks.times(self.coefficients) - self.means @ self.coefficients, blocks

    def length(self) -> float:
        """Return the squared lengths of all functions, in all."""
        a = self.coefficients
        return float(namespace(a).sum(a * a)) * float(a.shape[0])

    def gradient(self, blocks: FeatureBlocks, target: Any) -> Any:
        """Return the mean of (Phi(x) - means)' target over rows and features; follow the means."""
        n = target.shape[0]
        G, sums = blocks.transposed_times(target)
        if self.center:
            G = G - self.means[:, None] * namespace(G).sum(target, axis=0)[None, :]
            self.n_seen += n
            self.means = self.means + (sums - n * self.means) / self.n_seen
        return G / (n * self.coefficients.shape[0])


class PairedSteps:
    """Kernel CCA or kernel SVD by steps over batches of paired rows.

    Parameters
    ----------
    x, y : FeatureMap
    n_components : int
    task : str
        "cca" or "svd".
    center : bool
        Whether features are centered; "cca" needs it.
    ridge : float
        Penalty of "cca".
    step : str
        "preconditioned" (only "cca") divides the gradient by the leading part of each view's
        covariance, taken from the pilot; "plain" is the step of the paper.
    batch_size : int
        Pairs that a step will have.
    """

    kind = "paired-steps"

    def __init__(
        self,
        x: FeatureMap,
        y: FeatureMap,
        n_components: int,
        *,
        task: str,
        center: bool = True,
        ridge: float = 0.0,
        step: str = "preconditioned",
        batch_size: int = 1024,
    ) -> None:
        self.features = (x, y)
        self.n_components = n_components
        self.task = task
        self.center = center or task == "cca"
        self.ridge = ridge
        self.step = step if task == "cca" else "plain"
        # A batch has to show all directions that its gradient is divided by.
        self.n_directions = max(1, min(MAX_DIRECTIONS, batch_size // 2))
        self.n_steps = 0
        self.n_restarts = 0
        self._damping = 1.0

    def begin(self, X: Rows, Y: Rows) -> None:
        """Start from pilot rows."""
        rows = (X, Y)
        found = [
            whole_features(f, Z, self.center) for f, Z in zip(self.features, rows, strict=True)
        ]
        k = self.n_components
        self._preconditioners: list[Preconditioner] = []
        if self.task == "cca":
            sides = [Preconditioner.of(F, self.n_directions) for F, _ in found]
            starts = pilot_cca([F for F, _ in found], sides, k)
            if self.step == "preconditioned":
                self._preconditioners = sides
                self._theta = (0.3 / (max(side.tail for side in sides) + self.ridge), 0.01)
            else:
                self._theta = (0.7 / max(float(side.values[0]) for side in sides), 0.0)
        else:
            starts, s = pilot_svd([F for F, _ in found], k)
            self._theta = step_sizes(s[0], s[k - 1], s[k])
        self.views = [
            View(f, means, a, X.shape[0], self.center)
            for f, (_, means), a in zip(self.features, found, starts, strict=True)
        ]
        self.n_rows_seen = X.shape[0]
        values = [view.values(Z)[0] for view, Z in zip(self.views, rows, strict=True)]
        self._moments = _moments(*values)
        self._lengths = [view.length() for view in self.views]
        self._good = self._snapshot()

    def learn(self, X: Rows, Y: Rows, share: float = 1.0) -> None:
        """Make one step with a batch of pairs; ``share`` of it, if the batch is short."""
        (u, x_blocks), (v, y_blocks) = (
            view.values(Z) for view, Z in zip(self.views, (X, Y), strict=True)
        )
        n = X.shape[0]
        rho = max(1.0 / (self.n_steps + 2), MEMORY) * share
        self._moments = (1.0 - rho) * like(self._moments, u) + rho * _moments(u, v)
        cross = u.T @ v / n
        W = cross + cross.T
        first, decay = self._theta
        eta = first / (1.0 + decay * self.n_steps) * share * self._damping
        for i, (own, other, blocks) in enumerate(((u, v, x_blocks), (v, u, y_blocks))):
            view = self.views[i]
            a = view.coefficients
            if self.task == "cca":
                G = view.gradient(blocks, other - own @ W) - self.ridge * (a @ W)
                if self._preconditioners:
                    G = self._preconditioners[i].apply(G, self.ridge)
            else:
                G = view.gradient(blocks, other) - a @ W
            view.coefficients = a + eta * G
        self.n_steps += 1
        self.n_rows_seen += n
        if self.n_steps % CHECK_EVERY == 0 or self.n_steps in CHECK_EARLY:
            self._check()

    def _check(self) -> None:
        good = all(finite(view.coefficients) for view in self.views)
        grown = max(
            view.length() / max(length, 1e-300)
            for view, length in zip(self.views, self._lengths, strict=True)
        )
        # Singular functions keep their lengths; canonical ones only their variances.
        limit = 1e2 if self.task == "svd" else 1e8
        moments = to_numpy(self._moments)
        calm = np.isfinite(moments).all() and np.abs(moments).max() < 1e3
        if good and calm and grown < limit:
            self._good = self._snapshot()
            return
        for view, kept in zip(self.views, self._good[0], strict=True):
            view.coefficients = kept
        _, self.n_steps, self._moments = self._good
        self._damping /= 2.0
        self.n_restarts += 1
        if self.n_restarts > 20:
            raise FloatingPointError(
                "the steps diverge however small they are; rescale the columns"
            )

    def _snapshot(self) -> tuple[Any, ...]:
        return [view.coefficients for view in self.views], self.n_steps, self._moments

    def measure(self, X: Rows, Y: Rows) -> None:
        """Take the moments of the functions from these rows instead of those on the way."""
        values = [view.values(Z)[0] for view, Z in zip(self.views, (X, Y), strict=True)]
        self._moments = _moments(*values)

    def functions(self) -> PairedFunctions:
        """Return paired functions, most strongly related first."""
        k = self.n_components
        M = to_numpy(self._moments)
        if self.task == "cca":
            s, *turns = canonical_pairs(M[:k, :k], M[k:, k:], M[:k, k:], (0.0, 0.0), k)
            s = np.clip(s, 0.0, 1.0)
        else:
            lengths = [_lengths(view) for view in self.views]
            T = lengths[0].T @ M[:k, k:] @ lengths[1]
            s, U, V = leading_pairs(T, k)
            turns = [R @ W for R, W in zip(lengths, (U, V), strict=True)]
        sides = []
        for view, C in zip(self.views, turns, strict=True):
            a = view.coefficients @ like(C, view.coefficients, np.float64)
            sides.append(Functions(view.features, a, to_numpy(view.means @ a)))
        return PairedFunctions(s, *sides)

    def copy(self) -> PairedSteps:
        """Return a copy that continues from here."""
        other = copy.copy(self)
        other.views = [copy.copy(view) for view in self.views]
        return other

    def state(self) -> State:
        """Return all that later steps depend on, as plain data."""
        names = ("n_components", "task", "center", "ridge", "step", "n_steps", "n_rows_seen")
        meta = {name: getattr(self, name) for name in (*names, "n_restarts")}
        meta |= {"damping": self._damping, "theta0": self._theta[0], "theta1": self._theta[1]}
        meta["good_steps"] = self._good[1]
        arrays: dict[str, Any] = {
            "lengths": np.array(self._lengths),
            "moments": self._moments,
            "good_moments": self._good[2],
        }
        for i, view in enumerate(self.views):
            arrays |= {f"a{i}": view.coefficients, f"means{i}": view.means}
            arrays[f"good_a{i}"] = self._good[0][i]
        for i, side in enumerate(self._preconditioners):
            arrays |= {f"pre{i}_values": side.values, f"pre{i}_vectors": side.vectors}
            meta[f"pre{i}_tail"] = side.tail
        return State(self.kind, 1, meta, {name: to_numpy(part) for name, part in arrays.items()})

    @classmethod
    def from_state(cls, state: State, x: FeatureMap, y: FeatureMap) -> PairedSteps:
        """Build the learner that ``state`` was taken from."""
        state.require(1)
        meta: Any = state.meta
        options = {name: meta[name] for name in ("task", "center", "ridge", "step")}
        learner = cls(x, y, meta["n_components"], **options)
        arrays: dict[str, Array] = dict(state.arrays)
        learner.n_steps, learner.n_rows_seen = meta["n_steps"], meta["n_rows_seen"]
        learner.n_restarts, learner._damping = meta["n_restarts"], meta["damping"]
        learner._theta = (meta["theta0"], meta["theta1"])
        seen, center = learner.n_rows_seen, learner.center
        learner.views = [
            View(features, arrays[f"means{i}"], arrays[f"a{i}"], seen, center)
            for i, features in enumerate((x, y))
        ]
        learner._moments, learner._lengths = arrays["moments"], arrays["lengths"].tolist()
        learner._good = (
            [arrays[f"good_a{i}"] for i in range(2)],
            meta["good_steps"],
            arrays["good_moments"],
        )
        learner._preconditioners = [
            Preconditioner(
                arrays[f"pre{i}_values"], arrays[f"pre{i}_vectors"], meta[f"pre{i}_tail"]
            )
            for i in range(2)
            if f"pre{i}_values" in arrays
        ]
        return learner


def _moments(u: Rows, v: Rows) -> Any:
    """Return the mean of (u, v)'(u, v) over rows."""
    both = namespace(u).concat([u, v], axis=1)
    return both.T @ both / u.shape[0]


def _lengths(view: View) -> Array:
    """Return R such that the functions times R are orthonormal in the kernel's space."""
    a = view.coefficients * view.coefficients.shape[0] ** 0.5
    Q = orthonormal(a)
    # a R = Q for the columns that there are.
    found = np.linalg.pinv(to_numpy(Q.T @ a))
    return np.asarray(np.pad(found, ((0, 0), (0, a.shape[1] - found.shape[1]))))
