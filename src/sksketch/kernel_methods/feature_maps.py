"""Feature maps: rows to columns whose products are kernel values, block after block.

Random features are made again from their seed whenever they are needed; Nystrom features
keep the rows that they compare with. Both have the same face.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import dtype_name, like, on_device, to_numpy, zeros
from sksketch.arrays.parallel import in_parallel, spans
from sksketch.kernel_methods.batching import BatchQueue, copied
from sksketch.kernel_methods.feature_sampling import TOGETHER, Columns, draw, feature_values
from sksketch.kernel_methods.kernels import Kernel
from sksketch.state.persistence import State

# Columns that are computed at a time, for rows that make `BLOCK_BYTES` of them.
BLOCK_COLUMNS = 1024
BLOCK_BYTES = 1 << 21
DEVICE_COLUMNS = 1 << 15


class FeatureBlock(NamedTuple):
    """The features ``values`` of some ``rows``; their ``columns`` come in an order of their own."""

    rows: slice
    columns: Any
    values: Any


class FeatureMap(ABC):
    """Columns Phi(x) with k(x, y) ~ Phi(x) . Phi(y) / n_columns, a range of them at a time."""

    kernel: Kernel
    n_columns: int
    # A range begins and ends at a multiple of it, or at the end of all columns.
    unit: int
    # Columns that are computed at once at most.
    most_columns: int

    @abstractmethod
    def parameters(self, start: int, stop: int, X: Rows) -> tuple[Any, Any]:
        """Return the order of a range of columns, and what they are computed from."""

    @abstractmethod
    def values(self, start: int, stop: int, parameters: tuple[Any, ...], X: Rows) -> Any:
        """Return a range of columns for some rows, in that order."""

    @abstractmethod
    def state(self) -> State:
        """Return all it is as plain data; `load_features` builds it again."""

    def blocks(self, X: Rows, start: int = 0, stop: int | None = None) -> Iterator[FeatureBlock]:
        """Yield the features of rows ``X``, one range of columns after the other."""
        for parts in self._ranges(X, start, self.n_columns if stop is None else stop):
            for part in parts:
                yield part()

    def _ranges(self, X: Rows, start: int, stop: int) -> Iterator[list[Callable[[], FeatureBlock]]]:
        """Yield for each range of columns its blocks of rows, to be computed in any order."""
        # A device is faster at one large product than at several.
        step = max(self.most_columns, DEVICE_COLUMNS) if self._long(X) else self.most_columns
        for begin in range(start, stop, step):
            end = min(begin + step, stop)
            columns, parameters = self.parameters(begin, end, X)
            n_rows = X.shape[0] if on_device(X) else max(64, BLOCK_BYTES // (8 * (end - begin)))

            def block(
                first: int, begin: int = begin, end: int = end, n: int = n_rows, known: Any = None
            ) -> FeatureBlock:
                rows = slice(first, min(first + n, X.shape[0]))
                order, given = known
                return FeatureBlock(rows, order, self.values(begin, end, given, X[rows]))

            known = columns, parameters
            yield [partial(block, i, known=known) for i in range(0, X.shape[0], n_rows)]

    def _each(self, use: Callable[[FeatureBlock], None], X: Rows, start: int, stop: int) -> None:
        """Use the blocks of all rows at the same time, one range of columns after the other."""
        for parts in self._ranges(X, start, stop):
            in_parallel(lambda i, parts=parts: use(parts[i]()), len(parts))  # type: ignore[misc]

    def _long(self, X: Rows) -> bool:
        return self.unit <= 2 and on_device(X)

    def evaluate(self, X: Rows, coefficients: Rows) -> Any:
        """Return sum_j Phi_j(x) coefficients_j for rows x in float64, one column per function.

        The coefficients may be fewer than all columns, those of the first ones.
        """
        a = like(coefficients, X, dtype_name(X))
        # What was saved is in C order, and BLAS may have other bits for another.
        a = a if on_device(a) else np.ascontiguousarray(a)
        H = zeros((X.shape[0], a.shape[1]), X)

        def add(block: FeatureBlock) -> None:
            H[block.rows] += block.values @ a[block.columns]

        self._each(add, X, 0, a.shape[0])
        return H

    def transform(self, X: Rows) -> Any:
        """Return all columns, scaled so that their products are kernel values."""
        Z = self.columns(X, 0, self.n_columns)
        Z *= self.n_columns**-0.5
        return Z

    def columns(self, X: Rows, start: int, stop: int) -> Any:
        """Return a range of columns, in their own order."""
        F = zeros((X.shape[0], stop - start), X, dtype_name(X))

        def write(block: FeatureBlock) -> None:
            F[block.rows, block.columns - start] = block.values

        self._each(write, X, start, stop)
        return F


class RandomFeatureMap(FeatureMap):
    """Random features, a pure function of their seed and index.

    Parameters
    ----------
    kernel : Kernel
    n_features : int
        Columns of the rows.
    n_columns : int
        Random features in all.
    seed : int
    block_columns : int
        Features of the linear and polynomial kernels that are drawn at a time; the others one by
        one.
    pairs : bool
        Whether the cosine and the sine of each frequency are two columns; otherwise each
        frequency is one column with a random phase. Shift-invariant kernels only.
    cached : bool
        Whether to keep the frequencies, ``n_columns * n_features`` numbers.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> Z = RandomFeatureMap(Kernel("gaussian"), 2, 4096, seed=0).transform(X)
    >>> bool(abs(Z @ Z.T - np.exp([[0.0, -0.5], [-0.5, 0.0]])).max() < 0.05)
    True
    """

    def __init__(
        self,
        kernel: Kernel,
        n_features: int,
        n_columns: int,
        seed: int,
        *,
        block_columns: int = BLOCK_COLUMNS,
        pairs: bool = True,
        cached: bool = False,
    ) -> None:
        self.kernel = kernel
        self.n_features = n_features
        self.n_columns = n_columns
        self.seed = seed
        self.block_columns = min(block_columns, n_columns)
        self.pairs = pairs and kernel.shift_invariant
        # The features of products are drawn together, those of waves in pairs.
        whole = kernel.name in TOGETHER
        self.unit = self.block_columns if whole else 1 + self.pairs
        self.most_columns = self.block_columns if whole else BLOCK_COLUMNS
        self._kept: dict[Any, Any] | None = {} if cached else None

    def parameters(self, start: int, stop: int, X: Rows) -> tuple[Any, Any]:
        """Return order and parameters of columns, in the precision and on the device of X."""
        key = (start, stop, dtype_name(X), str(getattr(X, "device", "")))
        if self._kept is not None and key in self._kept:
            order, parameters = self._kept[key]
            return order, parameters
        device = X if on_device(X) else np.empty(0)
        order, drawn = draw(self.kernel, self._columns(start, stop), device)
        parameters = tuple(
            part.astype(X.dtype) if hasattr(part, "tocsr") else like(part, X, dtype_name(X))
            for part in drawn
        )
        found = like(order, X), parameters
        if self._kept is not None:
            self._kept[key] = found
        return found

    def values(self, start: int, stop: int, parameters: tuple[Any, ...], X: Rows) -> Any:
        """Return a range of columns for some rows, in their order."""
        return feature_values(self.kernel, self._columns(start, stop), parameters, X)

    def state(self) -> State:
        """Return the seed and all else that features are a function of."""
        facts = {
            "n_features": self.n_features,
            "n_columns": self.n_columns,
            "seed": self.seed,
            "block_columns": self.block_columns,
            "pairs": self.pairs,
            "cached": self._kept is not None,
        }
        return State("random-features", 1, _facts(self.kernel) | facts, {})

    def _columns(self, start: int, stop: int) -> Columns:
        return Columns(self.seed, start, stop, self.n_features, self.pairs)


class NystromMap(FeatureMap):
    """Features k(x, Z) K_ZZ^(-1/2) of landmarks Z (Williams and Seeger 2001).

    Parameters
    ----------
    kernel : Kernel
    landmarks : array of shape (n_landmarks, n_features)
        Directions in which they carry less than 1e-8 of the largest eigenvalue are left out.

    Examples
    --------
    >>> Z = np.array([[0.0], [1.0], [2.0]])
    >>> F = NystromMap(Kernel("gaussian"), Z).transform(Z)
    >>> bool(np.allclose(F @ F.T, np.exp(-0.5 * (Z - Z.T) ** 2)))
    True
    """

    def __init__(self, kernel: Kernel, landmarks: Rows) -> None:
        self.kernel = kernel
        # They may be rows of the caller, all of them or those named as a parameter.
        self.landmarks = copied(landmarks)
        K = to_numpy(kernel(landmarks, landmarks)).astype(np.float64)
        eigenvalues, vectors = np.linalg.eigh((K + K.T) / 2.0)
        keep = eigenvalues > 1e-8 * max(eigenvalues[-1], 0.0)
        if not keep.any():
            raise ValueError("the kernel is zero on all landmarks; scale the rows or name others")
        self.whitening: Array = vectors[:, keep] / np.sqrt(eigenvalues[keep])
        self.n_columns = self.unit = self.most_columns = self.whitening.shape[1]

    def parameters(self, start: int, stop: int, X: Rows) -> tuple[Any, Any]:
        """Return landmarks and whitening, in the precision and on the device of X."""
        dtype = dtype_name(X)
        Z = self.landmarks
        Z = Z.astype(X.dtype) if hasattr(Z, "tocsr") else like(Z, X, dtype)
        order = like(np.arange(start, stop), X)
        return order, (Z, like(self.whitening * self.n_columns**0.5, X, dtype))

    def values(self, start: int, stop: int, parameters: tuple[Any, ...], X: Rows) -> Any:
        """Return all columns for some rows."""
        landmarks, whitening = parameters
        return self.kernel(X, landmarks) @ whitening

    def evaluate(self, X: Rows, coefficients: Rows) -> Any:
        """Return sums of the columns, without making all of them."""
        a = to_numpy(coefficients).astype(np.float64, order="C")
        Z, _ = self.parameters(0, self.n_columns, X)[1]
        weights = like(self.whitening @ a * self.n_columns**0.5, X, dtype_name(X))
        H = zeros((X.shape[0], a.shape[1]), X)
        step = X.shape[0] if on_device(X) else max(64, BLOCK_BYTES // (8 * Z.shape[0]))
        parts = spans(int(X.shape[0]), int(step))

        def write(i: int) -> None:
            H[parts[i]] = self.kernel(X[parts[i]], Z) @ weights

        in_parallel(write, len(parts))
        return H

    def state(self) -> State:
        """Return the landmarks."""
        rows = BatchQueue()
        rows.add(self.landmarks)
        return State("nystrom", 1, _facts(self.kernel), rows.arrays())


def _facts(kernel: Kernel) -> dict[str, Any]:
    params = json.dumps(kernel.params)
    return {"kernel": kernel.name, "bandwidth": kernel.bandwidth, "params": params}


def load_features(state: State) -> FeatureMap:
    """Build the feature map that ``state`` was taken from."""
    state.require(1)
    meta: Any = state.meta
    kernel = Kernel(meta["kernel"], meta["bandwidth"], json.loads(meta["params"]))
    if state.kind == "nystrom":
        found = BatchQueue.of(dict(state.arrays))
        return NystromMap(kernel, found.take(len(found))[0])
    return RandomFeatureMap(
        kernel,
        meta["n_features"],
        meta["n_columns"],
        meta["seed"],
        block_columns=meta["block_columns"],
        pairs=meta["pairs"],
        cached=meta["cached"],
    )
