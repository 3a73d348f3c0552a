"""Products with what a shrink of dense rows lost: P'P - B'B for P = [kept rows; new rows]."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.namespace import cast
from sksketch.arrays.products import normal_rows, squared_norm
from sksketch.arrays.rounding import SINGLE_NOISE


class LossOperator(NamedTuple):
    """Products with P'P - B'B, divided by ``scale`` and perturbed by at most ``noise()``.

    The noise is known once a first product with normal probes of unit length is made. It may be
    one that was ``measured``.
    """

    apply: Callable[[Array], Array]
    scale: float
    noise: Callable[[], float]
    measured: bool = False


class CheapProducts:
    """W -> scale W (P'P - B'B) with the new rows in single precision, already scaled.

    What was kept before and what is kept now are large and cancel, so they are in double
    precision: the noise is that of the new rows alone, however long the stream was before.
    """

    def __init__(self, kept: Array, rows: Array, matrix: Array, scale: float) -> None:
        self._kept, self._matrix = cast(kept, np.float64), cast(matrix, np.float64)
        self._rows, self._scale = rows, scale
        self._length: float | None = None

    def __call__(self, W: Array) -> Array:
        """Return the product with rows W."""
        K, B, rows = self._kept, self._matrix, self._rows
        image = normal_rows(W, K) - normal_rows(W, B)
        image *= self._scale
        single = cast(W, np.float32)
        product = normal_rows(single, rows)
        if self._length is None:
            self._length = float(np.sqrt(squared_norm(product)))
        image += cast(product, np.float64)
        return image

    def noise(self) -> float:
        """Return the noise of a product.

        For normal probes W of length one, |W R'R| is the root of trace((R'R)^2) / n_features on
        average, which is at least the largest eigenvalue of R'R over the root of n_features.
        """
        assert self._length is not None
        return SINGLE_NOISE * self._length * float(np.sqrt(self._rows.shape[1]))


def loss_products(
    kept: Array, rows: Array, matrix: Array, scale: float
) -> Callable[[Array], Array]:
    """Return W -> scale W (P'P - B'B) for P = [kept; rows] in double precision."""

    def apply(W: Array) -> Array:
        K, B = cast(kept, np.float64), cast(matrix, np.float64)
        image = normal_rows(scale * W, K) - normal_rows(scale * W, B)
        image += normal_rows(scale * W, rows)
        return image

    return apply
