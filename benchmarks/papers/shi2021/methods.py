"""The methods of the paper, by its names, and what is measured of each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from benchmarks.lib.timing import cpu_seconds
from benchmarks.papers.shi2021.data import Problem
from sksketch import FrequentDirections, StreamingRidge, make_sketch

BLOCK_ROWS = 1024
RR, NUMPY = "RR", "RR numpy"
SHRINKING = ("FDRR", "RFDRR", "iSVDRR")
RANDOM = ("RPRR", "CSRR")
FAMILY = (*SHRINKING, "2LFDRR")
PAPERS = (*FAMILY, *RANDOM)
PRINTED = " printed"

# Parameters of the estimator, and those of the sketch that follows the paper to the letter. Random
# projections have the same sketch then, and are solved as printed.
KEYS: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "FDRR": ({"sketch": "fd"}, {"correction": "none"}),
    "RFDRR": ({"sketch": "rfd"}, {"correction": "half"}),
    "iSVDRR": ({"sketch": "isvd"}, {"correction": "none", "rule": "truncate"}),
    "energy": ({"sketch": "fd", "correction": "energy"}, {"correction": "energy"}),
    "2LFDRR": ({"sketch": "2lfd"}, None),
    "RPRR": ({"sketch": "sign"}, {}),
    "CSRR": ({"sketch": "countsketch"}, {}),
    RR: ({"sketch": "exact"}, None),
}


@dataclass(frozen=True)
class Record:
    """One method on one data set: seconds of CPU time, and errors."""

    data: str
    method: str
    sketch_size: int
    seed: int
    train: float
    query: float
    new_alpha: float
    certificate: float
    coefficient_error: float
    prediction_error: float
    bound_in_advance: float


def models(alpha: float, sketch_size: int, seed: int) -> Iterator[tuple[str, StreamingRidge]]:
    """Give every sketching method at one size: as users get it, and as printed."""
    for name, (options, printed) in KEYS.items():
        if name == RR:
            continue
        chosen = dict(options)
        if name in RANDOM:
            chosen["sketch"] = make_sketch(options["sketch"], sketch_size, seed=seed)
        yield name, ridge(alpha, sketch_size, **chosen)
        if printed:
            # Algorithms 2 and 3: a shrink whenever sketch_size rows have come.
            letter = FrequentDirections(
                sketch_size, solver="exact", buffer_rows=2 * sketch_size, **printed
            )
            yield name + PRINTED, ridge(alpha, sketch_size, sketch=letter)


def ridge(alpha: float, sketch_size: int, **options: Any) -> StreamingRidge:
    return StreamingRidge(alpha, sketch_size=sketch_size, fit_intercept=False, **options)


def measure(problem: Problem, sketch_sizes: tuple[int, ...], seed: int) -> Iterator[Record]:
    """Fit every method at every size, one after the other."""
    exact = problem.exact(problem.alpha)
    yield from records(problem, seed, NUMPY, 0, exact, numpy_times(problem))
    yield from timed(problem, seed, RR, 0, ridge(problem.alpha, 1, **KEYS[RR][0]), exact)
    for size in sketch_sizes:
        for name, model in models(problem.alpha, size, seed):
            done = list(timed(problem, seed, name, size, model, exact))
            yield from done
            if name in RANDOM:
                query = square_query(model, problem.alpha)
                yield from (replace(r, method=name + PRINTED, query=query) for r in done)


def square_query(model: StreamingRidge, alpha: float) -> float:
    """Return the time of (C'C + alpha I)^-1 C'c as the paper prints it, with a square matrix."""
    C, c, _ = model.sketch_.projected()

    def solve() -> np.ndarray:
        return cholesky_solve(C.T @ C, C.T @ c, alpha)

    return cpu_seconds(solve)[0]


def timed(
    problem: Problem, seed: int, name: str, size: int, model: StreamingRidge, exact: np.ndarray
) -> Iterator[Record]:
    """Learn block by block, ask for the coefficients, then for those of another penalty."""

    def learn() -> None:
        for start in range(0, len(problem.X), BLOCK_ROWS):
            stop = start + BLOCK_ROWS
            model.partial_fit(problem.X[start:stop], problem.Y[start:stop])

    with warnings.catch_warnings():
        # The bound is in the table, also where it says nothing.
        warnings.filterwarnings("ignore", message="the coefficients are certain only")
        train, _ = cpu_seconds(learn)
        query, coefficients = cpu_seconds(lambda: np.atleast_2d(model.coef_).T)
        new_alpha, _ = cpu_seconds(lambda: model.path([2 * problem.alpha]))
    times = train, query, new_alpha
    yield from records(
        problem, seed, name, size, exact, (times, coefficients, model.coef_error_bound_)
    )


Found = tuple[tuple[float, float, float], np.ndarray, float]


def records(
    problem: Problem, seed: int, name: str, size: int, exact: np.ndarray, found: Found
) -> Iterator[Record]:
    """Give the errors of the coefficients for each column of targets."""
    times, coefficients, certificate = found
    errors = np.linalg.norm(coefficients - exact, axis=0) / np.linalg.norm(exact, axis=0)
    tests = problem.test_errors(coefficients)
    advance = problem.bound_in_advance(size, problem.alpha) if size else 0.0
    for label, error, test in zip(problem.labels, errors, tests, strict=True):
        yield Record(label, name, size, seed, *times, certificate, error, test, advance)


def numpy_times(problem: Problem) -> Found:
    """Return times and coefficients of a Gram matrix and its Cholesky factor."""
    X, Y = problem.X, problem.Y
    train, (gram, cross) = cpu_seconds(lambda: (X.T @ X, X.T @ Y))

    query, coefficients = cpu_seconds(lambda: cholesky_solve(gram, cross, problem.alpha))
    new_alpha, _ = cpu_seconds(lambda: cholesky_solve(gram, cross, 2 * problem.alpha))
    return (train, query, new_alpha), coefficients, 0.0


def cholesky_solve(gram: np.ndarray, cross: np.ndarray, alpha: float) -> np.ndarray:
    shifted = gram.copy()
    shifted.flat[:: len(gram) + 1] += alpha
    return scipy.linalg.cho_solve(scipy.linalg.cho_factor(shifted, overwrite_a=True), cross)


class Figures:
    """Means of the errors and medians of the times, over the repetitions."""

    def __init__(self, found: list[Record]) -> None:
        self.records = found
        self._cells: dict[tuple[str, str, int], list[Record]] = {}
        for record in found:
            key = record.data, record.method, record.sketch_size
            self._cells.setdefault(key, []).append(record)

    def labels(self) -> list[str]:
        return list(dict.fromkeys(record.data for record in self.records))

    def sizes(self) -> list[int]:
        return sorted({record.sketch_size for record in self.records} - {0})

    def methods(self) -> list[str]:
        return list(dict.fromkeys(record.method for record in self.records))

    def error(self, data: str, method: str, size: int) -> float:
        return self._mean(data, method, size, "coefficient_error")

    def prediction(self, data: str, method: str, size: int) -> float:
        return self._mean(data, method, size, "prediction_error")

    def certificate(self, data: str, method: str, size: int) -> float:
        return self._mean(data, method, size, "certificate")

    def seconds(self, data: str, method: str, size: int, what: str) -> float:
        return float(np.median([getattr(r, what) for r in self._cell(data, method, size)]))

    def _mean(self, data: str, method: str, size: int, what: str) -> float:
        return float(np.mean([getattr(r, what) for r in self._cell(data, method, size)]))

    def _cell(self, data: str, method: str, size: int) -> list[Record]:
        return self._cells[data, method, 0 if method in (RR, NUMPY) else size]
