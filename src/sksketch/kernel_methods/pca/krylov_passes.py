"""Leading directions of features by passes over all rows, which may come in any blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import like, namespace, to_numpy
from sksketch.arrays.subspace import against, orthonormal, ritz_of_images
from sksketch.kernel_methods.feature_blocks import HELD_BYTES, FeatureBlocks
from sksketch.kernel_methods.feature_maps import FeatureMap


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

    def __init__(self, features: FeatureMap, start: Array, center: bool) -> None:
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

    def add(self, X: Rows) -> None:
        """Take more rows of this pass."""
        W = self.basis[-1] = like(self.basis[-1], X)
        self.total, self.sums = like(self.total, X), like(self.sums, X)
        n_columns = W.shape[0]
        limit = max(256, HELD_BYTES // (n_columns * X.dtype.itemsize))
        for start in range(0, X.shape[0], limit):
            blocks = FeatureBlocks(self.features, X[start : start + limit], 0, n_columns)
            product, sums = blocks.transposed_times(blocks.times(W))
            self.total += product
            self.sums += sums
        self.n_rows += X.shape[0]

    def end_pass(self) -> None:
        """All rows have come: begin the next product."""
        self.images.append(self._image())
        self.basis = [like(B, self.total) for B in self.basis]
        self.basis.append(orthonormal(against(self.images[-1], self.basis)))
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
        S = xp.concat([like(B, self.total) for B in self.basis], axis=1)
        images = [like(image, self.total) for image in self.images]
        images = xp.concat([*images, self._image()], axis=1)
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
