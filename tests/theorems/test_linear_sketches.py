"""Linear sketches against their exact moments, and against S A with S built by hand.

For the rows a_t of A, with G = A'A and F = ||A||_F^2, the mean of ||B'B - G||_F^2 is

    gaussian           (F^2 + ||G||_F^2) / size
    sign, countsketch  (F^2 + ||G||_F^2 - 2 sum_t ||a_t||^4) / size
    srht               the same, with pairs of one tile of N rows times (N - size) / (N - 1)
    sample             (F^2 - ||G||_F^2) / size
"""

import functools

import numpy as np
import pytest
import scipy.linalg

from _support import laws, zoo
from sksketch import make_sketch
from sksketch.arrays.random import stream
from sksketch.sketches.projections.projection import hadamard_tile_rows

N_SEEDS = 500
SIZE = 16
each_linear = pytest.mark.parametrize("key", laws.LINEAR)

MATRICES = {
    # Longer than a tile, so that pairs within and across tiles count.
    "power law": zoo.SHAPES["power law"](300, 6),
    "heavy tails": zoo.SHAPES["heavy tails"](300, 6),
    "coherent": np.vstack([np.eye(6), np.zeros((294, 6))]),
    "duplicate rows": zoo.SHAPES["duplicate rows"](40, 6),
}
each_matrix = pytest.mark.parametrize("name", MATRICES)


def mean_square(key, A, size):
    """Return the mean of ||B'B - A'A||_F^2."""
    G, F = zoo.gram(A), zoo.energy(A)
    if key == "gaussian":
        return (F**2 + (G**2).sum()) / size
    if key == "sample":
        return (F**2 - (G**2).sum()) / size
    # Pairs of different rows, each with the mean square of the product of their columns.
    norms = (A**2).sum(axis=1)
    pairs = np.outer(norms, norms) + (A @ A.T) ** 2
    np.fill_diagonal(pairs, 0.0)
    if key == "srht":
        N = hadamard_tile_rows(size)
        tile = np.arange(len(A)) // N
        pairs *= np.where(tile[:, None] == tile, (N - size) / (N - 1), 1.0)
    return pairs.sum() / size


@functools.cache
def products(key, name):
    """Return B'B for every seed."""
    A = MATRICES[name]
    made = [make_sketch(key, SIZE, seed=seed).update(A).matrix for seed in range(N_SEEDS)]
    return np.stack([B.T @ B for B in made])


@each_linear
@each_matrix
def test_the_mean_over_500_seeds_is_the_gram_matrix(key, name):
    A = MATRICES[name]
    error = np.linalg.norm(products(key, name).mean(axis=0) - zoo.gram(A))
    standard_error = np.sqrt(mean_square(key, A, SIZE) / N_SEEDS)
    # The squared error has the mean of its square; three times the root is far in the tail.
    assert error < 3 * standard_error
    assert standard_error < 0.07 * zoo.energy(A)


@each_linear
@each_matrix
def test_the_mean_square_of_the_error_is_the_one_of_theory(key, name):
    A = MATRICES[name]
    squares = ((products(key, name) - zoo.gram(A)) ** 2).sum(axis=(1, 2))
    standard_error = squares.std() / np.sqrt(N_SEEDS)
    assert abs(squares.mean() - mean_square(key, A, SIZE)) < 4 * standard_error


@each_linear
def test_merged_shards_are_unbiased_with_the_same_error(key):
    A = MATRICES["power law"]
    squares, total = [], 0.0
    for seed in range(N_SEEDS):
        parts = [
            make_sketch(key, SIZE, seed=seed, shard=i).update(piece)
            for i, piece in enumerate(zoo.pieces(A, [90, 250]))
        ]
        B = (parts[0] | (parts[1] | parts[2])).matrix
        total = total + B.T @ B
        squares.append(((B.T @ B - zoo.gram(A)) ** 2).sum())
    expected = mean_square("sign" if key == "srht" else key, A, SIZE)
    error = np.linalg.norm(total / N_SEEDS - zoo.gram(A))
    assert error < 3 * np.sqrt(expected / N_SEEDS)
    # Tiles begin anew in each shard, so fewer pairs of rows share one than in the whole.
    least = mean_square("srht", A, SIZE) if key == "srht" else expected
    slack = 4 * np.std(squares) / np.sqrt(N_SEEDS)
    assert least - slack < np.mean(squares) < expected + slack


def matrix_s(key, size, n_rows, seed, shard):
    """Build S from its definition, tile by tile."""
    kind = type(make_sketch(key, size)).kind
    N = {"countsketch": 4096, "srht": hadamard_tile_rows(size)}.get(key, 256)
    tiles = []
    for index in range(-(-n_rows // N)):
        generator = stream(seed, f"{kind} {shard}", index)
        if key == "gaussian":
            tiles.append(generator.standard_normal((N, size)).T / np.sqrt(size))
        elif key == "sign":
            tiles.append(signs(generator, N * size).reshape(N, size).T / np.sqrt(size))
        elif key == "countsketch":
            tile, positions = np.zeros((size, N)), generator.integers(0, size, N)
            tile[positions, np.arange(N)] = signs(generator, N)
            tiles.append(tile)
        else:
            of_rows, of_slots = signs(generator, N), signs(generator, size)
            chosen = generator.permutation(N)[:size]
            H = scipy.linalg.hadamard(N)[chosen].astype(np.float64)
            tiles.append(np.diag(of_slots) @ H @ np.diag(of_rows) / np.sqrt(size))
    return np.concatenate(tiles, axis=1)[:, :n_rows]


def signs(generator, count):
    octets = generator.integers(0, 256, -(-count // 8), dtype=np.uint8)
    return 1.0 - 2.0 * (np.unpackbits(octets)[:count] == 0)


@pytest.mark.parametrize("key", ["gaussian", "sign", "countsketch", "srht"])
@pytest.mark.parametrize("size", [3, 40])
def test_merged_equals_whole(key, size):
    A = zoo.SHAPES["power law"](900, 7)
    b = A @ np.ones(7) + 1.0
    pieces, targets = zoo.pieces(A, [280, 281, 600]), zoo.pieces(b, [280, 281, 600])
    shards = [9, 0, 5, 2]
    parts = [
        make_sketch(key, size, seed=4, shard=i).update(X, targets=y)
        for i, X, y in zip(shards, pieces, targets, strict=True)
    ]
    S = np.concatenate(
        [matrix_s(key, size, len(X), 4, i) for i, X in zip(shards, pieces, strict=True)], axis=1
    )
    for merged in (
        parts[0] | parts[1] | parts[2] | parts[3],
        (parts[3] | parts[1]) | (parts[2] | parts[0]),
    ):
        np.testing.assert_allclose(merged.matrix, S @ A, atol=1e-12)
        np.testing.assert_allclose(merged.targets, S @ b, atol=1e-11)


# Subspace embedding: ||U'S'SU - I||_2 for orthonormal columns U


def embedding_errors(key, U, size, seeds):
    made = (make_sketch(key, size, seed=seed).update(U).matrix for seed in seeds)
    return np.array([np.linalg.norm(B.T @ B - np.eye(U.shape[1]), 2) for B in made])


BASES = {
    "incoherent": np.linalg.qr(np.random.default_rng(0).standard_normal((600, 8)))[0],
    "coherent": np.eye(600)[:, :8],
}


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("key", ["gaussian", "sign", "srht"])
def test_davidson_szarek2001_theorem_ii_13_embeds_a_subspace(key, basis):
    rank, size = 8, 200
    errors = embedding_errors(key, BASES[basis], size, range(60))
    # Singular values of S U leave [1 - sqrt(r/size) - t, 1 + sqrt(r/size) + t] with probability
    # below 2 exp(-size t^2 / 2); the theorem is for normal entries, signs do no worse here.
    t = np.sqrt(2 * np.log(2 / 0.01) / size)
    assert np.median(errors) < (1 + np.sqrt(rank / size)) ** 2 - 1
    assert (errors > (1 + np.sqrt(rank / size) + t) ** 2 - 1).sum() <= 3


@pytest.mark.parametrize("basis", BASES)
def test_tropp2015_theorem_6_1_1_bounds_row_sampling(basis):
    rank, size = 8, 200
    errors = embedding_errors("sample", BASES[basis], size, range(60))
    log = np.log(2 * rank)
    bound = np.sqrt(2 * (rank - 1) / size * log) + (rank - 1) / size * log / 3
    assert errors.mean() < bound


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("size", [50, 400])
def test_the_second_moment_bounds_countsketch(basis, size):
    rank = 8
    errors = embedding_errors("countsketch", BASES[basis], size, range(100))
    # By Markov's inequality from the mean square; it fails for at most half of the seeds.
    assert np.median(errors) < np.sqrt(2 * (rank**2 + rank) / size)
    if basis == "coherent":
        # The error is 1 as soon as two of the eight rows meet.
        apart = np.prod(1 - np.arange(rank) / size)
        found = (errors < 1e-9).mean()
        assert abs(found - apart) < 4 * np.sqrt(apart * (1 - apart) / 100)
