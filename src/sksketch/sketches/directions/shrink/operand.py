"""The buffer of a shrink, P = [kept rows; new rows], as the products that a shrink needs.

`DenseOperand` holds all rows as arrays; `SparseOperand`, in a file of its own, new rows that are
mostly zeros. The solvers see only the methods that both have.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import (
    eigh_descending,
    orthonormal_columns,
    orthonormal_parts,
    orthonormal_rows,
)
from sksketch.arrays.namespace import (
    cast,
    joined,
    like,
    on_device,
    squared_norms,
    to_numpy,
)
from sksketch.arrays.parallel import in_parallel, spans
from sksketch.arrays.products import (
    combined_rows,
    gram,
    norm_error,
    normal_rows,
    squared_norm,
    times_rows,
)
from sksketch.arrays.rounding import gamma, perturbed_gram, single_error
from sksketch.sketches.directions.shrink.loss_products import (
    CheapProducts,
    LossOperator,
    loss_products,
)

# A cold start looks at this many sketch sizes of rows first.
WARM_UP = 3

# Entries that one thread casts.
CAST_ENTRIES = 1 << 18

# Squared norms whose squares are far from the ends of single precision.
MODERATE = 1e-10, 1e10

# Inverses of smaller squares could overflow.
SMALLEST_SQUARE = 1e-300

# The Gram matrix resolves directions down to about 1e-5 of the largest singular value.
GRAM_RESOLUTION = 1e-10

# A Gram matrix is computed, where it should be known, once it may be off by this many times what a
# computed one is off by.
LARGEST_SKEW = 32.0


class Projection(NamedTuple):
    """The rows Z = Y'P for an orthonormal Y: Z'Z is never above P'P, but for roundings.

    In float64. ``error`` bounds the norm of what Z is off by and ``excess`` how far Z'Z may be
    above P'P for other reasons; ``measured`` states whether the error is only a measured one.
    """

    rows: Array
    error: float
    excess: float = 0.0
    measured: bool = False

    def allowance(self, largest: float) -> float:
        """Return what to allow for, with that largest eigenvalue of Z'Z."""
        return perturbed_gram(math.sqrt(largest), self.error) + self.excess

    def gram(self) -> Array:
        """Return Z Z'."""
        return gram(self.rows)


class DenseOperand:
    """Kept rows and new rows that are arrays.

    Directions are found in single precision: every orthonormal Y gives a valid shrink, so it
    may be rough, and its products cost half. Rows are scaled to unit norm where fourth powers
    might leave the range of that precision.

    Parameters
    ----------
    kept : array of shape (n_kept, n_features)
        Orthogonal rows.
    eigenvalues : array of shape (n_kept,)
        Their squared lengths.
    skew : float
        Bound on the norm of what the Gram matrix of the kept rows has beside these.
    rows : array of shape (n_rows, n_features)
        New rows.
    total : float
        Squared norm of all of them.
    scratch : callable
        Lends room for n rows in single precision.
    """

    # Products with P'P that a verification spends: where rows are sparse they cost much of a pass.
    depth = 6

    def __init__(
        self,
        kept: Array,
        eigenvalues: Array,
        skew: float,
        rows: Array,
        total: float,
        scratch: Callable[[int], Array],
    ) -> None:
        self.kept, self.rows = kept, rows
        self.digest = b""
        self.n_features = rows.shape[1]
        self.n_rows = len(kept) + len(rows)
        self.squared_norm = total
        self._eigenvalues, self._skew = eigenvalues, skew
        self._scratch = scratch

    @functools.cached_property
    def matrix(self) -> Array:
        """P itself, in float64."""
        both: Array = joined([self.kept, self._double])
        return both

    @functools.cached_property
    def _double(self) -> Array:
        """The new rows in float64, converted once for all products of an exact shrink."""
        rows: Array = cast(self.rows, np.float64)
        return rows

    @property
    def squared_norm_error(self) -> float:
        """Bound on the error of ``squared_norm``."""
        return norm_error(self.rows) * self.squared_norm

    @property
    def gram_error(self) -> float:
        """Bound on the norm of the error of `gram`."""
        rounding = gamma(self.n_features + 2) * self.squared_norm
        return rounding if self._measures else rounding + self._skew

    @property
    def _measures(self) -> bool:
        """Whether the Gram matrix of the kept rows has to be computed.

        Their eigenvalues stand for it, which passes the error of one shrink on to the next; after
        a few it would outgrow the others.
        """
        fresh = gamma(self.n_features + 2) * self.squared_norm
        return on_device(self.rows) or self._skew > LARGEST_SKEW * fresh

    def gram(self) -> Array:
        """Return P P' in float64; the part of the kept rows is diagonal and, mostly, known."""
        n_kept = len(self.kept)
        if on_device(self.rows) or not n_kept:
            return gram(self.matrix if n_kept else self.rows)
        G = np.empty((self.n_rows, self.n_rows))
        G[:n_kept, :n_kept] = gram(self.kept) if self._measures else np.diag(self._eigenvalues)
        G[n_kept:, n_kept:] = gram(self._double)
        cross = times_rows(self._double, self.kept.T)
        G[:n_kept, n_kept:] = cross.T
        G[n_kept:, :n_kept] = cross
        return G

    def combined(self, C: Array) -> tuple[Array, float]:
        """Return C P in float64, and a bound on the norm of its error."""
        C, n_kept = cast(C, np.float64), len(self.kept)
        product = C[:, :n_kept] @ self.kept
        product += combined_rows(C[:, n_kept:], self._double)
        # The rows of C are orthogonal and, but for roundings, none is longer than one.
        error = gamma(self.n_rows + 4) * math.sqrt(1.01 * len(C) * self.squared_norm)
        return product, error

    def start(self, size: int) -> Array:
        """Return unit rows to start from: the kept ones, or directions of the first rows."""
        if len(self.kept) >= size:
            return unit_rows(self.kept)
        P = joined([self.kept, cast(self.rows[: WARM_UP * size], np.float64)])
        # A few more than will be kept: what is lost in the first block no later one brings back.
        wanted = size + size // 3
        spectrum, U = eigh_descending(gram(P), wanted)
        # They come largest first.
        n_clear = np.count_nonzero(spectrum[:wanted] > GRAM_RESOLUTION * max(spectrum[0], 0.0))
        first = unit_rows(U[:, :n_clear].T @ P)
        return first if len(self.kept) else self._improved(first)

    def _improved(self, directions: Array) -> Array:
        """Return directions that all new rows have turned to the heavier ones."""
        rows = self._single[1]
        images = normal_rows(directions, rows)
        return orthonormal_columns(images.T).T

    def width(self, n_directions: int) -> int:
        """Return the number of directions that cost no more than ``n_directions``."""
        return n_directions

    def project(self, start: Array, fresh: Array, cheap: bool) -> Iterator[Projection]:
        """Yield Y'P where Y spans P times all directions: a cheap one if wanted, then in float64.

        The kept rows carry all that came before, so their part is in float64 in either case.
        """
        n_kept = len(self.kept)
        kept, rows = self._single
        directions = joined([start, like(fresh, start)])
        T = joined([directions @ kept.T, times_rows(rows, directions.T).T], axis=1)
        self.digest = digest(T[len(start) :])
        if cheap and self._single_scale == 1.0:
            Y_kept, Y_rows = orthonormal_parts(T, n_kept)
            part = combined_rows(Y_rows, rows)
            error = single_error(len(rows)) * math.sqrt(squared_norm(part))
            Z = Y_kept @ self.kept
            Z += part
            yield Projection(Z, error, measured=True)
        Y = orthonormal_rows(cast(T, np.float64))
        Z = Y[:, :n_kept] @ self.kept
        Z += combined_rows(Y[:, n_kept:], self.rows)
        yield Projection(Z, gamma(self.n_rows + 4 * len(Y)) * math.sqrt(len(Y) * self.squared_norm))

    def loss_operators(self, matrix: Array, lost: float) -> Iterator[LossOperator]:
        """Yield products with P'P - B'B for B = ``matrix``: the cheap ones, then the exact."""
        scale = self._single_scale**2
        cheap = CheapProducts(self.kept, self._single[1], matrix, scale)
        yield LossOperator(cheap, 1.0 / scale, lambda: cheap.noise() / scale, measured=True)
        # Divided by its trace the matrix has norm at most one: no overflow, no underflow.
        lost = max(lost, SMALLEST_SQUARE)
        apply = loss_products(self.kept, self.rows, matrix, 1.0 / lost)
        yield LossOperator(apply, lost, lambda: self.noise)

    @property
    def noise(self) -> float:
        """Bound on the error of a product with P'P - B'B in float64."""
        return 4.0 * gamma(self.n_rows + self.n_features) * self.squared_norm

    @functools.cached_property
    def _single_scale(self) -> float:
        moderate = MODERATE[0] < self.squared_norm < MODERATE[1]
        return 1.0 if moderate else 1.0 / math.sqrt(max(self.squared_norm, SMALLEST_SQUARE))

    @functools.cached_property
    def _single(self) -> tuple[Array, Array]:
        scratch = None if on_device(self.rows) else self._scratch(len(self.rows))
        return self._cast(self.kept), self._cast(self.rows, scratch)

    def _cast(self, rows: Array, out: Array | None = None) -> Array:
        if on_device(rows) or (rows.dtype == np.float32 and self._single_scale == 1.0):
            scaled = rows if self._single_scale == 1.0 else rows * self._single_scale
            single: Array = cast(scaled, np.float32)
            return single
        out = np.empty(rows.shape, dtype=np.float32) if out is None else out
        scale, parts = self._single_scale, spans(len(rows), max(1, CAST_ENTRIES // rows.shape[1]))

        def cast_part(i: int) -> None:
            part = parts[i]
            if scale == 1.0:
                np.copyto(out[part], rows[part], casting="same_kind")
            else:
                np.multiply(rows[part], rows.dtype.type(scale), out=out[part], casting="same_kind")

        in_parallel(cast_part, len(parts))
        return out


def digest(images: Array) -> bytes:
    """Return a digest of numbers that depend on every entry of the rows, to the last bit.

    Random numbers that are addressed by it cannot be known before the rows are.
    """
    return hashlib.blake2b(to_numpy(images).tobytes(), digest_size=16).digest()


def unit_rows(matrix: Array) -> Array:
    """Return the rows that are not zero at unit length, in single precision."""
    if on_device(matrix):
        lengths = np.sqrt(squared_norms(matrix))
        chosen = matrix[like(np.flatnonzero(lengths), matrix)]
        unit = cast(chosen, np.float64) / like(lengths[lengths > 0][:, None], matrix)
        single: Array = cast(unit, np.float32)
        return single
    rows = matrix.astype(np.float64, copy=False)
    lengths = np.sqrt(np.vecdot(rows, rows))
    nonzero = lengths > 0
    return np.asarray((rows[nonzero] / lengths[nonzero, None]).astype(np.float32))
