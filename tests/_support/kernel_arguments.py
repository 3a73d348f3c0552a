"""Arguments of every compiled kernel, for a matrix of the zoo."""

import numpy as np
import scipy.sparse as sp

from sksketch.arrays.kernels import generic

SIZE = 7


def compressed(X, rng):
    """Return X without some of its entries as the three arrays of a CSR matrix."""
    S = sp.csr_array(X * (rng.random(X.shape) < 0.4))
    return S.indptr, S.indices, S.data


def outer_csr(X, rng):
    columns = rng.standard_normal((len(X), SIZE)).astype(X.dtype)
    return np.zeros((X.shape[1], SIZE), X.dtype), columns, *compressed(X, rng)


def positions_and_signs(X, rng):
    return rng.integers(0, SIZE, len(X)), rng.choice([-1.0, 1.0], len(X)).astype(X.dtype)


def scatter_csr(X, rng):
    total = np.zeros((SIZE, X.shape[1]), X.dtype)
    return total, *positions_and_signs(X, rng), *compressed(X, rng)


def scatter_rows(X, rng):
    return np.zeros((SIZE, X.shape[1]), X.dtype), *positions_and_signs(X, rng), X.copy()


def walsh_hadamard(X, rng):
    return (X[: 1 << (len(X).bit_length() - 1)].copy(),)


def normal_csr(X, rng):
    W = rng.standard_normal((X.shape[1], SIZE))
    scale, center = rng.standard_normal(len(X)), X.mean(axis=0, dtype=np.float64)
    return np.zeros_like(W), np.zeros(SIZE), W, *compressed(X, rng), scale, center @ W


def product_csr(X, rng):
    other = rng.standard_normal((X.shape[1], SIZE)).astype(X.dtype)
    return np.zeros((len(X), SIZE), X.dtype), *compressed(X, rng), *compressed(other, rng)


def uniforms(X, rng):
    return np.zeros(X.size), int(rng.integers(-(2**63), 2**63 - 1)), int(rng.integers(0, 2**40))


def as_svmlight(X, rng):
    """Return X without some of its entries as lines of text, with all that is to be skipped."""
    lines = [b"# a comment", b""]
    for row in X * (rng.random(X.shape) < 0.4):
        entries = [f"{j}:{float(x)!r}" for j, x in enumerate(row) if x]
        lines.append(" ".join([f"{len(entries)}", "qid:7", *entries, "# 1:2"]).encode())
    return b"\r\n".join(lines)


def parse_svmlight(X, rng):
    text = as_svmlight(X, rng)
    indptr = np.full(len(X) + 2, -1, np.int32)
    indptr[0] = 0
    indices, data = np.zeros(X.size, np.int32), np.zeros(X.size)
    progress, labels = np.zeros(5, np.int64), np.zeros(len(X) + 1)
    return progress, labels, indptr, indices, data, np.frombuffer(text, np.uint8)


def as_vw(X, rng):
    """Return X without some of its entries as lines of text, with all that a line may have."""
    heads = ["1 |", "-1 2.5 0.5 'tag |one", "|", "2.5e-1 tag|one:0.5", "0 1|zwei:-3 7 |"]
    lines = [b"", b" "]
    for i, row in enumerate(X * (rng.random(X.shape) < 0.4)):
        names = [
            ("%d:", "n%d:", "a long name:", ":")[j % 4].replace("%d", str(j))
            for j in range(len(row))
        ]
        entries = [f"{name}{float(x)!r}" for name, x in zip(names, row, strict=True) if x]
        lines.append(" ".join([heads[i % 5], *entries, "plain", "|two é"]).encode())
    return b"\r\n".join(lines)


def parse_vw(X, rng):
    text = as_vw(X, rng)
    indptr = np.zeros(len(X) + 1, np.int32)
    indices, data = np.zeros(3 * X.size + 5 * len(X), np.int32), np.zeros(3 * X.size + 5 * len(X))
    progress, labels, weights = np.zeros(6, np.int64), np.zeros(len(X)), np.zeros(len(X))
    out = progress, labels, weights, indptr, indices, data
    odd = np.zeros(0, np.int64), np.zeros(0)
    return *out, np.frombuffer(text, np.uint8), 2**20 - 1, *odd


def centered(X, rng):
    weights, origin, center = rng.random(len(X)), X[0].astype(float), rng.random(X.shape[1])
    return np.zeros_like(X), np.zeros(X.shape[1]), X.copy(), weights, origin, center


def column_sums(X, rng):
    return np.zeros(X.shape[1]), X.copy(), rng.random(len(X)), X[0].astype(float)


def grown_mean(X, rng):
    d = X.shape[1]
    held, tile = np.abs(rng.standard_normal((6, d))), rng.standard_normal((5, d)) * X[0]
    tile[1:3] **= 2
    arrays = np.zeros((6, d)), np.zeros((3, d)), held, tile
    return *(tuple(part) for part in arrays), (3.0, 2.0, 2.5, 1e-7), (1e-15,) * 7


def center_tile(X, rng):
    n_rows, d = X.shape
    held = tuple(np.abs(rng.standard_normal((6, d))))
    ages = rng.random(n_rows)
    weights = ages, np.ones(n_rows), ages
    grown = tuple(np.zeros((6, d)))
    totals = 3.0, float(ages.sum()), float(n_rows), 1e-7
    columns = X.copy(), X[0].astype(float)
    return np.zeros_like(X), grown, np.zeros((4, d)), held, *columns, weights, totals, (1e-15,) * 7


def place_center(X, rng):
    held = tuple(np.abs(rng.standard_normal((6, X.shape[1]))))
    return np.zeros(X.shape[1]), X[0].astype(float), held, (3.0, 2.0)


N_TILES = 3


def of_tiles(X, rng):
    d = X.shape[1]
    held = tuple(np.abs(rng.standard_normal((6, d))))
    sums = rng.standard_normal((N_TILES, d)) * X[0]
    totals = np.array([(3.0, 2.0, 2.5, 1e-7), (5.0, 2.0, 2.5, 1e-7), (7.0, 1.0, 1.0, 1e-7)])
    return held, sums, totals, (d // 3, d)


def place_centers(X, rng):
    held, sums, totals, columns = of_tiles(X, rng)
    return np.zeros_like(sums), sums, held, totals, columns


def grown_means(X, rng):
    held, sums, totals, columns = of_tiles(X, rng)
    d = X.shape[1]
    spare = tuple(np.zeros((6, d)))
    bounds = rng.random((N_TILES, 4, d))
    roundings = np.full((N_TILES, 7), 1e-15)
    tiles = sums, rng.standard_normal((N_TILES, d))
    return held, spare, bounds, tiles, X[0].astype(float), totals, roundings, columns


def add_rows(X, rng):
    return np.zeros(X.shape[1], X.dtype), X, rng.standard_normal(len(X))


def split_csr(X, rng):
    indptr, indices, _ = compressed(X, np.random.default_rng(0))
    d = X.shape[1]
    bounds = np.unique([0, d // 3, d // 2, d]).astype(indices.dtype)
    return np.zeros((len(X), len(bounds)), indptr.dtype), indptr, indices, bounds


def spread_csr(X, rng):
    splits, indptr, indices, bounds = split_csr(X, rng)
    generic.split_csr_inplace(splits, indptr, indices, bounds)
    T = rng.standard_normal((len(X), 3)).astype(X.dtype)
    data = compressed(X, np.random.default_rng(0))[2]
    image = np.zeros((X.shape[1], 3), X.dtype)
    return image, T, splits, len(bounds) - 2, indices, data


def times_csr(X, rng):
    W, scale = rng.standard_normal((X.shape[1], 3)).astype(X.dtype), rng.random(len(X))
    offset = rng.standard_normal(3).astype(X.dtype)
    return np.zeros((len(X), 3), X.dtype), W, *compressed(X, rng), scale, offset


# Arguments of each kernel for one matrix; the outputs come first.
ARGUMENTS = {
    "add_rows_inplace": add_rows,
    "add_squares_inplace": lambda X, rng: (np.zeros(1), X.ravel(), 50),
    "center_rows_inplace": centered,
    "center_tile_inplace": center_tile,
    "column_sums_inplace": column_sums,
    "grown_mean_inplace": grown_mean,
    "grown_means_inplace": grown_means,
    "normal_csr_inplace": normal_csr,
    "outer_csr_inplace": outer_csr,
    "parse_svmlight_inplace": parse_svmlight,
    "parse_vw_inplace": parse_vw,
    "place_center_inplace": place_center,
    "place_centers_inplace": place_centers,
    "product_csr_inplace": product_csr,
    "row_norms_inplace": lambda X, rng: (np.zeros(len(X)), X),
    "scatter_csr_inplace": scatter_csr,
    "scatter_rows_inplace": scatter_rows,
    "split_csr_inplace": split_csr,
    "spread_csr_inplace": spread_csr,
    "times_csr_inplace": times_csr,
    "uniforms_inplace": uniforms,
    "walsh_hadamard_inplace": walsh_hadamard,
}
# Arguments that are room for the compiled loops.
ROOM = {("grown_means_inplace", 1)}
# No product in them is rounded, and sums run in the same order.
BIT_FOR_BIT = {
    "parse_svmlight_inplace",
    "parse_vw_inplace",
    "place_center_inplace",
    "place_centers_inplace",
    "scatter_csr_inplace",
    "scatter_rows_inplace",
    "walsh_hadamard_inplace",
}
