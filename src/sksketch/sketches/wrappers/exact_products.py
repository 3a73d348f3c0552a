"""Sums of products of rows and targets without any rounding: equal rows, equal bits."""

from __future__ import annotations

import functools
from fractions import Fraction
from types import ModuleType
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.double_double import Doubled
from sksketch.arrays.parallel import helped, in_parallel, n_threads, scratch
from sksketch.state.persistence import State

# Products of two slices have 42 bits, so that as many of them add up without rounding.
TILE_ROWS = 2048
# Rows with more bits than the first number of slices has take the next one.
SLICES = (3, 6, 12, 24, 48, 96)
# Rows are scaled to be less than this power of two, which leaves most room below.
TOP = 960
# Tiles of a block that are worth a thread of their own.
FEWEST_TILES = 2
# Tiles after which limbs are brought into 32 bits again.
CARRY_AFTER = 1024


class CenteredProducts(NamedTuple):
    """Sums of products around the means, or around zero, to about 32 digits.

    Parameters
    ----------
    weight : float
        Sum of the weights.
    mean : Doubled of shape (n_columns,)
        Means of the columns of rows and targets; zeros around zero.
    products : Doubled of shape (n_columns, n_columns)
        Sums of products of two columns.
    raw_squares : array of shape (n_columns,)
        Sums of squares around zero, wherever the products are around.
    """

    weight: float
    mean: Doubled
    products: Doubled
    raw_squares: Array


class ExactProducts:
    """Sums of products of all pairs of columns, of rows and targets and of ones.

    Parameters
    ----------
    n_columns : int
        Columns of rows and targets together; the targets come last.

    Notes
    -----
    A number is cut into slices of 22 bits at fixed places below the largest of its column in a
    tile of rows. Products of slices are integers of 42 bits, and so their sums over 2048 rows are
    exact in float64, in whatever order BLAS adds them (Ozaki, Ogita, Oishi and Rump 2012). These
    sums are added to integers of many limbs of 32 bits (Neal 2015). Nothing is ever rounded, so
    the sums do not depend on the order of rows, on blocks, on merges or on threads.

    A row times its weight is a sum of two numbers, without rounding as well (Dekker 1971).

    Examples
    --------
    >>> here, there = ExactProducts(1), ExactProducts(1)
    >>> here = here.update(np.array([[1e8], [1e-8]]), np.zeros((2, 0)))
    >>> there = there.update(np.array([[-1e8]]), np.zeros((1, 0)))
    >>> here.merge(there).centered(False).products.rounded() == 2e16 + 1e-16
    array([[ True]])
    """

    kind = "exact-products"
    version = 1

    def __init__(self, n_columns: int) -> None:
        self.n_columns = n_columns
        n = n_columns + 1
        self._limbs = np.zeros((0, n * (n + 1) // 2), np.int64)
        self._lowest = 0
        self._tiles_since = 0
        # Logarithms of the weights beside ones, once some weight was not one.
        self._logarithms: ExactProducts | None = None

    def update(self, rows: Matrix, targets: Array, weights: Array | None = None) -> Self:
        """Add checked rows, dense or CSR, and their targets of shape (n_rows, n_targets)."""
        starts = range(0, rows.shape[0], TILE_ROWS)
        # Sums without rounding may be made apart, by as many threads as there are.
        n_lanes = min(n_threads(), len(starts) // FEWEST_TILES) if helped() else 1
        others = [ExactProducts(self.n_columns) for _ in range(n_lanes - 1)]
        lanes: list[ExactProducts] = [self, *others]
        in_parallel(
            lambda i: lanes[i]._add_tiles(rows, targets, weights, starts[i :: len(lanes)]),
            len(lanes),
        )
        for other in others:
            self.merge(other)
        return self

    def _add_tiles(
        self, rows: Matrix, targets: Array, weights: Array | None, starts: range
    ) -> None:
        """Add the tiles of rows that begin at some places."""
        n_features = rows.shape[1]
        # Rows that need more slices, of several tiles together.
        left = np.empty((0, self.n_columns + 1))
        for start in starts:
            here = slice(start, start + TILE_ROWS)
            part: Any = rows[here]
            tile = np.ones((part.shape[0], self.n_columns + 1))
            tile[:, 1 : n_features + 1] = part.toarray() if sp.issparse(part) else part
            tile[:, n_features + 1 :] = targets[here]
            if weights is not None and (weights[here] != 1.0).any():
                counted = weights[here] > 0.0
                self._add_weighted(tile[counted], weights[here][counted])
            else:
                left = np.concatenate([left, self._add_sliced(tile, SLICES[0])])
            if len(left) >= TILE_ROWS:
                self._add(left, SLICES[1:])
                left = left[:0]
        self._add(left, SLICES[1:])

    def _add_weighted(self, tile: Array, weights: Array) -> None:
        if self._logarithms is None:
            self._logarithms = ExactProducts(1)
        self._logarithms.update(np.log(weights)[:, None], np.zeros((len(weights), 0)))
        # Rows times their weights, as sums of two numbers: without rounding.
        times = Doubled.of(tile) * Doubled.of(weights[:, None])
        self._add(np.hstack([tile, times.high, times.low]), SLICES)

    def _add(self, rows: Array, slices: tuple[int, ...]) -> None:
        """Add rows with as few slices as each of them needs."""
        for n_slices in slices:
            tiles = [rows[i : i + TILE_ROWS] for i in range(0, len(rows), TILE_ROWS)]
            if not tiles:
                break
            rows = np.concatenate([self._add_sliced(tile, n_slices) for tile in tiles])

    def _add_sliced(self, tile: Array, n_slices: int) -> Array:
        """Add the rows of a tile for which that many slices are enough; return the others.

        Added are the products of the first columns with themselves, or with the others if any.
        """
        n_rows, n = tile.shape
        loops = product_kernels()
        largest = np.maximum(tile.max(axis=0), -tile.min(axis=0)) if n_rows else np.zeros(n)
        exponents = np.frexp(largest)[1].astype(np.int64)
        # In two steps: a factor by itself may be beyond all numbers.
        half = (TOP - exponents) // 2
        factors = np.ldexp(1.0, np.stack([half, TOP - exponents - half]))
        places = TOP - loops.FIRST_BITS - loops.SLICE_BITS * np.arange(n_slices)
        places = places[places >= -1022]
        shape = n_rows, n * len(places)
        # What is rare and large is not kept.
        out = scratch(shape, np.float64) if n_slices == SLICES[0] else np.empty(shape)
        left = np.zeros(n_rows, np.int64)
        done, missing = loops.slice_rows_inplace(
            out, left, np.empty(n), tile, factors, np.ldexp(1.0, places)
        )
        if done:
            n_left = self.n_columns + 1
            products = _products(out[:done], len(places), n_left)
            firsts = exponents - loops.FIRST_BITS
            mine, others = firsts[:n_left], firsts[n_left:] if n > n_left else firsts
            self._make_room(mine, others, len(places))
            args = products, mine, others, len(places), self._lowest
            loops.add_products_inplace(self._limbs, *args)
            self._tiles_since += 1
            if self._tiles_since >= CARRY_AFTER:
                self._carry()
        return np.asarray(tile[left[:missing]])

    def _make_room(self, left: Array, right: Array, n_slices: int) -> None:
        """Let limbs reach from the last bit of these products to well above the first."""
        step = 2 * product_kernels().SLICE_BITS * (n_slices - 1)
        low = (int(left.min()) + int(right.min()) - step) // 32
        # A product of 53 bits, and room for 2^60 of them.
        high = (int(left.max()) + int(right.max())) // 32 + 6
        if not len(self._limbs):
            self._lowest = low
        below = max(self._lowest - low, 0)
        above = max(high - self._lowest - len(self._limbs), 0)
        if below or above:
            self._limbs = np.pad(self._limbs, ((below, above), (0, 0)))
            self._lowest -= below

    def _carry(self) -> None:
        if len(self._limbs):
            product_kernels().carry_inplace(self._limbs)
        self._tiles_since = 0

    @property
    def log_weights(self) -> float:
        """Sum of the logarithms of the weights."""
        if self._logarithms is None:
            return 0.0
        found, place = self._logarithms.whole()
        return _rounded(found[0][1], 1, place)[0]

    def merge(self, other: ExactProducts) -> Self:
        """Add what another one has seen, which is left as it was."""
        theirs = other._limbs
        if other._logarithms is not None:
            self._logarithms = (self._logarithms or ExactProducts(1)).merge(other._logarithms)
        if len(theirs):
            if not len(self._limbs):
                self._lowest = other._lowest
            below = max(self._lowest - other._lowest, 0)
            lowest = self._lowest - below
            end = other._lowest + len(theirs) - lowest
            above = max(end - below - len(self._limbs), 0)
            self._limbs = np.pad(self._limbs, ((below, above), (0, 0)))
            self._lowest = lowest
            first = other._lowest - lowest
            self._carry()
            self._limbs[first:end] += theirs
            self._carry()
        return self

    def whole(self) -> tuple[list[list[int]], int]:
        """Return all sums as integers, and the power of two that these count in."""
        n = self.n_columns + 1
        limbs = self._limbs.copy()
        if len(limbs):
            product_kernels().carry_inplace(limbs)
        sums = [0] * limbs.shape[1]
        for row in limbs[::-1].tolist():
            sums = [(total << 32) + limb for total, limb in zip(sums, row, strict=True)]
        found: list[list[int]] = [[0] * n for _ in range(n)]
        entry = 0
        for i in range(n):
            for j in range(i, n):
                found[i][j] = found[j][i] = sums[entry]
                entry += 1
        return found, 32 * self._lowest

    def centered(self, around_means: bool) -> CenteredProducts:
        """Return the sums around the means or around zero, rounded only now."""
        found, place = self.whole()
        n = self.n_columns
        total = found[0][0]
        weight = _rounded(total, 1, place)[0] if total else 0.0
        means, products = np.zeros((2, n)), np.zeros((2, n, n))
        moved = around_means and total > 0
        for i in range(n):
            if moved:
                means[:, i] = _rounded(found[0][i + 1], total, 0)
            for j in range(i, n):
                top, below = found[i + 1][j + 1], 1
                if moved:
                    top, below = top * total - found[0][i + 1] * found[0][j + 1], total
                products[:, i, j] = products[:, j, i] = _rounded(top, below, place)
        raw = np.array([_rounded(found[i + 1][i + 1], 1, place)[0] for i in range(n)])
        return CenteredProducts(weight, Doubled(*means), Doubled(*products), raw)

    def residuals(self, model: list[list[Fraction]], around_means: bool) -> Array:
        """Return sums of products of the columns with what models leave, rounded only now.

        Parameters
        ----------
        model : list of list of Fraction
            For each model the coefficients of the columns and of the targets, without one.
        around_means : bool
            Whether all columns are meant around their means.

        Returns
        -------
        array of shape (n_columns, n_models)
        """
        found, place = self.whole()
        total = found[0][0] if around_means else 1
        left = np.zeros((self.n_columns, len(model)))
        for m, coefficients in enumerate(model):
            below = max(value.denominator for value in coefficients)
            tops = {i + 1: int(value * below) for i, value in enumerate(coefficients) if value}
            mean = sum(top * found[0][i] for i, top in tops.items())
            for j in range(self.n_columns):
                value = sum(top * found[j + 1][i] for i, top in tops.items())
                if around_means:
                    value = value * total - found[0][j + 1] * mean
                left[j, m] = _rounded(value, total * below, place)[0]
        return left

    def squared_errors(self, model: list[list[Fraction]]) -> list[Fraction]:
        """Return the exact sum of squared errors of models.

        Parameters
        ----------
        model : list of list of Fraction
            For each model the coefficients of one, of the columns and of the targets: a target
            with coefficient -1 is what is predicted.

        Returns
        -------
        list of Fraction
        """
        found, place = self.whole()
        scale = Fraction(2) ** place
        errors = []
        for coefficients in model:
            # Over one denominator: sums of integers are much faster than those of fractions.
            below = 1
            for value in coefficients:
                below = max(below, value.denominator)
            tops = [int(value * below) for value in coefficients]
            used = [i for i, top in enumerate(tops) if top]
            total = sum(tops[i] * sum(tops[j] * found[i][j] for j in used) for i in used)
            errors.append(scale * Fraction(total, below * below))
        return errors

    def state(self) -> State:
        """Return the sums as plain data."""
        limbs, lowest = self._limbs.copy(), self._lowest
        if len(limbs):
            product_kernels().carry_inplace(limbs)
        # Limbs that only repeat the sign, and zeros below the last bit, are left out.
        while len(limbs) > 1 and ((limbs[-1] == 0) | (limbs[-1] == -1)).all():
            limbs[-2] += limbs[-1] << 32
            limbs = limbs[:-1]
        n_below = 0
        while n_below < len(limbs) - 1 and not limbs[n_below].any():
            n_below += 1
        meta: dict[str, Any] = {"n_columns": self.n_columns, "lowest": lowest + n_below}
        state = State(self.kind, self.version, meta, {"limbs": limbs[n_below:].copy()})
        logarithms = self._logarithms
        return state if logarithms is None else state.with_inner("logs", logarithms.state())

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build what `state` was taken from."""
        state.require(cls.version)
        meta: Any = state.meta
        made = cls(meta["n_columns"])
        made._limbs = np.array(state.array("limbs", None, made._limbs.shape[1]), dtype=np.int64)
        made._lowest = meta["lowest"]
        if "logs.kind" in meta:
            made._logarithms = cls.from_state(state.inner("logs"))
        return made


def _products(slices: Array, n_slices: int, n_left: int) -> Array:
    """Return the products of slices of the first columns with those of all others, if any."""
    if slices.shape[1] == n_slices * n_left:
        return np.asarray(slices.T @ slices)
    each = slices.reshape(len(slices), n_slices, -1)
    left = each[:, :, :n_left].reshape(len(slices), -1)
    right = each[:, :, n_left:].reshape(len(slices), -1)
    return np.asarray(left.T @ right)


def _rounded(top: int, below: int, place: int) -> tuple[float, float]:
    """Return ``top / below * 2^place`` as a sum of two floats."""
    top, below = (top << place, below) if place > 0 else (top, below << -place)
    high = _quotient(top, below)
    whole, part = high.as_integer_ratio()
    return high, _quotient(top * part - whole * below, below * part)


def _quotient(top: int, below: int) -> float:
    """Return the nearest float."""
    return top / below


@functools.cache
def product_kernels() -> ModuleType:
    """Return the loops; the compiler is loaded at the first call."""
    from sksketch.arrays.kernels import exact_products

    return exact_products
