"""The two hand-written loops of the online learners, beside LAPACK and the compiler alone.

The small eigenproblem of a shrink (`online/kernels/small_eigen.py`) beside LAPACK called from
compiled code, and the four-wide instructions (`online/kernels/simd.py`) beside the loops that the
compiler makes of plain Python. Both sides are compiled, interleaved in each repeat and timed in
CPU seconds. A ratio below 1.3 is not worth a file: the script says so, and in full ends with 1.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from sksketch.arrays.kernels.jit import jit
from sksketch.online.kernels.shrink_maps import pair_times_map
from sksketch.online.kernels.small_eigen import eigen_inplace

WORTH = 1.3
# Rows of the buffer of a learner that keeps m - 1 rows: at first m, in the end 3 m.
SIZES = (10, 20, 40, 60, 100)
WIDTHS = (8, 20, 40)


@jit
def own(K: np.ndarray, A: np.ndarray, V: np.ndarray, values: np.ndarray, work: np.ndarray) -> None:
    A[:] = K
    eigen_inplace(A, V, values, work)


@jit
def lapack(K: np.ndarray, V: np.ndarray, values: np.ndarray) -> None:
    n = len(K)
    found, vectors = np.linalg.eigh(K)
    for i in range(n):
        values[i] = found[n - 1 - i]
        for j in range(n):
            V[i, j] = vectors[j, n - 1 - i]


@jit
def all_pairs(rows: np.ndarray, maps: np.ndarray, spare: np.ndarray) -> None:
    for i in range(0, len(rows) - 1, 2):
        pair_times_map(rows, i, i + 1, maps, 0, spare)


@jit
def all_pairs_plain(rows: np.ndarray, maps: np.ndarray, spare: np.ndarray) -> None:
    D = rows.shape[1]
    for i in range(len(rows)):
        row, total = rows[i], spare[0]
        for j in range(D):
            total[j] = 0.0
        for k in range(D):
            x, other = row[k], maps[k]
            for j in range(D):
                total[j] += x * other[j]
        for j in range(D):
            row[j] = total[j]


def seconds(call: Callable[[], None], times: int) -> float:
    begun = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - begun) / times


def ratio(
    fast: Callable[[], None], plain: Callable[[], None], times: int, repeats: int
) -> tuple[float, float]:
    """Return the median seconds of the first, and the median ratio of the second to it."""
    fast(), plain()
    pairs = [(seconds(fast, times), seconds(plain, times)) for _ in range(repeats)]
    return statistics.median(a for a, _ in pairs), statistics.median(b / a for a, b in pairs)


def eigenproblem(n: int, repeats: int) -> tuple[float, float]:
    width = (n + 3) // 4 * 4
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 2 * n))
    K, padded = X @ X.T, np.zeros((n, width))
    padded[:, :n] = K
    A, V, values, work = padded.copy(), np.empty((n, width)), np.empty(n), np.empty((4, width))
    check = np.empty(n)
    own(padded, A, V, values, work)
    lapack(K, V, check)
    np.testing.assert_allclose(values, check, rtol=1e-9)
    times = max(5, 40_000 // n**2)
    return ratio(
        lambda: own(padded, A, V, values, work), lambda: lapack(K, V, values), times, repeats
    )


def four_wide(width: int, repeats: int) -> tuple[float, float]:
    rng = np.random.default_rng(width)
    # A rotation, so that rows stay as long as they are however often they are multiplied.
    maps = np.ascontiguousarray(np.linalg.qr(rng.standard_normal((width, width)))[0])
    rows, spare = rng.standard_normal((1024, width)), np.empty((2, width))
    twin = rows.copy()
    all_pairs(rows, maps, spare)
    all_pairs_plain(twin, maps, spare)
    np.testing.assert_allclose(rows, twin, atol=1e-12)
    return ratio(
        lambda: all_pairs(rows, maps, spare),
        lambda: all_pairs_plain(twin, maps, spare),
        20,
        repeats,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two sizes, three repeats")
    quick = parser.parse_args().quick
    repeats = 3 if quick else 15
    worst = {}
    with threadpool_limits(1):
        print(f"{'eigenproblem of N rows':28}{'own':>10}{'LAPACK / own':>16}")
        for n in SIZES[1:3] if quick else SIZES:
            own_seconds, gain = eigenproblem(n, repeats)
            print(f"{n:<28}{own_seconds * 1e6:8.1f}us{gain:16.2f}")
            worst.setdefault("small_eigen.py", []).append(gain)
        print(f"{'1,024 rows times a map':28}{'four-wide':>10}{'plain / four':>16}")
        for width in WIDTHS[:2] if quick else WIDTHS:
            own_seconds, gain = four_wide(width, repeats)
            print(f"{width:<28}{own_seconds * 1e6:8.1f}us{gain:16.2f}")
            worst.setdefault("simd.py", []).append(gain)
    for name, gains in worst.items():
        middle = statistics.median(gains)
        verdict = "earns its place" if middle >= WORTH else f"earns less than {WORTH}: drop it"
        print(f"{name}: median gain {middle:.2f}, {verdict}")
    if not quick and min(statistics.median(gains) for gains in worst.values()) < WORTH:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
