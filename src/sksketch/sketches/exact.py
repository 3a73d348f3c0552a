"""A'A itself: the oracle of tests and the right choice when its square fits."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.gram import add_gram_inplace
from sksketch.arrays.linalg import aligned_empty, eigh_descending
from sksketch.arrays.namespace import (
    cast,
    copied,
    like,
    namespace,
    on_device,
    same_place,
    to_numpy,
)
from sksketch.arrays.rows import dense_chunks
from sksketch.low_rank import LowRankPlusRidge
from sksketch.persistence import State
from sksketch.sketches.base import Answer, Sketch, check_ridge, megabytes
from sksketch.sketches.buffer import RowBuffer, tile_rows
from sksketch.sketches.certificate import certify
from sksketch.sketches.forgetting import aged, decay_factor

BUFFER_ROWS = 512
DEVICE_ROWS = 4096
EPS = float(np.finfo(np.float64).eps)


class ExactCovariance(Sketch):
    """A'A without error, in O(n_features^2) memory.

    Parameters
    ----------
    initial_ridge : float
        The target is ``A'A + initial_ridge I``.
    decay : float, optional
        Factor in (0, 1] by which each new row lessens the weight of all earlier ones.
    half_life : float, optional
        The same as a number of rows after which a row counts half.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> sketch = ExactCovariance().update(X)
    >>> sketch.summary().to_dense().round(9)
    array([[10., 14.],
           [14., 20.]])
    >>> bool(sketch.error_bound() < 1e-12)
    True
    """

    kind = "exact-covariance"

    def __init__(
        self,
        *,
        initial_ridge: float = 0.0,
        decay: float | None = None,
        half_life: float | None = None,
    ) -> None:
        self.initial_ridge = check_ridge(initial_ridge)
        self.decay = decay_factor(decay, half_life)
        self._buffer = RowBuffer(BUFFER_ROWS)
        self._accumulated: Array | None = None
        self._cached: Answer | None = None

    def _begin(self, n_features: int, dtype: np.dtype[Any]) -> None:
        super()._begin(n_features, dtype)
        # As many as a wrapper centers together, which then writes them right here.
        self._buffer.enlarge(tile_rows(n_features * dtype.itemsize))
        self._buffer.allocate(n_features, dtype)

    def _take(self, rows: Any) -> None:
        self._cached = None
        # Sparse rows become dense a piece at a time: the pieces are small against A'A.
        for piece in dense_chunks(rows, rows.dtype) if sp.issparse(rows) else [rows]:
            self._buffer.settle(piece, DEVICE_ROWS)
            for block in self._buffer.fill(piece):
                self._accumulated = _added(self._accumulated, block, self.decay)

    def _lend(self, n_rows: int) -> Array | None:
        return self._buffer.lend(n_rows)

    def fresh(self) -> Self:
        """Return an empty sketch with the same options."""
        return type(self)(initial_ridge=self.initial_ridge, decay=self.decay)

    def matrix(self) -> Array:
        """Return A'A as a dense symmetric array."""
        self._require_rows()
        return to_numpy(_symmetric(self._upper()))

    def _upper(self, extra: Array | None = None) -> Array:
        """A'A with the waiting rows and ``extra``; only the upper triangle is meant."""
        waiting = self._buffer.with_extra(extra)
        held = self._accumulated
        if held is not None:
            held = copied(held) if on_device(held) else held.copy(order="F")
        elif not len(waiting):
            return _zeros(waiting.shape[1])
        return held if not len(waiting) and held is not None else _added(held, waiting, self.decay)

    def _answer(self, extra: Array | None = None) -> Answer:
        self._require_rows()
        if extra is not None:
            return self._solve(extra)
        if self._cached is None:
            self._cached = self._solve(None)
        return self._cached

    def _solve(self, extra: Array | None) -> Answer:
        C = self._upper(extra)
        total = float(namespace(C).linalg.trace(C))
        eigenvalues, V = eigh_descending(_symmetric(C))
        eigenvalues = np.maximum(eigenvalues, 0.0)
        V = to_numpy(V).astype(self.dtype, copy=False)
        n_rows_seen = self.n_rows_seen + (0 if extra is None else len(extra))
        rank = int(np.count_nonzero(eigenvalues > len(V) * EPS * eigenvalues[0]))
        # Rounding of the sums, and of the components in the precision of the rows.
        bound = 4 * (EPS * total + float(np.finfo(V.dtype).eps * eigenvalues[0]))
        summary = LowRankPlusRidge(
            np.ascontiguousarray(V[:, :rank].T),
            eigenvalues[:rank],
            ridge=self.initial_ridge,
            error_bound=bound,
            n_rows_seen=n_rows_seen,
            squared_norm=total,
        )
        certificate = certify(
            eigenvalues[:rank],
            lost=(0.0, bound),
            lost_mass=0.0,
            allowance=bound,
            spectral_error=(0.0, bound),
            squared_norm=total,
            n_rows_seen=n_rows_seen,
            confidence=1.0,
        )
        return Answer(summary, certificate)

    def _refusal(self, other: Self) -> str | None:
        return self._differing(other, "decay", "initial_ridge")

    def _absorb(self, other: Self) -> None:
        self._cached = None
        mine, theirs = self._upper(), other._upper()
        if not same_place(mine, theirs):
            there = mine if on_device(mine) else theirs
            mine, theirs = (like(_symmetric(part), there) for part in (mine, theirs))
        mine += theirs
        self._accumulated = mine
        self._buffer.clear()

    def _plan(self) -> str:
        n_features = self._require_rows()
        return (
            f"ExactCovariance: accumulates A'A of {n_features} columns without error "
            f"in {megabytes(8 * n_features**2 + self._buffer.nbytes)}."
        )

    def state(self) -> State:
        """Return the accumulated matrix, the buffered rows and the counters."""
        meta = {
            "initial_ridge": self.initial_ridge,
            "decay": self.decay,
            "n_rows_seen": self.n_rows_seen,
            "total_weight": self.total_weight,
            "n_features": self.n_features,
            "dtype": None if self.dtype is None else str(self.dtype),
        }
        arrays = {}
        if self.n_features is not None:
            arrays["buffer"] = self._buffer.saved()
        if self._accumulated is not None:
            arrays["accumulated"] = to_numpy(self._accumulated).T.copy()
        return State(self.kind, self.version, meta, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build a sketch that goes on where ``state`` was taken."""
        cls._check_kind(state)
        meta: Any = state.meta
        sketch = cls(initial_ridge=meta["initial_ridge"], decay=meta["decay"])
        if meta["n_features"] is not None:
            sketch._begin(meta["n_features"], np.dtype(meta["dtype"]))
            sketch._buffer.restore(state.arrays["buffer"])
            if "accumulated" in state.arrays:
                accumulated = state.array("accumulated", sketch.n_features, sketch.n_features)
                sketch._accumulated = accumulated.astype(np.float64, order="C", copy=False).T
        sketch.n_rows_seen = meta["n_rows_seen"]
        sketch.total_weight = meta["total_weight"]
        return sketch


def _symmetric(upper: Array) -> Array:
    if on_device(upper):
        return upper
    return np.asarray(np.triu(upper) + np.triu(upper, 1).T)


def _zeros(n_features: int) -> Array:
    # Fortran order is what BLAS updates without a copy.
    C = aligned_empty((n_features, n_features), np.dtype(np.float64)).T
    C[...] = 0.0
    return C


def _added(C: Array | None, rows: Array, decay: float) -> Array:
    """Return ``C``, changed in place, with ``rows' rows`` in its upper triangle, in float64.

    On a device, where there is no such product, in both triangles.
    """
    X = cast(aged(rows, decay), np.float64)
    if on_device(X) or on_device(C):
        X = X if C is None or not on_device(C) else like(X, C)
        product: Array = X.T @ X
        return product if C is None else like(_symmetric(C), X) * decay ** len(rows) + product
    C = _zeros(X.shape[1]) if C is None else C
    add_gram_inplace(C, X, decay ** len(rows))
    return C
