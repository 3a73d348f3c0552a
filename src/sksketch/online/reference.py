"""Online Newton learners as the paper writes them: one row at a time, dense, nothing reused.

The protocol of Luo et al. (2019), JMLR 20(45), with its errata corrected. In round t::

    w_t  = the point nearest to u_t in the norm of H_(t-1) with |w'x_t| <= C
    z_t  = w_t'x_t,   g_t = s l'(z_t) x_t,   r_t = sqrt((mu + eta_t) s) l'(z_t) x_t
    H_t  = H_(t-1) updated with r_t,         u_(t+1) = w_t - H_t^-1 g_t

with s the weight of the row. ``size`` is the paper's m: m - 1 rows are kept.

This is the file to read beside the paper. `SketchedNewton` and the other learners do the same at
the cost of the non-zeros, and the tests compare every one of them with `learn`, row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sksketch._typing import Array, RowsLike
from sksketch.online.gradient.reference_hessians import Hessian, Rows, make_hessian

NULL_RTOL = 1e-6


@dataclass(frozen=True)
class Loss:
    """A loss of the score z, with what the bounds need for |z| <= C."""

    value: Callable[[float, float], float]
    derivative: Callable[[float, float], float]
    curvature: Callable[[float], float]
    slope: Callable[[float], float]
    step: Callable[[int], float]


def _per_round(t: int) -> float:
    return 1.0 / t


def _per_root(t: int) -> float:
    return 1.0 / math.sqrt(t)


def _logistic_slope(z: float, y: float) -> float:
    a = y * z
    return -y / (1.0 + math.exp(a)) if a < 0 else -y * math.exp(-a) / (1.0 + math.exp(-a))


def huber(width: float = 1.0) -> Loss:
    """Return Huber's loss, quadratic up to ``width`` and linear beyond."""

    def value(z: float, y: float) -> float:
        a = abs(z - y)
        return 0.5 * a * a if a <= width else width * (a - 0.5 * width)

    return Loss(
        value,
        lambda z, y: min(max(z - y, -width), width),
        lambda C: 0.0,
        lambda C: min(2.0 * C, width),
        _per_root,
    )


LOSSES = {
    "squared": Loss(
        lambda z, y: (z - y) ** 2,
        lambda z, y: 2.0 * (z - y),
        lambda C: 1.0 / (8.0 * C * C),
        lambda C: 4.0 * C,
        _per_round,
    ),
    "logistic": Loss(
        lambda z, y: float(np.logaddexp(0.0, -y * z)),
        _logistic_slope,
        lambda C: 0.5 * min(1.0 / (8.0 * C), math.exp(-C)),
        lambda C: 1.0,
        _per_round,
    ),
    "hinge": Loss(
        lambda z, y: max(0.0, 1.0 - y * z),
        lambda z, y: -y if y * z < 1.0 else 0.0,
        lambda C: 0.0,
        lambda C: 1.0,
        _per_root,
    ),
    "absolute": Loss(
        lambda z, y: abs(z - y),
        lambda z, y: float(np.sign(z - y)),
        lambda C: 0.0,
        lambda C: 1.0,
        _per_root,
    ),
    "huber": huber(),
}


def project(hessian: Hessian, u: Array, x: Array, tau: float, rule: str) -> Array:
    """Return u moved so that its score drops by ``tau``; may leave it where the rule says so."""
    if hessian.alpha > 0 or not isinstance(hessian, Rows):
        v = hessian.solve(x)
        return np.asarray(u - tau / (x @ v) * v)
    if rule == "clip":
        return u
    s, V = hessian.range()
    inside = V @ x
    v = V.T @ (inside / s**2)
    outside = x - V.T @ inside
    leaves = np.linalg.norm(outside) > NULL_RTOL * np.linalg.norm(x)
    enters = np.linalg.norm(inside) > NULL_RTOL * np.linalg.norm(x)
    if rule == "exact" and leaves:
        return np.asarray(u - tau / (x @ outside) * outside)
    if rule == "printed":
        other = x - v
        moves = [-tau / (x @ p) * p for p in (v, other) if abs(x @ p) > NULL_RTOL**2 * (x @ x)]
        if not moves:
            return u
        B = hessian.B
        return np.asarray(u + min(moves, key=lambda move: float(np.sum((B @ move) ** 2))))
    return np.asarray(u - tau / (x @ v) * v) if enters else u


@dataclass
class Round:
    """One row: its point, score, gradient and curvature."""

    point: Array
    raw: float
    score: float
    loss: float
    gradient: Array
    step: float
    weight: float
    cut: float
    ridge: float
    quadratic: float
    hessian: Array | None = None


@dataclass
class Run:
    """The rounds of a run, its last weights and its initial ridge."""

    initial_ridge: float
    rounds: list[Round] = field(default_factory=list)
    weights: Array | None = None
    hessian: Hessian | None = None

    @property
    def scores(self) -> Array:
        """Scores within the limit, one a round."""
        return np.array([r.score for r in self.rounds])

    @property
    def raw(self) -> Array:
        """Scores before the projection."""
        return np.array([r.raw for r in self.rounds])

    @property
    def total_loss(self) -> float:
        """Weighted sum of the losses."""
        return sum(r.weight * r.loss for r in self.rounds)

    @property
    def ridge(self) -> float:
        """Ridge of the curvature after the last round."""
        assert self.hessian is not None
        return self.hessian.alpha

    @property
    def shrinkage(self) -> float:
        """Sum of all cuts."""
        return sum(r.cut for r in self.rounds)


def learn(
    X: RowsLike,
    y: Iterable[float],
    *,
    method: str = "rfd",
    loss: str | Loss = "squared",
    size: int = 20,
    C: float = 1.0,
    initial_ridge: float | str = "auto",
    sample_weight: Iterable[float] | None = None,
    keep: bool = False,
    **options: Any,
) -> Run:
    """Run a learner over the rows, as Algorithm 3 of Luo et al. (2019) does.

    Parameters
    ----------
    X, y : array-like of shapes (n_rows, n_features) and (n_rows,)
        Rows and targets.
    method : {"rfd", "fd", "pfd", "full", "adagrad", "ogd", "rp", "oja"}, default="rfd"
        Kind of curvature.
    loss : str or Loss, default="squared"
        A name of `LOSSES`, or a loss.
    size : int, default=20
        m of the paper.
    C : float, default=1.0
        Limit of the scores.
    initial_ridge : float or "auto", default="auto"
        alpha_0; "auto" takes the squared length of the first row of the curvature.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows.
    keep : bool, default=False
        Keep H_t of every round as well.
    **options
        ``buffer_rows``, ``fraction`` (pfd), ``rng`` (rp), ``start`` (oja), and
        ``null_projection``, the rule of `project` where H is singular: "range" unless given.

    Returns
    -------
    Run
        All rounds.

    Examples
    --------
    >>> run = learn([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1.0, -1.0, 1.0])
    >>> run.scores.round(3)
    array([ 0.   ,  0.   , -0.063])
    """
    X = np.asarray(X, dtype=np.float64)
    form = LOSSES[loss] if isinstance(loss, str) else loss
    mu = form.curvature(C)
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
    rule = options.pop("null_projection", "range")
    waiting = initial_ridge == "auto"
    if initial_ridge == 0.0 and method == "rfd":
        options = {"buffer_rows": 2 * size} | options
    hessian = make_hessian(
        method, X.shape[1], 0.0 if waiting else float(initial_ridge), size, **options
    )
    run = Run(0.0 if waiting else float(initial_ridge))
    u, t = np.zeros(X.shape[1]), 0
    for x, target, s in zip(X, y, weights, strict=True):
        if s == 0:
            continue
        t += 1
        raw = float(u @ x)
        score = min(max(raw, -C), C)
        w = u if score == raw else project(hessian, u, x, raw - score, rule)
        slope, step = form.derivative(score, target), form.step(t)
        g = s * slope * x
        r = math.sqrt((mu + step) * s) * slope * x
        u, cut, quadratic = w, 0.0, 0.0
        if g.any():
            if waiting:
                waiting = False
                hessian.alpha = run.initial_ridge = float(r @ r)
            cut = hessian.add(r, g, t)
            direction = hessian.solve(g)
            quadratic = float(g @ direction)
            u = w - direction
        run.rounds.append(
            Round(
                w,
                raw,
                score,
                form.value(score, target),
                g,
                step,
                s,
                cut,
                hessian.alpha,
                quadratic,
                hessian.dense() if keep else None,
            )
        )
    run.weights, run.hessian = u, hessian
    return run
