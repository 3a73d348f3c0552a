"""Table 3: the total correlation between the halves of digits, by every method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.lib.timing import cpu_seconds
from benchmarks.papers.xie2015.digits import Digits, Pair, Stream, held_out
from sksketch.kernel_methods.bandwidth import median_distance
from sksketch.kernel_methods.feature_maps import FeatureMap, NystromMap, RandomFeatureMap
from sksketch.kernel_methods.kernels import Kernel
from sksketch.kernel_methods.pairs.pair_moments import PairMoments
from sksketch.kernel_methods.pairs.paired_steps import PairedSteps

BANDWIDTH_ROWS, PILOT_ROWS, CHUNK_ROWS = 2000, 4000, 4096
RIDGES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
LINEAR, RANDOM, NYSTROM = "linear", "RFF", "Nystrom"
PLAIN, PRECONDITIONED = "DSGD plain", "DSGD preconditioned"


@dataclass(frozen=True)
class Sizes:
    """How large the comparison is."""

    n_components: int
    n_features: tuple[int, ...]
    n_random_features: int
    batch_size: int
    marks: tuple[int, ...]
    # Pairs of the deformed stream that the methods with all covariances get.
    n_deformed: int
    # Ridges of the steps, on the digits as they are and deformed.
    ridges: tuple[float, float]


@dataclass
class Total:
    """One line of the table: totals on held-out pairs, both ways to count."""

    data: str
    method: str
    # Features, or steps.
    size: int
    n_pairs: int
    ridge: float
    paired: float
    canonical: float
    seconds: float
    by_ridge: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"{self.method} {self.size}" if self.size else self.method


def totals(U: np.ndarray, V: np.ndarray) -> tuple[float, float]:
    """Return the sum of correlations of paired columns, and of canonical correlations."""
    U, V = (np.asarray(Z, np.float64) - Z.mean(axis=0, dtype=np.float64) for Z in (U, V))
    lengths = np.linalg.norm(U, axis=0) * np.linalg.norm(V, axis=0)
    paired = ((U * V).sum(axis=0) / np.maximum(lengths, 1e-300)).sum()
    bases = [np.linalg.qr(Z)[0] for Z in (U, V)]
    return float(paired), float(np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).sum())


class Views:
    """The pairs to learn from and the ones held out, as they are or deformed on the fly."""

    def __init__(self, digits: Digits, deform: bool, sizes: Sizes) -> None:
        self.digits, self.deform, self.sizes = digits, deform, sizes
        self.name = "deformed" if deform else digits.name
        self.n_pairs = sizes.n_deformed if deform else len(digits.train)
        self.test = held_out(digits, deform)
        first = self.stream().take(BANDWIDTH_ROWS)
        self.kernels = [Kernel("gaussian", median_distance(Z, "gaussian", 0)) for Z in first]

    def stream(self) -> Stream:
        return Stream(self.digits, self.deform, 1)

    def chunks(self) -> list[int]:
        whole, rest = divmod(self.n_pairs, CHUNK_ROWS)
        return [CHUNK_ROWS] * whole + [rest] * (rest > 0)


def linear(views: Views) -> Total:
    """Return exact linear CCA with the best of a few ridges."""
    rank = views.sizes.n_components

    def moments() -> tuple[np.ndarray, np.ndarray, int]:
        stream, sums, products = views.stream(), 0.0, 0.0
        for n in views.chunks():
            both = np.concatenate(stream.take(n), axis=1).astype(np.float64)
            sums, products = sums + both.sum(axis=0), products + both.T @ both
        mean = sums / views.n_pairs
        return mean, products / views.n_pairs - np.outer(mean, mean), stream.images.shape[2]

    spent, (mean, C, width) = cpu_seconds(moments)
    half = width * (width // 2)
    within, cross = (C[:half, :half], C[half:, half:]), C[:half, half:]
    trace = np.trace(C) / 2.0

    def solved(ridge: float) -> Callable[[Pair], Pair]:
        roots = [np.linalg.cholesky(S + ridge * trace * np.eye(len(S))) for S in within]
        T = np.linalg.solve(roots[0], np.linalg.solve(roots[1], cross.T).T)
        U, _, Vt = np.linalg.svd(T)
        W = [np.linalg.solve(R.T, Z[:, :rank]) for R, Z in zip(roots, (U, Vt.T), strict=True)]
        means = mean[:half], mean[half:]
        return lambda pair: tuple((Z - m) @ w for Z, m, w in zip(pair, means, W, strict=True))

    return best(views, LINEAR, 0, spent, solved)


def exact(views: Views, method: str, n_columns: int) -> Total:
    """Return CCA of so many features, by all their covariances and the best of a few ridges."""
    first = views.stream().take(n_columns)
    maps: list[FeatureMap] = []
    for seed, (kernel, Z) in enumerate(zip(views.kernels, first, strict=True)):
        if method == NYSTROM:
            maps.append(NystromMap(kernel, Z))
        else:
            maps.append(RandomFeatureMap(kernel, Z.shape[1], n_columns, seed, cached=True))
    moments = PairMoments(*maps, np.empty(0))

    def accumulate() -> None:
        stream = views.stream()
        for n in views.chunks():
            moments.add(*stream.take(n))

    spent, _ = cpu_seconds(accumulate)

    def solved(ridge: float) -> Callable[[Pair], Pair]:
        _, f, g = moments.cca(views.sizes.n_components, ridge)
        return lambda pair: (f(pair[0]), g(pair[1]))

    return best(views, method, n_columns, spent, solved)


def best(
    views: Views,
    method: str,
    size: int,
    spent: float,
    solved: Callable[[float], Callable[[Pair], Pair]],
) -> Total:
    """Return the line of the ridge with the largest paired total on the held-out pairs.

    The time is that of the covariances and of one solution.
    """
    lines = []
    for ridge in RIDGES:
        seconds, functions = cpu_seconds(lambda ridge=ridge: solved(ridge))
        paired, canonical = totals(*functions(views.test))
        lines.append(
            Total(views.name, method, size, views.n_pairs, ridge, paired, canonical, seconds)
        )
    chosen = max(lines, key=lambda line: line.paired)
    chosen.seconds += spent
    chosen.by_ridge = {f"{line.ridge:g}": line.paired for line in lines}
    return chosen


def stepped(views: Views, method: str) -> list[Total]:
    """Return doubly stochastic steps, with a line at each mark."""
    sizes = views.sizes
    ridge = sizes.ridges[views.deform]
    stream = views.stream()
    first = stream.take(_n_pilot(views))
    maps = [
        RandomFeatureMap(kernel, Z.shape[1], sizes.n_random_features, seed, cached=True)
        for seed, (kernel, Z) in enumerate(zip(views.kernels, first, strict=True))
    ]
    learner = PairedSteps(
        *maps,
        sizes.n_components,
        task="cca",
        ridge=ridge,
        step="preconditioned" if method == PRECONDITIONED else "plain",
        batch_size=sizes.batch_size,
    )
    spent, _ = cpu_seconds(lambda: learner.begin(*first))
    found, done = [], 0
    for mark in sizes.marks:

        def steps(n: int = mark - done) -> None:
            for _ in range(n):
                learner.learn(*stream.take(sizes.batch_size))

        spent, done = spent + cpu_seconds(steps)[0], mark
        found.append(_stepped_line(views, learner, method, mark, ridge, spent))
    return found


def _stepped_line(
    views: Views, learner: PairedSteps, method: str, mark: int, ridge: float, spent: float
) -> Total:
    # The rotation to pairs comes from rows of the training stream.
    sample = Stream(views.digits, views.deform, 2).take(min(10_000, views.n_pairs))
    learner = learner.copy()
    learner.measure(*sample)
    _, f, g = learner.functions()
    paired, canonical = totals(f(views.test[0]), g(views.test[1]))
    n_pairs = _n_pilot(views) + mark * views.sizes.batch_size
    return Total(views.name, method, mark, n_pairs, ridge, paired, canonical, spent)


def _n_pilot(views: Views) -> int:
    return min(PILOT_ROWS, len(views.digits.train))
