"""Online Newton learners written down plainly: one row at a time, dense, nothing reused.

The protocol of Luo et al. (2019), JMLR 20(45), with its errata corrected. In round t::

    w_t  = the point nearest to u_t in the norm of H_(t-1) with |w'x_t| <= C
    z_t  = w_t'x_t,   g_t = s l'(z_t) x_t,   r_t = sqrt((mu + eta_t) s) l'(z_t) x_t
    H_t  = H_(t-1) updated with r_t,         u_(t+1) = w_t - H_t^-1 g_t

with s the weight of the row. ``size`` is the paper's m: m - 1 rows are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

RANK_RTOL = 1e-8
NULL_RTOL = 1e-6
NO_CUT_RTOL = 1e-12


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


class Diagonal:
    """H is diagonal: ogd (alpha sqrt(t)) and AdaGrad (alpha + sqrt of the squared gradients)."""

    def __init__(self, d: int, alpha: float, kind: str) -> None:
        self.alpha, self.kind = alpha, kind
        self.squares = np.zeros(d)
        self.t = 1

    def add(self, r: np.ndarray, g: np.ndarray, t: int) -> float:
        self.squares += g * g
        self.t = t
        return 0.0

    def diagonal(self) -> np.ndarray:
        if self.kind == "ogd":
            return np.full(len(self.squares), self.alpha * math.sqrt(self.t))
        return self.alpha + np.sqrt(self.squares)

    def dense(self) -> np.ndarray:
        return np.diag(self.diagonal())

    def solve(self, v: np.ndarray) -> np.ndarray:
        return v / self.diagonal()


class Full:
    """H = alpha I + sum of r r'."""

    def __init__(self, d: int, alpha: float) -> None:
        self.alpha = alpha
        self.gram = np.zeros((d, d))

    def add(self, r: np.ndarray, g: np.ndarray, t: int) -> float:
        self.gram += np.outer(r, r)
        return 0.0

    def dense(self) -> np.ndarray:
        return self.gram + self.alpha * np.eye(len(self.gram))

    def solve(self, v: np.ndarray) -> np.ndarray:
        return np.linalg.solve(self.dense(), v)


class Rows(Full):
    """H = B'B + alpha I with a small matrix B: what fd, pfd, rfd, rp and oja have in common."""

    def __init__(self, d: int, alpha: float) -> None:
        self.alpha = alpha
        self.B = np.zeros((0, d))

    def dense(self) -> np.ndarray:
        return self.B.T @ self.B + self.alpha * np.eye(self.B.shape[1])

    def range(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the singular values of B that count, and their directions as rows."""
        if not self.B.size:
            return np.zeros(0), np.zeros((0, self.B.shape[1]))
        _, s, V = np.linalg.svd(self.B, full_matrices=False)
        keep = s > RANK_RTOL * s[0]
        return s[keep], V[keep]

    def solve(self, v: np.ndarray) -> np.ndarray:
        if self.alpha > 0:
            return super().solve(v)
        s, V = self.range()
        return V.T @ ((V @ v) / s**2)


class Shrinking(Rows):
    """Frequent Directions: a full buffer is cut down to ``size - 1`` rows.

    It has room for ``new`` rows beside those, and for twice as many after each cut up to ``most``.
    """

    def __init__(
        self, d: int, alpha: float, size: int, new: int, most: int, reduced: int, robust: bool
    ) -> None:
        super().__init__(d, alpha)
        self.kept, self.new, self.most = size - 1, new, most
        self.reduced, self.robust = reduced, robust
        self.shrinkage = 0.0

    def add(self, r: np.ndarray, g: np.ndarray, t: int) -> float:
        self.B = np.vstack([self.B, r])
        if len(self.B) < self.kept + self.new:
            return 0.0
        self.new = min(2 * self.new, self.most)
        _, s, V = np.linalg.svd(self.B, full_matrices=False)
        squares = s**2
        cut = float(squares[self.kept]) if len(squares) > self.kept else 0.0
        if self.alpha == 0 and cut <= NO_CUT_RTOL * squares[0]:
            cut = 0.0
        left = squares[: self.kept].copy()
        first = self.kept + 1 - self.reduced
        left[first:] = np.maximum(left[first:] - cut, 0.0)
        self.B = np.sqrt(left)[:, None] * V[: self.kept]
        self.shrinkage += cut
        if self.robust:
            self.alpha += cut / 2
        return cut


class RandomProjection(Rows):
    """B += s_t r_t' with fresh s_t ~ N(0, I / size)."""

    def __init__(self, d: int, alpha: float, size: int, rng: np.random.Generator) -> None:
        super().__init__(d, alpha)
        self.B = np.zeros((size, d))
        self.rng = rng

    def add(self, r: np.ndarray, g: np.ndarray, t: int) -> float:
        self.B += np.outer(self.rng.standard_normal(len(self.B)) / math.sqrt(len(self.B)), r)
        return 0.0


class Oja(Rows):
    """Leading eigenpairs of the rows, followed by Oja's rule from orthonormal rows ``V``."""

    def __init__(self, d: int, alpha: float, V: np.ndarray) -> None:
        super().__init__(d, alpha)
        self.V, self.values = np.array(V, dtype=np.float64), np.zeros(len(V))

    def add(self, r: np.ndarray, g: np.ndarray, t: int) -> float:
        gamma = 1.0 / t
        p = self.V @ r
        self.values = (1 - gamma) * self.values + gamma * p**2
        Q, R = np.linalg.qr((self.V + gamma * np.outer(p, r)).T)
        self.V = (Q * np.where(np.diag(R) < 0, -1.0, 1.0)).T
        self.B = np.sqrt(t * self.values)[:, None] * self.V
        return 0.0


def make_hessian(method: str, d: int, alpha: float, size: int, **options):
    """Build the curvature of a method before its first row."""
    if method in ("ogd", "adagrad"):
        return Diagonal(d, alpha, method)
    if method == "full":
        return Full(d, alpha)
    if method == "rp":
        return RandomProjection(d, alpha, size, options["rng"])
    if method == "oja":
        return Oja(d, alpha, options["start"])
    reduced = max(1, int(options.get("fraction", 0.2) * size)) if method == "pfd" else size
    new, most = 1, 3 * size - (size - 1)
    if buffer_rows := options.get("buffer_rows"):
        new = most = buffer_rows - (size - 1)
    return Shrinking(d, alpha, size, new, most, reduced, method == "rfd")


def project(hessian, u: np.ndarray, x: np.ndarray, tau: float, rule: str) -> np.ndarray:
    """Return u moved so that its score drops by ``tau``; may leave it where the rule says so."""
    if hessian.alpha > 0:
        v = hessian.solve(x)
        return u - tau / (x @ v) * v
    if rule == "clip":
        return u
    s, V = hessian.range()
    inside = V @ x
    v = V.T @ (inside / s**2)
    outside = x - V.T @ inside
    leaves = np.linalg.norm(outside) > NULL_RTOL * np.linalg.norm(x)
    enters = np.linalg.norm(inside) > NULL_RTOL * np.linalg.norm(x)
    if rule == "exact" and leaves:
        return u - tau / (x @ outside) * outside
    if rule == "printed":
        other = x - v
        moves = [-tau / (x @ p) * p for p in (v, other) if abs(x @ p) > NULL_RTOL**2 * (x @ x)]
        if not moves:
            return u
        B = hessian.B
        return u + min(moves, key=lambda move: float(np.sum((B @ move) ** 2)))
    return u - tau / (x @ v) * v if enters else u


@dataclass
class Round:
    """What one row did: its point, score, gradient and curvature."""

    point: np.ndarray
    raw: float
    score: float
    loss: float
    gradient: np.ndarray
    step: float
    weight: float
    cut: float
    ridge: float
    quadratic: float
    hessian: np.ndarray | None = None


@dataclass
class Run:
    """The rounds of a run, its last weights and its initial ridge."""

    initial_ridge: float
    rounds: list[Round] = field(default_factory=list)
    weights: np.ndarray | None = None
    hessian: object = None

    @property
    def scores(self) -> np.ndarray:
        return np.array([r.score for r in self.rounds])

    @property
    def raw(self) -> np.ndarray:
        return np.array([r.raw for r in self.rounds])

    @property
    def total_loss(self) -> float:
        return sum(r.weight * r.loss for r in self.rounds)

    @property
    def ridge(self) -> float:
        return self.hessian.alpha

    @property
    def shrinkage(self) -> float:
        return sum(r.cut for r in self.rounds)


def learn(
    X,
    y,
    *,
    method: str = "rfd",
    loss: str | Loss = "squared",
    size: int = 20,
    C: float = 1.0,
    initial_ridge: float | str = "auto",
    null_projection: str = "range",
    sample_weight=None,
    keep: bool = False,
    **options,
) -> Run:
    """Run a learner over the rows; ``keep`` also keeps H_t of every round.

    Options: ``buffer_rows``, ``fraction`` (pfd), ``rng`` (rp), ``start`` (oja).
    """
    X = np.asarray(X, dtype=np.float64)
    loss = LOSSES[loss] if isinstance(loss, str) else loss
    mu = loss.curvature(C)
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
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
        w = u if score == raw else project(hessian, u, x, raw - score, null_projection)
        slope, step = loss.derivative(score, target), loss.step(t)
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
                loss.value(score, target),
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
