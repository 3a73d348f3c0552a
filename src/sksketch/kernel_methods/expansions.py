"""Kernel expansions: the functions that kernel learners find, evaluated at rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sksketch._typing import Rows
from sksketch.arrays.namespace import dtype_name, like, namespace, to_numpy
from sksketch.arrays.subspace import symmetric_pencil
from sksketch.kernel_methods.feature_maps import FeatureMap
from sksketch.kernel_methods.kernels import Kernel

PAIR_ROWS = 512


@dataclass(frozen=True)
class Functions:
    """Sums of features: x -> sum_j Phi_j(x) coefficients_j - offset, one for each column."""

    features: FeatureMap
    coefficients: Any
    offset: Any

    def __call__(self, X: Rows) -> Any:
        """Return the values of all functions on rows, in the rows' precision."""
        H = self.features.evaluate(X, self.coefficients) - like(self.offset, X, np.float64)
        xp = namespace(X)
        return xp.astype(H, getattr(xp, dtype_name(X)), copy=False)


def kernel_ritz(H: Rows, X: Rows, kernel: Kernel, center: bool) -> tuple[Any, Any]:
    """Return P = E[h h'] and Q = E[h(x) k(x, x') h(x')'], over rows x and other rows x'.

    ``H`` has the values of functions on rows ``X``. The solutions of Q c = mu P c are the Ritz
    values of the covariance operator: they need no norm of the functions in the kernel's
    space, which the noise of random features inflates. No row is paired with itself, so Q has
    no bias.
    """
    n = X.shape[0]
    if center:
        H = H - namespace(H).mean(H, axis=0)
    P = to_numpy(H.T @ H) / n
    if n == 1:
        return P, P @ P
    Q = 0.0 * P
    for first in range(0, n, PAIR_ROWS):
        part = slice(first, first + PAIR_ROWS)
        K = like(kernel(X[part], X), H, np.float64)
        h = H[part]
        # The pairs of a row with itself are on a diagonal of this strip.
        own = namespace(K).linalg.diagonal(K[:, part])
        Q += to_numpy(h.T @ (K @ H)) - to_numpy((h * own[:, None]).T @ h)
    Q /= n * (n - 1)
    return P, (Q + Q.T) / 2.0


def ritz_rotation(P: Any, Q: Any) -> tuple[Any, Any]:
    """Return eigenvalues and C such that H C has mean squares equal to them, largest first.

    Directions in which the functions do not vary get zeros.
    """
    k = len(P)
    values, C = symmetric_pencil(Q, P, k)
    values = np.maximum(values, 0.0)
    C = C * np.sqrt(values)
    missing = k - len(values)
    return np.pad(values, (0, missing)), np.pad(C, ((0, 0), (0, missing)))
