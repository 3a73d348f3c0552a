"""Doubly stochastic kernel PCA: random rows and random features, neither of them kept.

Xie, Liang and Song (2015). The functions H have one coefficient vector a_j for each feature:
H(x) = sum_j Phi_j(x) a_j. A step with a batch of rows moves them along A H - H C, where A is
the covariance operator seen through the batch and C = H'H / n is computed on it. While there
are new features, each step gives one block of them its coefficients; afterwards every step
moves all. The start is a pilot: with no coefficients at all, H = 0 would stay so.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from sksketch._typing import Rows
from sksketch.arrays.namespace import finite, like, namespace, to_numpy, zeros
from sksketch.arrays.random import stream
from sksketch.arrays.subspace import block_krylov, inverse_square_root
from sksketch.kernel_methods.expansions import Functions, kernel_ritz, ritz_rotation
from sksketch.kernel_methods.feature_blocks import FeatureBlocks
from sksketch.kernel_methods.feature_maps import FeatureMap
from sksketch.kernel_methods.pca.krylov_passes import KrylovPasses
from sksketch.state.persistence import State

PILOT_COLUMNS = 2048
# Rows of a batch whose pairs are compared by the kernel itself.
RITZ_ROWS = 512
# Steps between two looks whether all is finite.
CHECK_EVERY = 50
# The mean square of each function moves to that of a batch with at least this weight.
MEMORY = 0.01


class DoublyStochasticPCA:
    """Leading eigenfunctions of the covariance operator of a kernel.

    Parameters
    ----------
    features : FeatureMap
    n_components : int
    feature_batch : int
        Features that a step adds while there are new ones.
    center : bool
        Whether features are centered, by means over all rows seen.
    step : str
        "matrix" divides by the running mean square of the functions and needs no size;
        "scalar" is the step of the paper, its size taken from the pilot.
    order : str
        "rotate" finds a subspace, rotated at the end; "gha" finds one function after the
        other (the generalized Hebbian algorithm), with scalar steps.
    """

    kind = "doubly-stochastic-pca"

    def __init__(
        self,
        features: FeatureMap,
        n_components: int,
        *,
        feature_batch: int = 1024,
        center: bool = True,
        step: str = "matrix",
        order: str = "rotate",
    ) -> None:
        self.features = features
        self.n_components = n_components
        self.feature_batch = feature_batch
        self.center = center
        self.step = "scalar" if order == "gha" else step
        self.order = order
        self.n_steps = 0
        self.n_rows_seen = 0
        self.n_restarts = 0
        self.coefficients: Any = None

    # Beginning

    def begin(self, X: Rows) -> None:
        """Start from the PCA of the first features on pilot rows."""
        width = self._whole(max(PILOT_COLUMNS, self.feature_batch))
        xp = namespace(X)
        F = self.features.columns(X, 0, width)
        F = xp.astype(F, xp.float64, copy=False)
        self.means = xp.mean(F, axis=0)
        if self.center:
            F -= self.means
        else:
            self.means = 0.0 * self.means
        # Counts of rows in the mean of each feature.
        self.counts = zeros(width, X) + float(X.shape[0])
        k, n = self.n_components, X.shape[0]
        start = stream(0, "pilot", 0).standard_normal((width, min(k + 8, width)))

        def covariance(W: Rows) -> Any:
            return F.T @ (F @ W) / (n * width)

        values, vectors = block_krylov(covariance, like(start, X), 6, k + 1)
        a = vectors[:, :k] * width**-0.5
        self.coefficients = xp.concat([a, zeros((width, k - a.shape[1]), X)], axis=1)
        values = np.pad(values, (0, k + 1 - len(values)))
        self._theta = step_sizes(values[0], values[k - 1], values[k])
        self._P, self._Q = self._ritz(F @ self.coefficients, X)
        self._pilot_trace = max(float(np.trace(self._P)), 1e-300)
        self._damping = 1.0
        self.n_rows_seen = n
        self._good = self._snapshot()

    def _whole(self, n_columns: int) -> int:
        """Return a number of columns that makes whole units, all of them at most."""
        unit = self.features.unit
        return min(-(-n_columns // unit) * unit, self.features.n_columns)

    # Steps

    def learn(self, X: Rows, share: float = 1.0) -> None:
        """Make one step with a batch of rows; ``share`` of it, if the batch is short."""
        H, blocks = self._values(X)
        rho = max(1.0 / (self.n_steps + 2), MEMORY) * share
        few = slice(0, RITZ_ROWS)
        P, Q = self._ritz(H[few], X[few])
        C = to_numpy(H.T @ H) / X.shape[0]
        self._P = (1.0 - rho) * self._P + rho * P
        self._Q = (1.0 - rho) * self._Q + rho * Q
        shrink, drive = (like(part, H, np.float64) for part in self._step_matrices(C, share))
        self.coefficients = self.coefficients @ shrink
        n_columns = self.coefficients.shape[0]
        if n_columns < self.features.n_columns:
            self._grow(X, H, drive)
        else:
            self._revisit(X, H, drive, blocks)
        self.n_steps += 1
        self.n_rows_seen += X.shape[0]
        if self.n_steps % CHECK_EVERY == 0:
            self._check()

    def _values(self, X: Rows) -> tuple[Any, FeatureBlocks]:
        """Return the functions on rows, and the features that they were computed from."""
        # The rows may be on another device than those before.
        self.coefficients, self.means, self.counts = (
            like(part, X) for part in (self.coefficients, self.means, self.counts)
        )
        blocks = FeatureBlocks(self.features, X, 0, self.coefficients.shape[0])
        return blocks.times(self.coefficients) - self.means @ self.coefficients, blocks

    def _step_matrices(self, C: Any, share: float) -> tuple[Any, Any]:
        """Return what the coefficients are multiplied with, and what the gradient is."""
        k = self.n_components
        if self.step == "matrix":
            eta = min(0.9, 2.0 / (self.n_steps + 10)) * share * self._damping
            ridge = 1e-6 * max(float(np.trace(self._P)), 1e-300)
            inverse = np.linalg.inv(self._P + ridge * np.eye(k))
            return np.eye(k) - eta * C @ inverse, eta * inverse
        first, decay = self._theta
        eta = first / (1.0 + decay * self.n_steps) * share * self._damping
        return np.eye(k) - eta * (np.triu(C) if self.order == "gha" else C), eta * np.eye(k)

    def _grow(self, X: Rows, H: Rows, drive: Rows) -> None:
        """Give the next features their first coefficients."""
        xp, start = namespace(X), self.coefficients.shape[0]
        stop = self._whole(start + self.feature_batch)
        gradient, sums = FeatureBlocks(self.features, X, start, stop).transposed_times(H)
        means = sums / X.shape[0] if self.center else 0.0 * sums
        gradient = gradient - means[:, None] * xp.sum(H, axis=0)[None, :]
        gradient = gradient / (X.shape[0] * (stop - start))
        self.coefficients = xp.concat([self.coefficients, gradient @ drive], axis=0)
        self.means = xp.concat([self.means, means])
        self.counts = xp.concat([self.counts, 0.0 * means + X.shape[0]])

    def _revisit(self, X: Any, H: Any, drive: Any, blocks: FeatureBlocks) -> None:
        """Move the coefficients of all features."""
        xp, n = namespace(X), X.shape[0]
        gradient, sums = blocks.transposed_times(H)
        if self.center:
            gradient = gradient - self.means[:, None] * xp.sum(H, axis=0)[None, :]
            self.counts = self.counts + n
            self.means = self.means + (sums - n * self.means) / self.counts
        step = drive / (n * self.features.n_columns)
        self.coefficients = self.coefficients + gradient @ step

    # Keeping to good states

    def _check(self) -> None:
        """Go back to the last good state if a step blew up; bring lengths back to one."""
        if not (finite(self.coefficients) and np.isfinite(self._Q).all()) or self._overgrown():
            self._restore(self._good)
            self._damping /= 2.0
            self.n_restarts += 1
            if self.n_restarts > 20:
                raise FloatingPointError(
                    "the steps diverge however small they are; rescale the columns"
                )
            return
        if self.step == "matrix":
            self._renormalize()
        self._good = self._snapshot()

    def _overgrown(self) -> bool:
        a = self.coefficients
        # The last step is not in P yet. Noise makes the lengths some times too large, no more.
        length = float(namespace(a).sum(a * a)) * a.shape[0]
        trace = float(np.trace(self._P))
        return length > 1e3 * self.n_components or trace > 1e2 * self._pilot_trace

    def _renormalize(self) -> None:
        """Bring the functions back to lengths of one if they left [1/4, 4] squared.

        If they span eigenfunctions, their inner products are P Q^-1 P, whatever the noise.
        """
        k = self.n_components
        ridge = 1e-12 * max(float(np.trace(self._Q)), 1e-300) * np.eye(k)
        N = self._P @ np.linalg.solve(self._Q + ridge, self._P)
        lengths = np.linalg.eigvalsh((N + N.T) / 2.0)
        if lengths[0] <= 0 or (lengths[0] >= 0.25 and lengths[-1] <= 4.0):
            return
        R = inverse_square_root((N + N.T) / 2.0)
        self.coefficients = self.coefficients @ like(R, self.coefficients, np.float64)
        self._P, self._Q = R @ self._P @ R, R @ self._Q @ R

    def _snapshot(self) -> tuple[Any, ...]:
        # Arrays are replaced by steps, never changed in place.
        return self.coefficients, self.n_steps, self._P, self._Q, self.means, self.counts

    def _restore(self, good: tuple[Any, ...]) -> None:
        self.coefficients, self.n_steps, self._P, self._Q, self.means, self.counts = good

    # Passes over all rows

    def passes(self) -> KrylovPasses:
        """Return the passes that solve for the features that there are, beginning here."""
        return KrylovPasses(self.features, self.coefficients, self.center)

    def take(self, passes: KrylovPasses) -> None:
        """Continue from what passes over all rows have found."""
        values, vectors = passes.result()
        n_columns, found = vectors.shape
        missing = zeros((n_columns, self.n_components - found), vectors)
        xp = namespace(vectors)
        self.coefficients = xp.concat([vectors * n_columns**-0.5, missing], axis=1)
        values = np.pad(values, (0, self.n_components - found))
        self._P, self._Q = np.diag(values), np.diag(values**2)
        if self.center:
            self.means, self.counts = passes.means, 0.0 * self.counts + passes.n_rows

    def copy(self) -> DoublyStochasticPCA:
        """Return a copy that continues from here."""
        return copy.copy(self)

    def measure(self, X: Rows) -> None:
        """Take the Ritz values from these rows instead of those on the way."""
        self._P, self._Q = self._ritz(self._values(X)[0], X)

    def _ritz(self, H: Rows, X: Rows) -> tuple[Any, Any]:
        return kernel_ritz(H, X, self.features.kernel, self.center)

    # Answers

    def functions(self) -> tuple[Any, Functions]:
        """Return the eigenvalues, largest first, and eigenfunctions of length one."""
        if self.order == "gha":
            mean_squares = np.maximum(np.diag(self._P), 1e-300)
            values = np.maximum(np.diag(self._Q) / mean_squares, 0.0)
            C = np.diag(np.sqrt(values / mean_squares))
        else:
            values, C = ritz_rotation(self._P, self._Q)
        a = self.coefficients @ like(C, self.coefficients, np.float64)
        a = a * like(_signs(a), a, np.float64)
        return values, Functions(self.features, a, to_numpy(self.means @ a))

    def state(self) -> State:
        """Return all that later steps depend on, as plain data."""
        meta = {
            "n_components": self.n_components,
            "feature_batch": self.feature_batch,
            "center": self.center,
            "step": self.step,
            "order": self.order,
            "n_steps": self.n_steps,
            "n_rows_seen": self.n_rows_seen,
            "n_restarts": self.n_restarts,
            "damping": self._damping,
            "pilot_trace": self._pilot_trace,
            "theta0": self._theta[0],
            "theta1": self._theta[1],
            "good_steps": self._good[1],
        }
        names = ("coefficients", "steps", "P", "Q", "means", "counts")
        arrays = {"coefficients": self.coefficients, "P": self._P, "Q": self._Q}
        arrays |= {"means": self.means, "counts": self.counts}
        good = dict(zip(names, self._good, strict=True))
        arrays |= {f"good_{name}": good[name] for name in names if name != "steps"}
        return State(self.kind, 1, meta, {name: to_numpy(part) for name, part in arrays.items()})

    @classmethod
    def from_state(cls, state: State, features: FeatureMap) -> DoublyStochasticPCA:
        """Build the learner that ``state`` was taken from."""
        state.require(1)
        meta: Any = state.meta
        learner = cls(
            features,
            meta["n_components"],
            feature_batch=meta["feature_batch"],
            center=meta["center"],
            step=meta["step"],
            order=meta["order"],
        )
        arrays = state.arrays
        learner.n_steps, learner.n_rows_seen = meta["n_steps"], meta["n_rows_seen"]
        learner.n_restarts, learner._damping = meta["n_restarts"], meta["damping"]
        learner._theta, learner._pilot_trace = (meta["theta0"], meta["theta1"]), meta["pilot_trace"]
        learner.coefficients = arrays["coefficients"]
        learner._P, learner._Q = arrays["P"], arrays["Q"]
        learner.means, learner.counts = arrays["means"], arrays["counts"]
        kept = [arrays[f"good_{name}"] for name in ("P", "Q", "means", "counts")]
        learner._good = (arrays["good_coefficients"], meta["good_steps"], *kept)
        return learner


def step_sizes(largest: float, last: float, next_one: float) -> tuple[float, float]:
    """Return theta0 and theta1 of the step theta0 / (1 + theta1 t), from pilot eigenvalues.

    theta0 keeps the steps stable; theta0 / theta1 is what the 1/t regime needs.
    """
    largest = max(largest, 1e-300)
    last = max(last, 1e-6 * largest)
    gap = max(last - next_one, 1e-300)
    first = 0.5 / largest
    return first, first / max(2.5 / last, min(1.0 / gap, 10.0 / last))


def _signs(a: Rows) -> Any:
    """Return signs that make the coefficient of largest size positive in each column."""
    found = to_numpy(a)
    largest = found[np.abs(found).argmax(axis=0), np.arange(found.shape[1])]
    return np.where(largest < 0, -1.0, 1.0)
