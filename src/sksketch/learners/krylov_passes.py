"""Leading directions of features by passes over all rows, which may come in any blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.namespace import dtype_name, like, namespace, to_numpy, zeros
from sksketch.arrays.subspace import orthonormal, ritz_of_images
from sksketch.learners.features import FeatureMap, Piece

# The features of a batch are kept for its second half up to so many bytes.
HELD_BYTES = 1 << 27


class KrylovPasses:
    """Block Krylov for the covariance of features, one product with it in a pass.

    Parameters
    ----------
    features : FeatureMap
    start : array of shape (n_columns, k)
        Directions to begin with, for the first ``n_columns`` features.
    center : bool
        Whether the covariance is about the mean.
    """

    def __init__(self, features: FeatureMap, start: Any, center: bool) -> None:
        self.features = features
        self.center = center
        self.n_components = int(start.shape[1])
        self.basis = [orthonormal(start)]
        self.images: list[Any] = []
        self._open()

    def _open(self) -> None:
        self.total = 0.0 * self.basis[-1]
        self.sums = 0.0 * self.basis[0][:, 0]
        self.n_rows = 0

    def add(self, X: Any) -> None:
        """Take more rows of this pass."""
        W = self.basis[-1]
        n_columns = W.shape[0]
        cast = like(W, X, dtype_name(X))
        limit = max(256, HELD_BYTES // (n_columns * X.dtype.itemsize))
        for start in range(0, X.shape[0], limit):
            part = X[start : start + limit]
            pieces = Pieces(self.features, part, n_columns)
            T = zeros((part.shape[0], W.shape[1]), X)
            for rows, columns, values in pieces:
                T[rows] += values @ cast[columns]
            for rows, columns, values in pieces:
                self.total[columns] += product(values, T[rows])
                self.sums[columns] += column_sums(values)
            self.n_rows += part.shape[0]

    def end_pass(self) -> None:
        """All rows have come: go on to the next product."""
        self.images.append(self._image())
        rest = self.images[-1]
        for _ in range(2):
            for B in self.basis:
                rest = rest - B @ (B.T @ rest)
        self.basis.append(orthonormal(rest))
        self._open()

    def _image(self) -> Any:
        image = self.total / self.n_rows
        if self.center:
            means = self.sums / self.n_rows
            image = image - means[:, None] * (means @ self.basis[-1])[None, :]
        return image / image.shape[0]

    @property
    def means(self) -> Any:
        """Mean of each feature over the rows of this pass."""
        return self.sums / max(self.n_rows, 1)

    def result(self) -> tuple[Any, Any]:
        """Return eigenvalues and directions, when all rows of the last pass have come."""
        xp = namespace(self.total)
        S = xp.concat(self.basis[: len(self.images) + 1], axis=1)
        images = xp.concat([*self.images, self._image()], axis=1)
        return ritz_of_images(S, images, self.n_components)

    def arrays(self) -> dict[str, Array]:
        """Return all it is as named numpy arrays."""
        found = {"total": to_numpy(self.total), "sums": to_numpy(self.sums)}
        found["n_rows"] = np.array([self.n_rows, self.n_components])
        for name in ("basis", "images"):
            for i, part in enumerate(getattr(self, name)):
                found[f"{name}{i}"] = to_numpy(part)
        return found

    @classmethod
    def of(cls, features: FeatureMap, arrays: dict[str, Array], center: bool) -> KrylovPasses:
        """Build it again from what `arrays` gave."""
        passes = cls.__new__(cls)
        passes.features, passes.center = features, center
        passes.n_rows, passes.n_components = map(int, arrays["n_rows"])
        passes.total, passes.sums = arrays["total"].copy(), arrays["sums"].copy()
        for name in ("basis", "images"):
            count = sum(key.startswith(name) for key in arrays)
            setattr(passes, name, [arrays[f"{name}{i}"] for i in range(count)])
        return passes


class Pieces:
    """The features of some rows, to be gone through twice: kept if they are few, or made again."""

    def __init__(self, features: FeatureMap, X: Any, n_columns: int) -> None:
        self._features, self._X, self._n_columns = features, X, n_columns
        short = n_columns * X.shape[0] * X.dtype.itemsize <= HELD_BYTES
        self._held: list[Piece] | None = list(self._make()) if short else None

    def _make(self) -> Any:
        return self._features.pieces(self._X, 0, self._n_columns)

    def __iter__(self) -> Any:
        return iter(self._held) if self._held is not None else self._make()


def product(values: Any, H: Any) -> Any:
    """Return values' H, computed in the precision of the values, in float64."""
    xp = namespace(values)
    return xp.astype(values.T @ xp.astype(H, values.dtype, copy=False), xp.float64, copy=False)


def column_sums(values: Any) -> Any:
    """Return the sum of each column in float64."""
    xp = namespace(values)
    return xp.sum(values, axis=0, dtype=xp.float64)
