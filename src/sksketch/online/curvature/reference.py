"""Online Newton with the curvature of the loss as it is derived: one row at a time, dense.

In round t, with the row x in the units of the columns, weight s and H = B'B + alpha I::

    z   = W'x                     the scores that are predicted
    v   = H^-1 x,  q = x'v
    z'  = argmin s l(z') + |z' - z|^2 / (2 q)
    W  -= v (s l'(z'))'           which is the Newton step with H + h x x'
    B  gains the row sqrt(h) x    h is the mean curvature of s l between z and z'

A full buffer is shrunk as Frequent Directions does. Columns are divided by powers of two near
their standard deviations and, where all rows have them, counted from their means. A change of
either is a change of coordinates of B and W; the ridge of a column is alpha times its squared
scale, and where that grows the weights are pulled back by as much as if it had been so before.

This is the file to read beside the derivation. The learners do the same at the cost of the
non-zeros, and the tests compare them with `learn_by_loss`, row by row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.optimize
import scipy.special

from sksketch._typing import Array
from sksketch.online.curvature.problem import Problem, SketchOptions

# Scales from the center at which a column gets a larger one.
REACH = 4.0
# The most it grows at a time, after the first rows of all.
MOST_RISE, FIRST_ROWS = 2.0, 32


def curvature_of_step(
    problem: Problem, z: Array, y: Array, s: float, q: float, mean_residual: float
) -> tuple[Array, float]:
    """Return the slopes by which W moves along v, and h."""
    Q = s * q
    if problem.loss == "softmax":
        return _softmax_step(z, y, s, Q)
    if problem.loss == "logistic":
        margin = float(y[0] * z[0])
        before = float(scipy.special.expit(-margin))
        t = scipy.optimize.brentq(
            lambda t: t - scipy.special.expit(-(margin + Q * t)), 0.0, before, xtol=1e-300
        )
        moved = Q * t
        rate = math.expm1(moved) / Q if moved < 1.0 else math.inf
        h = (before - t) / moved if moved >= 1.0 else (1.0 - before) * rate
        return -y * s * t, s * h
    gap = z - y
    if problem.loss == "squared":
        slopes, own = gap, np.ones_like(z)
    elif problem.loss == "hinge":
        short = 1.0 - y * z
        slopes, own = np.where(short > 0, -y, 0.0), np.where(short > 0, 0.5, 0.0)
        own = own / np.maximum(short, 1.0)
    elif problem.loss == "huber":
        slopes = np.clip(gap, -problem.knee, problem.knee)
        own = np.minimum(1.0, problem.knee / np.maximum(np.abs(gap), 1e-300))
    else:
        size = np.abs(gap)
        slopes, own = (
            np.sign(gap),
            np.where(size > 0, 1.0, 0.0) / np.maximum(size + mean_residual, 1e-300),
        )
    h = s * float(own.max())
    return s * slopes / (1.0 + h * q), h


def _softmax_step(z: Array, y: Array, s: float, Q: float) -> tuple[Array, float]:
    def force(new: Array) -> Array:
        return np.asarray((new - z) / Q + scipy.special.softmax(new) - y)

    def turn(new: Array) -> Array:
        p = scipy.special.softmax(new)
        return np.asarray(np.eye(len(z)) / Q + np.diag(p) - np.outer(p, p))

    def cost(new: Array) -> float:
        return float(((new - z) ** 2).sum() / (2 * Q) + scipy.special.logsumexp(new) - y @ new)

    new = z.copy()
    for _ in range(200):
        step, length = np.linalg.solve(turn(new), force(new)), 1.0
        near = np.abs(force(new)).max() < 1e-6
        while not near and cost(new - length * step) > cost(new) and length > 1e-12:
            length /= 2
        new = new - length * step
        if np.abs(force(new)).max() < 1e-14:
            break
    before, after = scipy.special.softmax(z) - y, scipy.special.softmax(new) - y
    return s * after, s * float((before - after) @ after / (Q * (after @ after)))


@dataclass
class Run:
    """The outcome of a run: the scores of all rounds, and the weights in the user's units."""

    scores: Array
    coefficients: Array
    intercepts: Array
    loss: float


class Reference:
    """The state of a run: B, W and the units, all dense."""

    def __init__(self, problem: Problem, sketch: SketchOptions | None, width: int, dense: bool):
        self.problem, self.sketch = problem, sketch
        self.lead = int(problem.constant)
        p = width + self.lead
        self.B, self.W = np.zeros((0, p)), np.zeros((p, problem.n_outputs))
        self.alpha, self.t = problem.alpha, 0
        self.scale, self.base = (np.full(p, 0.0 if problem.normalize else 1.0) for _ in range(2))
        if self.lead:
            self.scale[0] = self.base[0] = problem.constant_scale(exact=sketch is None)
        self.lost, self.center, self.touched = np.zeros(p), np.zeros(p), np.zeros(p, bool)
        self.centers = problem.normalize and dense and self.lead == 1
        self.spreads = problem.normalize and dense
        self.sums, self.squares, self.origin = (np.zeros(p) for _ in range(3))

    def solve(self, V: Array) -> Array:
        """Return H^-1 V."""
        H = self.B.T @ self.B + self.alpha * np.eye(self.B.shape[1])
        return np.linalg.solve(H, V)

    def rescale(self, j: int, base: float) -> Array:
        """Give a column another scale; return the force on its weights."""
        total = base**2 + self.lost[j] / self.alpha
        scale = math.sqrt(2.0 ** math.ceil(math.log2(total)))
        ratio = self.scale[j] / scale
        self.B[:, j] *= ratio
        self.W[j] /= ratio
        force = np.zeros_like(self.W)
        force[j] = self.alpha * (base**2 - self.base[j] ** 2) / scale**2 * self.W[j]
        self.base[j], self.scale[j] = base, scale
        return force

    def meet(self, x: Array, present: Array) -> None:
        """Give columns their first scales, or larger ones."""
        if self.centers and self.t == 0:
            self.center[1:] = self.origin[1:] = x[1:]
        for j in np.flatnonzero(present).tolist():
            size = abs(x[j] - self.center[j])
            if j < self.lead or size == 0.0:
                continue
            if self.scale[j] == 0.0:
                self.scale[j] = self.base[j] = 2.0 ** math.floor(math.log2(size))
            elif size > REACH * self.base[j]:
                base = 2.0 ** math.ceil(math.log2(size / REACH))
                if self.t >= FIRST_ROWS or not self.spreads:
                    base = min(base, MOST_RISE * self.base[j])
                force = self.rescale(j, base)
                self.W -= self.solve(force)

    def recenter(self) -> None:
        """Move centers to the means and scales to the standard deviations of recent rows."""
        n = self.t // 2 if self.t > 4 else self.t
        force = np.zeros_like(self.W)
        for j in range(self.lead, len(self.W)):
            if self.scale[j] == 0.0:
                continue
            mean = self.sums[j] / n
            spread2 = self.squares[j] / n - (mean**2 if self.centers else 0.0)
            if self.centers:
                shift = self.origin[j] + mean - self.center[j]
                f = shift / self.scale[j] * self.scale[0]
                self.B[:, j] -= f * self.B[:, 0]
                self.W[0] += f * self.W[j]
                self.center[j] += shift
            if spread2 > 1e-14 * self.squares[j] / n:
                base = 2.0 ** math.floor(math.log2(math.sqrt(spread2)))
                if base != self.base[j]:
                    force += self.rescale(j, base)
        self.W -= self.solve(force)
        self.sums[:], self.squares[:] = 0.0, 0.0

    def shrink(self) -> None:
        """Cut a full buffer, and make up for what is lost."""
        assert self.sketch is not None
        ell = self.sketch.sketch_size - 1
        _, s, V = np.linalg.svd(self.B, full_matrices=False)
        squares = np.append(s**2, np.zeros(max(ell + 1 - len(s), 0)))
        cut = squares[ell]
        left = np.maximum(squares[:ell] - cut, 0.0)
        rows = np.zeros((ell, self.B.shape[1]))
        rows[: len(V[:ell])] = np.sqrt(left[: len(V[:ell])])[:, None] * V[:ell]
        gone = np.maximum((self.B**2).sum(axis=0) - (rows**2).sum(axis=0), 0.0)
        self.B = rows
        if self.sketch.robust and not self.problem.normalize:
            self.alpha += cut / 2
        if self.sketch.robust and self.problem.normalize:
            self.lost += gone * self.scale**2
            for j in np.flatnonzero(self.touched & (self.scale > 0.0)).tolist():
                self.rescale(j, self.base[j])
        self.touched[:] = False


def learn_by_loss(
    X: Array,
    targets: Array,
    problem: Problem,
    sketch: SketchOptions | None = None,
    *,
    dense: bool = True,
    sample_weight: Array | None = None,
) -> Run:
    """Run a learner over the rows.

    Parameters
    ----------
    X, targets : arrays of shapes (n_rows, n_features) and (n_rows, n_outputs)
        Rows and targets.
    problem : Problem
        The loss, and how columns are treated.
    sketch : SketchOptions, default=None
        How the curvature is sketched; None keeps all of it.
    dense : bool, default=True
        Whether zeros are values like others; otherwise they are columns that a row has not.
    sample_weight : array of shape (n_rows,), default=None
        Weights of the rows.

    Returns
    -------
    Run
        Scores before each row, and the weights after the last.

    Examples
    --------
    >>> problem = Problem("squared", 1, False, 1.0, False, False, 1.0)
    >>> run = learn_by_loss(np.eye(2), np.ones((2, 1)), problem)
    >>> run.coefficients
    array([[0.5, 0.5]])
    """
    one = Reference(problem, sketch, X.shape[1], dense)
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    scores, loss = np.zeros(targets.shape), 0.0
    residuals, total, mean = 0.0, 0.0, np.zeros(targets.shape[1])
    for i in range(len(X)):
        row = np.append(np.ones(one.lead), X[i])
        present = np.ones(len(row), bool) if dense else row != 0.0
        s = float(weights[i])
        if s > 0 and problem.normalize:
            one.meet(row, present)
        known = present & (one.scale > 0.0)
        x = np.zeros(len(row))
        x[known] = (row[known] - one.center[known]) / one.scale[known]
        z, y = x @ one.W, targets[i]
        scores[i] = z
        one.touched |= present
        if s == 0:
            continue
        one.t += 1
        v = one.solve(x)
        q = float(x @ v)
        total += s
        residuals += s * float(np.abs(z - y).mean())
        slopes, h = curvature_of_step(problem, z, y, s, q, residuals / total)
        if problem.loss == "squared":
            scores[i] = (z + s * q * mean) / (1.0 + s * q)
        loss += s * _loss(problem, scores[i], y)
        if problem.normalize and problem.constant:
            mean = mean + s / total * (y - mean)
        one.W -= np.outer(v, slopes)
        if h > 0.0:
            one.B = np.vstack([one.B, math.sqrt(h) * x])
            if sketch is not None and len(one.B) == sketch.buffer_rows:
                one.shrink()
        one.sums += row - one.origin
        one.squares += (row - one.origin) ** 2
        if one.spreads and one.t > 2 and one.t & (one.t - 1) == 0:
            one.recenter()
    W = one.W / np.where(one.scale > 0.0, one.scale, 1.0)[:, None]
    lead = one.lead
    intercepts = (W[0] if lead else 0.0) - one.center[lead:] @ W[lead:]
    return Run(scores, W[lead:].T, intercepts, loss)


def _loss(problem: Problem, z: Array, y: Array) -> float:
    if problem.loss == "squared":
        return float(((z - y) ** 2).sum())
    if problem.loss == "softmax":
        return float(scipy.special.logsumexp(z) - z @ y)
    if problem.loss == "logistic":
        return float(np.logaddexp(0.0, -y * z).sum())
    if problem.loss == "hinge":
        return float(np.maximum(0.0, 1.0 - y * z).sum())
    gap, knee = np.abs(z - y), problem.knee
    if problem.loss == "absolute":
        return float(gap.sum())
    return float(np.where(gap <= knee, gap**2 / 2, knee * (gap - knee / 2)).sum())
