"""The features of some rows, to be multiplied with from both sides."""

from __future__ import annotations

from typing import Any

from sksketch._typing import Rows
from sksketch.arrays.namespace import dtype_name, like, namespace, zeros
from sksketch.kernel_methods.feature_maps import FeatureBlock, FeatureMap

# Features are kept for the second product up to this many bytes, and made again beyond.
HELD_BYTES = 1 << 27


class FeatureBlocks:
    """Phi: the columns from ``start`` to ``stop`` of a feature map, for rows ``X``.

    Products are computed in the precision of the rows and added up in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from sksketch.kernel_methods.feature_maps import NystromMap
    >>> from sksketch.kernel_methods.kernels import Kernel
    >>> X = np.array([[0.0], [1.0]])
    >>> features = NystromMap(Kernel("gaussian"), X)
    >>> phi = FeatureBlocks(features, X, 0, 2)
    >>> H = phi.times(np.eye(2))
    >>> bool(np.allclose(phi.transposed_times(H)[0], H.T @ H))
    True
    """

    def __init__(self, features: FeatureMap, X: Rows, start: int, stop: int) -> None:
        self._features, self._X = features, X
        self._start, self._stop = start, stop
        short = (stop - start) * X.shape[0] * X.dtype.itemsize <= HELD_BYTES
        self._held: list[FeatureBlock] | None = list(self._make()) if short else None

    def _make(self) -> Any:
        return self._features.blocks(self._X, self._start, self._stop)

    def _all(self) -> Any:
        return self._make() if self._held is None else self._held

    def times(self, coefficients: Rows) -> Any:
        """Return Phi a."""
        a = like(coefficients, self._X, dtype_name(self._X))
        H = zeros((self._X.shape[0], a.shape[1]), self._X)
        for rows, columns, values in self._all():
            H[rows] += values @ a[columns - self._start]
        return H

    def transposed_times(self, H: Rows) -> tuple[Any, Any]:
        """Return Phi' H and the sums of the columns of Phi."""
        xp, (n, k) = namespace(H), H.shape
        # A column of ones gives the sums in the same product.
        extended = xp.concat([H, zeros((n, 1), H) + 1.0], axis=1)
        total = zeros((self._stop - self._start, k + 1), H)
        for rows, columns, values in self._all():
            part = xp.astype(extended[rows], values.dtype, copy=False)
            product = xp.astype(values.T @ part, xp.float64, copy=False)
            total[columns - self._start] += product
        return total[:, :k], total[:, k]
