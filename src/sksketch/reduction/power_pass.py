"""Power iteration over a stream: one pass over the rows turns a basis into a better one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from sksketch._typing import Array
from sksketch.exceptions import NotMergeableError
from sksketch.reduction.residual import Blocks
from sksketch.reduction.subspace import DenseBasis, LinearMap, basis_of


class PowerPass:
    """X'X U, gathered while the rows X come again, for the columns U of a basis.

    Examples
    --------
    >>> X = np.diag([9.0, 1.0, 1.0])
    >>> power = PowerPass(DenseBasis(np.full((3, 1), 3**-0.5)))
    >>> power.add(lambda: [(X, np.ones(3))])
    >>> power.basis().lift(np.eye(1)).round(2) + 0.0
    array([[-1.  ],
           [-0.01],
           [-0.01]])
    """

    def __init__(self, basis: LinearMap) -> None:
        self.start = basis
        self._vectors = basis.lift(np.eye(basis.n_components))
        self._image = np.zeros_like(self._vectors)
        self.n_rows = 0

    def add(self, blocks: Blocks) -> None:
        """Take rows in, each counted with its weight."""
        for rows, weights in blocks():
            self._image += rows.T @ (weights[:, None] * (rows @ self._vectors))
            self.n_rows += len(weights)

    def fresh(self) -> Self:
        """Return one for the same basis that no rows have come to."""
        return type(self)(self.start)

    def merge(self, other: Self) -> None:
        """Add what has come to another one for the same basis, from other rows."""
        if not np.array_equal(self._vectors, other._vectors):
            raise NotMergeableError(
                "cannot merge power passes that began with different subspaces; begin both with "
                "the merged first pass"
            )
        self._image += other._image
        self.n_rows += other.n_rows

    def basis(self) -> LinearMap:
        """Return a basis of what came, or the one that was given while nothing has."""
        return basis_of(self._image.T) if self.n_rows else self.start

    def arrays(self) -> dict[str, Array]:
        """Return copies of what is held, named for a saved state."""
        return {"power_vectors": self._vectors.copy(), "power_image": self._image.copy()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], n_rows: int) -> Self:
        """Build what `arrays` came from."""
        power = cls(DenseBasis(arrays["power_vectors"]))
        power._image[...] = arrays["power_image"]
        power.n_rows = n_rows
        return power
