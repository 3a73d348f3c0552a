"""The Hermite problem of section 7.1: kernel PCA whose answer is known in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.polynomial.hermite import hermgauss, hermval

from benchmarks.lib.timing import cpu_seconds
from sksketch import StreamingKernelPCA

N_COMPONENTS = 3
PILOT_ROWS = 2000
# Rows are N(0, 1) and the kernel is exp(-(x - y)^2 / 2).
A, B = 0.25, 0.5
C = math.sqrt(A * A + 2.0 * A * B)
TRUE_VALUES = [
    math.sqrt(2.0 * A / (A + B + C)) * (B / (A + B + C)) ** j for j in range(N_COMPONENTS)
]


def eigenfunctions(x: np.ndarray) -> np.ndarray:
    """Return the exact eigenfunctions, orthonormal in L2 of the rows, one column each."""
    columns = []
    for j in range(N_COMPONENTS):
        scale = (C / A) ** 0.25 / math.sqrt(2.0**j * math.factorial(j))
        polynomial = hermval(math.sqrt(2.0 * C) * x, [0] * j + [1])
        columns.append(scale * np.exp(-(C - A) * x * x) * polynomial)
    return np.column_stack(columns)


def quadrature(n_points: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights of means over N(0, 1)."""
    points, weights = hermgauss(n_points)
    return points * math.sqrt(2.0), weights / math.sqrt(math.pi)


POINTS, WEIGHTS = quadrature()


def sine_squared(H: np.ndarray) -> float:
    """Return sin^2 of the largest angle in L2, from function values at `POINTS`."""
    root = np.sqrt(WEIGHTS)[:, None]
    mine, truth = (np.linalg.qr(root * Z)[0] for Z in (H, eigenfunctions(POINTS)))
    # From the sines themselves: 1 - cos^2 would round at 1e-16, but its root at 1e-8.
    rest = mine - truth @ (truth.T @ mine)
    return float(np.linalg.norm(rest, 2) ** 2)


@dataclass
class Convergence:
    """What was seen on the way, at each of the steps in ``steps``."""

    seed: int
    steps: list[int] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    n_features: int = 0
    eigenvalues: list[float] = field(default_factory=list)
    # Eigenvalues by the lengths of the coefficients.
    by_lengths: list[float] = field(default_factory=list)
    # |cos| of each function with the exact one, and the functions on a grid.
    cosines: list[float] = field(default_factory=list)
    functions: list[list[float]] = field(default_factory=list)
    seconds: float = 0.0


GRID = np.linspace(-3.5, 3.5, 141)


@dataclass(frozen=True)
class Sizes:
    """Rows, features and steps of a run."""

    n_rows: int
    n_random_features: int
    feature_batch: int
    batch_size: int
    marks: tuple[int, ...]


def converge(sizes: Sizes, seed: int, step: str = "matrix") -> Convergence:
    """Make the steps, and measure at the marks; measuring is not timed."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((sizes.n_rows, 1)).astype(np.float32)
    model = StreamingKernelPCA(
        N_COMPONENTS,
        bandwidth=1.0,
        n_random_features=sizes.n_random_features,
        solver="sgd",
        center=False,
        batch_size=sizes.batch_size,
        feature_batch=sizes.feature_batch,
        step=step,
        random_state=seed,
    )
    found = Convergence(seed)
    found.seconds += cpu_seconds(lambda: model.partial_fit(X[:PILOT_ROWS]))[0]
    done = 0
    for mark in sizes.marks:
        begin, end = done * sizes.batch_size, mark * sizes.batch_size
        rows = np.take(X, range(begin, end), axis=0, mode="wrap")
        found.seconds += cpu_seconds(lambda rows=rows: model.partial_fit(rows))[0]
        done = mark
        found.steps.append(mark)
        found.errors.append(sine_squared(model.transform(POINTS[:, None])))
    conclude(found, model)
    return found


def conclude(found: Convergence, model: StreamingKernelPCA) -> None:
    """Add the eigenvalues and eigenfunctions that there are at the end."""
    H, truth = model.transform(POINTS[:, None]), eigenfunctions(POINTS)
    inner = (H * WEIGHTS[:, None]).T @ truth
    lengths = np.sqrt((H * H * WEIGHTS[:, None]).sum(axis=0))
    found.cosines = np.abs(np.diag(inner) / lengths).tolist()
    found.n_features = model.n_random_features_used_
    found.eigenvalues = model.eigenvalues_.tolist()
    signs = np.sign(np.diag(inner)) / lengths
    found.functions = (model.transform(GRID[:, None]) * signs).T.tolist()
    found.by_lengths = values_by_lengths(model, H)


def values_by_lengths(model: StreamingKernelPCA, H: np.ndarray) -> list[float]:
    """Return the eigenvalues that the lengths of the coefficients would give."""
    a = model._functions().coefficients
    R = np.linalg.qr(a * math.sqrt(a.shape[0]), mode="r")
    orthonormal = np.linalg.solve(R.T, H.T).T
    P = (orthonormal * WEIGHTS[:, None]).T @ orthonormal
    return np.linalg.eigvalsh(P)[::-1].tolist()


def slope(runs: list[Convergence]) -> float:
    """Return the log-log slope of the mean error over the steps."""
    mean = np.mean([run.errors for run in runs], axis=0)
    return float(np.polyfit(np.log(runs[0].steps), np.log(mean), 1)[0])
