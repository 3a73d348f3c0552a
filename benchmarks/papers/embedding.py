"""How well linear sketches keep a subspace: ||U'S'SU - I|| for orthonormal U, against theory.

For every sketch and size it prints the median of the spectral norm over the seeds beside the
value of theory, and the root of the mean squared Frobenius norm beside its exact value, with
the difference of the squares in standard errors of their mean.

Spectral norm, for r columns and l rows of the sketch:

- gaussian: (1 + sqrt(r/l))^2 - 1, from Davidson and Szarek (2001), Theorem II.13; the same limit
  is shown for sign and srht, whose entries are not normal.
- countsketch: sqrt((r^2 + r)/l), a bound on the root mean square of the Frobenius norm, and so
  of this one.
- sample: sqrt(2 v log 2r) + v log(2r)/3 with v = (r - 1)/l, a bound on the mean from Tropp
  (2015), Theorem 6.1.1.

Two bases: "incoherent" has random directions, so that all rows are alike; "coherent" has r
rows that are the identity, the rest is zero.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from threadpoolctl import threadpool_limits

from sksketch import make_sketch
from sksketch.sketches.projections.projection import hadamard_tile_rows

KEYS = ("gaussian", "sign", "srht", "countsketch", "sample")
RANK, N_ROWS, SIZES, SEEDS = 20, 4000, (40, 100, 250, 640, 1600), 100
QUICK = {"rank": 5, "n_rows": 600, "sizes": (20, 80), "seeds": 20}


def basis(name: str, n_rows: int, rank: int) -> np.ndarray:
    """Return orthonormal columns, spread over all rows or in as few as possible."""
    if name == "coherent":
        return np.eye(n_rows, rank)
    return np.linalg.qr(np.random.default_rng(0).standard_normal((n_rows, rank)))[0]


def spectral_theory(key: str, rank: int, size: int) -> float:
    if key == "countsketch":
        return math.sqrt((rank**2 + rank) / size)
    if key == "sample":
        v, log = (rank - 1) / size, math.log(2 * rank)
        return math.sqrt(2 * v * log) + v * log / 3
    return (1 + math.sqrt(rank / size)) ** 2 - 1


def frobenius_theory(key: str, U: np.ndarray, size: int) -> float:
    """Return the root of the mean of ||U'S'SU - I||_F^2, exactly."""
    rank = U.shape[1]
    if key == "gaussian":
        return math.sqrt((rank**2 + rank) / size)
    if key == "sample":
        return math.sqrt((rank**2 - rank) / size)
    tile_rows = hadamard_tile_rows(size) if key == "srht" else len(U)
    every = pairs(U)
    if key == "srht":
        # Pairs of rows in one tile meet less often: the chosen rows of H are different ones.
        within = sum(pairs(U[i : i + tile_rows]) for i in range(0, len(U), tile_rows))
        every -= within * (size - 1) / (tile_rows - 1)
    return math.sqrt(every / size)


def pairs(rows: np.ndarray) -> float:
    """Return the sum of ||a||^2 ||b||^2 + (a'b)^2 over all pairs of different rows a, b."""
    norms = (rows**2).sum(axis=1)
    G = rows.T @ rows
    return float(norms.sum() ** 2 + (G**2).sum() - 2 * (norms**2).sum())


def errors(key: str, U: np.ndarray, size: int, seeds: int) -> tuple[float, float, float]:
    """Return the median spectral norm, the mean squared Frobenius norm and its standard error."""
    spectral, squares = [], []
    for seed in range(seeds):
        B = make_sketch(key, size, seed=seed).update(U).matrix
        E = B.T @ B - np.eye(U.shape[1])
        spectral.append(np.linalg.norm(E, 2))
        squares.append((E**2).sum())
    deviation = float(np.std(squares, ddof=1)) / math.sqrt(seeds)
    return float(np.median(spectral)), float(np.mean(squares)), deviation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, few seeds")
    quick = parser.parse_args().quick
    rank, n_rows = (QUICK["rank"], QUICK["n_rows"]) if quick else (RANK, N_ROWS)
    sizes, seeds = (QUICK["sizes"], QUICK["seeds"]) if quick else (SIZES, SEEDS)
    print(f"||U'S'SU - I|| for {rank} columns of {n_rows} rows, {seeds} seeds")
    print(f"{'':27}{'spectral norm, median':>25}{'Frobenius norm, rms':>30}{'squares':>11}")
    print(
        f"{'sketch':13}{'basis':11}{'rows':>5}{'measured':>12}{'theory':>9}{'ratio':>7}"
        f"{'measured':>12}{'exact':>9}{'ratio':>7}{'st. errors':>11}"
    )
    with threadpool_limits(limits=1):
        for key in KEYS:
            for name in ("incoherent", "coherent"):
                U = basis(name, n_rows, rank)
                for size in sizes:
                    spectral, squares, deviation = errors(key, U, size, seeds)
                    frobenius = math.sqrt(squares)
                    expected, exact = (
                        spectral_theory(key, rank, size),
                        frobenius_theory(key, U, size),
                    )
                    print(
                        f"{key:13}{name:11}{size:5d}{spectral:12.3f}{expected:9.3f}"
                        f"{spectral / expected:7.2f}{frobenius:12.3f}{exact:9.3f}"
                        f"{frobenius / exact:7.2f}{(squares - exact**2) / deviation:11.1f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
