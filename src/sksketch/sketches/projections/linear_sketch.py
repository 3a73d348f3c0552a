"""Base of the sketches B = S A: shards, targets that come along, reading, saving."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array, Matrix
from sksketch.arrays.linalg import thin_svd
from sksketch.arrays.namespace import joined, like, on_device, precision
from sksketch.arrays.rounding import gamma
from sksketch.arrays.rows import as_rows, as_weights, squared_row_norms
from sksketch.low_rank import LowRankPlusRidge
from sksketch.sketches.base import Answer, Sketch, megabytes
from sksketch.sketches.certificate import Certificate
from sksketch.sketches.forgetting import accumulated_weight
from sksketch.sketches.options import whole_number
from sksketch.sketches.projections.sparse_total import DENSE_BYTES
from sksketch.sketches.targets import as_targets, check_same, described
from sksketch.state.persistence import State


class LinearSketch(Sketch):
    """B = S A with a random S of few rows, so that B'B is A'A on average.

    S is a function of seed, shard and position in the stream, and is never stored. Rows and
    targets are kept side by side as wide rows ``[x, y]``, so that both meet the same S.

    A subclass says how wide rows are taken in (`_add`), what they have become (`_product`)
    and what of that is saved (`_held`, `_hold`).
    """

    initial_ridge: ClassVar[float] = 0.0
    # Whether B of sparse rows is itself sparse.
    _keeps_zeros: ClassVar[bool] = False

    def __init__(self, sketch_size: int, *, seed: int = 0, shard: int = 0) -> None:
        self.sketch_size = whole_number("sketch_size", sketch_size)
        self.seed = int(seed)
        self.shard = whole_number("shard", shard, 0)
        self._shards = frozenset({self.shard})
        self._own_rows = 0
        self._squared_norm = 0.0
        # Of the targets of one row: () if there is one, (n_targets,) if they came as columns.
        self._target_shape: tuple[int, ...] | None = None
        self._arriving: Array | None = None
        # Whether B is held as sparse rows, as is decided when the first rows come.
        self._sparse = False
        self._cached: tuple[Array, Answer] | None = None

    # Taking rows in

    def update(self, X: object, weights: object = None, targets: object = None) -> Self:
        """Take in a block of rows, or a single row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            Real, finite numbers; sparse rows stay sparse.
        weights : array-like of shape (n_rows,), default=None
            Each row counts as ``weights[i]`` copies of itself.
        targets : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            Columns b that meet the same S as the rows: `targets` is then S b. They come
            with all updates of a sketch or with none.

        Returns
        -------
        self
            The sketch itself, unchanged if the block is refused.
        """
        rows = as_rows(X, n_features=self.n_features)
        columns = None
        if targets is not None:
            dtype = precision(rows) if self.dtype is None else self.dtype
            columns = as_targets(targets, as_weights(weights, rows.shape[0]), rows.shape[0], dtype)
        shape = None if columns is None else columns.shape[1:]
        if self.n_features is not None:
            check_same(shape, self._target_shape)
        self._arriving = columns
        if self.n_features is None:
            self._sparse = sp.issparse(rows)
        try:
            return super().update(rows, weights)
        finally:
            self._arriving = None

    @property
    def _width(self) -> int:
        """Columns of the rows and of the targets."""
        assert self.n_features is not None
        shape = self._target_shape
        return self.n_features + (0 if shape is None else math.prod(shape))

    def _begin(self, n_features: int, dtype: np.dtype[Any]) -> None:
        super()._begin(n_features, dtype)
        self._target_shape = None if self._arriving is None else self._arriving.shape[1:]
        large = self.sketch_size * self._width * dtype.itemsize > DENSE_BYTES
        self._sparse = self._sparse and self._keeps_zeros and large
        self._allocate()

    def _take(self, rows: Matrix) -> None:
        self._cached = None
        n_rows = rows.shape[0]
        norms = squared_row_norms(rows, precision(rows))
        if self._arriving is not None:
            columns = self._arriving[:n_rows].reshape(n_rows, -1).astype(precision(rows))
            self._arriving = self._arriving[n_rows:]
            if sp.issparse(rows):
                rows = sp.hstack([rows, sp.csr_array(columns)], format="csr")
            else:
                rows = joined([rows, like(columns, rows)], axis=1)
        host = not sp.issparse(rows) and not on_device(rows)
        self._add(np.ascontiguousarray(rows) if host else rows, norms)
        self._own_rows += n_rows
        self._squared_norm = accumulated_weight(self._squared_norm, norms, 1.0)

    @abstractmethod
    def _allocate(self) -> None:
        """Make room for what wide rows become; columns, precision and targets are known."""

    @abstractmethod
    def _add(self, rows: Matrix, norms: Array) -> None:
        """Add wide rows, dense or CSR; ``norms`` are the squared norms without targets."""

    @abstractmethod
    def _product(self) -> Array:
        """Return a new array with S [A, b], with the targets b as its last columns."""

    def fresh(self) -> Self:
        """Return an empty sketch with the same options, the shard number included.

        Returns
        -------
        Sketch
            An empty sketch of the same class.
        """
        return type(self)(self.sketch_size, seed=self.seed, shard=self.shard)

    def for_shard(self, index: int, n_shards: int) -> Self:
        """Return an empty sketch with random numbers of its own for one of many parts.

        Parts of two tables that were given different shards differ as well.

        Parameters
        ----------
        index : int
            Number of the part, from 0 on.
        n_shards : int
            Number of all parts.

        Returns
        -------
        Sketch
            An empty sketch for that part.
        """
        shard = self.shard * n_shards + index
        return type(self)(self.sketch_size, seed=self.seed, shard=shard)

    # Merging

    @property
    def shards(self) -> tuple[int, ...]:
        """The shard numbers of all rows seen, and its own, in ascending order."""
        return tuple(sorted(self._shards))

    def _refusal(self, other: Self) -> str | None:
        if (reason := self._differing(other, "sketch_size", "seed")) is not None:
            return reason
        if other.n_features is None:
            return None
        if common := sorted(self._shards & other._shards):
            return (
                f"both hold shard {common[0]}, so their random numbers are the same and their "
                "errors would add up; build every shard with its own shard=..."
            )
        if self.n_features is not None and self._target_shape != other._target_shape:
            return (
                f"the rows came with {described(self._target_shape)} here and with "
                f"{described(other._target_shape)} there; give both the same"
            )
        return None

    def merge(self, other: Self) -> Self:
        """Add what another sketch has seen, as if its rows had come here.

        Parameters
        ----------
        other : LinearSketch
            Of the same kind, size and seed, with other shards; it is left as it was.

        Returns
        -------
        self
            The sketch itself.
        """
        if self.n_features is None and isinstance(other, LinearSketch):
            self._sparse = other._sparse
        return super().merge(other)

    def _absorb(self, other: Self) -> None:
        self._cached = None
        if not self.n_rows_seen:
            self._target_shape, self._sparse = other._target_shape, other._sparse
            self._allocate()
        self._join(other)
        self._shards |= other._shards
        self._squared_norm += other._squared_norm

    @abstractmethod
    def _join(self, other: Self) -> None:
        """Add the product of ``other``, which has other shards."""

    # Reading

    @property
    def matrix(self) -> Array:
        """B = S A, of shape (sketch_size, n_features), in the precision of the rows."""
        n_features = self._require_rows()
        return self._read()[0][:, :n_features].copy()

    @property
    def compact_matrix(self) -> Any:
        """B as it is held: a CSR array for sparse rows of very many columns, else `matrix`."""
        n_features = self._require_rows()
        if not self._sparse:
            return self._product()[:, :n_features]
        return self._compact()[:, :n_features]

    def _compact(self) -> Any:
        """Return S [A, b] as a CSR array; those that hold it as one need not build it."""
        return sp.csr_array(self._product())

    @property
    def targets(self) -> Array | None:
        """S b for the targets b that came with the rows; None if none came."""
        n_features = self._require_rows()
        if self._target_shape is None:
            return None
        columns = self._read()[0][:, n_features:]
        return columns.reshape(self.sketch_size, *self._target_shape).copy()

    def _read(self) -> tuple[Array, Answer]:
        n_features = self._require_rows()
        if self._cached is None:
            product = self._product()
            self._cached = product, self._solve(product[:, :n_features])
        return self._cached

    def _answer(self, extra: Array | None = None, allowance: float = 0.0) -> Answer:
        if extra is not None:
            raise ValueError(f"a {type(self).__name__} cannot be wrapped")
        return self._read()[1]

    def _solve(self, B: Array) -> Answer:
        singular_values, vectors = thin_svd(B)
        floor = max(B.shape) * float(np.finfo(B.dtype).eps) * singular_values[0]
        rank = int(np.count_nonzero(singular_values > floor))
        total = self._squared_norm
        # B'B may be above or below A'A, so nothing but rows of zeros is certain.
        bound = math.inf if total > 0 else 0.0
        # A sum over columns and rows, with their weights.
        most = total * (1.0 + gamma(B.shape[1] + self.n_rows_seen + 8))
        summary = LowRankPlusRidge(
            vectors[:rank].astype(B.dtype, copy=False),
            singular_values[:rank] ** 2,
            error_bound=bound,
            n_rows_seen=self.n_rows_seen,
            squared_norm=total,
        )
        certificate = Certificate(
            spectral_error=(0.0, bound),
            captured_energy=np.tile([0.0, 1.0], (rank, 1)),
            # The eigenvalues of A'A sum to the total, so k of them are at most a k-th of it.
            eigenvalues=np.stack([np.zeros(rank), most / np.arange(1, rank + 1)], axis=1),
            n_certain=0,
            squared_norm=total,
            n_rows_seen=self.n_rows_seen,
        )
        return Answer(summary, certificate)

    @property
    def squared_norm(self) -> float:
        """Sum of the squared entries of all rows seen (weighted), without targets."""
        return self._squared_norm

    def _plan(self) -> str:
        n_features = self._require_rows()
        held = sum(array.nbytes for array in self._held().values())
        return (
            f"{type(self).__name__}({self.sketch_size}) on {n_features} columns: keeps S A for "
            f"shard {self.shard} of seed {self.seed} (unbiased, no certified bound), "
            f"in about {megabytes(held)}."
        )

    # Saving

    @abstractmethod
    def _held(self) -> dict[str, Array]:
        """Return copies of the arrays that the rows have become."""

    @abstractmethod
    def _hold(self, arrays: Mapping[str, Array]) -> None:
        """Take back what `_held` returned, into the room that was allocated."""

    def state(self) -> State:
        """Return S A, what waits to be added to it, and the counters.

        Returns
        -------
        State
            Plain values and arrays, as `save` writes them.
        """
        shape = self._target_shape
        meta = {
            "sketch_size": self.sketch_size,
            "seed": self.seed,
            "shard": self.shard,
            "n_rows_seen": self.n_rows_seen,
            "total_weight": self.total_weight,
            "n_features": self.n_features,
            "dtype": None if self.dtype is None else str(self.dtype),
            # 0 for a single target that is no column.
            "n_targets": None if shape is None else sum(shape),
            "own_rows": self._own_rows,
            "squared_norm": self._squared_norm,
        }
        arrays = {"shards": np.array(self.shards, dtype=np.int64)}
        if self.n_features is not None:
            arrays |= self._held()
        return State(self.kind, self.version, meta, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build a sketch that continues where ``state`` was taken.

        Parameters
        ----------
        state : State
            What `state` returned, or what was read from a file.

        Returns
        -------
        Sketch
            A sketch that continues where ``state`` was taken.
        """
        cls._check_kind(state)
        meta: Any = state.meta
        sketch = cls(meta["sketch_size"], seed=meta["seed"], shard=meta["shard"])
        if meta["n_features"] is not None:
            n_targets = meta["n_targets"]
            sketch.n_features, sketch.dtype = meta["n_features"], np.dtype(meta["dtype"])
            if n_targets is not None:
                sketch._target_shape = (n_targets,) if n_targets else ()
            sketch._sparse = any(name.endswith("_indptr") for name in state.arrays)
            sketch._allocate()
            sketch._hold(state.arrays)
        sketch._shards = frozenset(state.arrays["shards"].tolist())
        sketch._own_rows = meta["own_rows"]
        sketch._squared_norm = meta["squared_norm"]
        sketch.n_rows_seen = meta["n_rows_seen"]
        sketch.total_weight = meta["total_weight"]
        return sketch
