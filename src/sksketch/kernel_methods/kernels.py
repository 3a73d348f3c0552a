"""The kernels of Xie, Liang and Song (2015, table 1), as functions of two sets of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.special

from sksketch._keys import KERNELS
from sksketch._typing import Rows
from sksketch.arrays.namespace import dtype_name, like, namespace, to_numpy

SHIFT_INVARIANT = ("gaussian", "laplacian", "cauchy", "matern")
SEMIGROUP = ("exponential-semigroup", "reciprocal-semigroup")

# Degrees of a dot-product series beyond this are never needed.
MAX_DEGREE = 64


class Kernel:
    """A kernel by its name, bandwidth and parameters.

    Parameters
    ----------
    name : str
        "gaussian" exp(-|x-y|^2/2), "laplacian" exp(-|x-y|_1), "cauchy" prod 1/(1+(x_i-y_i)^2),
        "matern" (``nu``), "linear" <x,y>, "dot-product" sum_n a_n <x,y>^n (``coefficients`` a_n,
        by default 1/n!), "polynomial" (<x,y> + ``coef0``)^``degree``, "exponential-semigroup"
        exp(-``beta`` sum sqrt(x_i+y_i)), "reciprocal-semigroup" prod ``rate``/(x_i+y_i+``rate``),
        "arc-cosine" of ``order`` 0, 1 or 2.
    bandwidth : float
        Rows are divided by it.
    params : mapping, default=None
        Values for the parameters named above.

    Examples
    --------
    >>> Kernel("gaussian", 2.0)(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.6065]])
    """

    def __init__(
        self, name: str, bandwidth: float = 1.0, params: Mapping[str, Any] | None = None
    ) -> None:
        self.name = canonical_name(name)
        self.bandwidth = float(bandwidth)
        if not 0 < self.bandwidth < math.inf:
            raise ValueError(f"bandwidth is {bandwidth!r}; give a positive number or 'median'")
        self.params = _checked_params(self.name, dict(params or {}))

    @property
    def shift_invariant(self) -> bool:
        """Whether the kernel is a function of x - y."""
        return self.name in SHIFT_INVARIANT

    def __call__(self, X: Any, Y: Any) -> Any:
        """Return k(x, y) for all rows x of ``X`` and y of ``Y``, of the same library."""
        scale = 1.0 / self.bandwidth
        return _VALUES[self.name](X * scale, Y * scale, **self.params)


def check_domain(kernel: str, X: Any) -> None:
    """Refuse rows on which a kernel is not defined."""
    if canonical_name(kernel) in SEMIGROUP:
        xp, values = namespace(X), X.data if sp.issparse(X) else X
        if values.shape[0] and bool(xp.any(values < 0)):
            raise ValueError(
                f"the kernel {kernel!r} is defined for numbers from 0 on, got "
                f"{float(xp.min(values)):.6g}; shift or rescale the columns, or take another"
            )


def canonical_name(name: str) -> str:
    """Return the name of a kernel as `KERNELS` has it.

    >>> canonical_name("arc_cosine")
    'arc-cosine'
    """
    found = str(name).lower().replace("_", "-").replace(" ", "-")
    found = {"rbf": "gaussian"}.get(found, found)
    if found not in KERNELS:
        raise ValueError(f"there is no kernel {name!r}; give one of {', '.join(KERNELS)}")
    return found


def _checked_params(name: str, given: dict[str, Any]) -> dict[str, Any]:
    known = KERNELS[name]
    for key in given:
        if key not in known:
            takes = f"takes {', '.join(known)}" if known else "takes none"
            raise ValueError(f"the kernel {name!r} has no parameter {key!r}; it {takes}")
    params = known | given
    for key in ("nu", "beta", "rate"):
        if key in params and not 0 < params[key] < math.inf:
            raise ValueError(f"{key} is {params[key]!r}; give a positive number")
    if name == "polynomial" and not (int(params["degree"]) == params["degree"] >= 1):
        raise ValueError(f"degree is {params['degree']!r}; give a whole number from 1 on")
    if name == "polynomial" and not 0 <= params["coef0"] < math.inf:
        raise ValueError(f"coef0 is {params['coef0']!r}; give a number that is not negative")
    if name == "arc-cosine" and params["order"] not in (0, 1, 2):
        raise ValueError(f"order is {params['order']!r}; give 0, 1 or 2")
    if name == "dot-product":
        if params["coefficients"] is None:
            params["coefficients"] = [1.0 / math.factorial(n) for n in range(MAX_DEGREE)]
        series = [float(a) for a in params["coefficients"]]
        if not series or min(series) < 0 or not all(map(math.isfinite, series)):
            raise ValueError("coefficients must be numbers that are not negative, one at least")
        params["coefficients"] = series[:MAX_DEGREE]
    return params


def _dense(product: Any) -> Any:
    return product.toarray() if sp.issparse(product) else product


def _products(X: Rows, Y: Rows) -> Any:
    return _dense(X @ Y.T)


def _squared_norms(X: Any) -> Any:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return namespace(X).sum(X * X, axis=1)


def squared_distances(X: Rows, Y: Rows) -> Any:
    """Return |x - y|^2 for all rows x of ``X`` and y of ``Y``."""
    xp = namespace(X)
    distances = _squared_norms(X)[:, None] + _squared_norms(Y)[None, :] - 2.0 * _products(X, Y)
    return xp.clip(distances, 0.0, math.inf)


def sum_over_columns(X: Any, Y: Any, term: Callable[[Any, Any], Any]) -> Any:
    """Return sum_i term(x_i, y_i) for all pairs of rows, one column after the other."""
    X, Y = (Z.tocsc() if sp.issparse(Z) else Z for Z in (X, Y))
    total: Any = 0.0
    for i in range(X.shape[1]):
        x, y = (_dense(Z[:, [i]]) if sp.issparse(Z) else Z[:, i : i + 1] for Z in (X, Y))
        total = total + term(x, y.T)
    return total


def _gaussian(X: Rows, Y: Rows) -> Any:
    return namespace(X).exp(-0.5 * squared_distances(X, Y))


def _laplacian(X: Rows, Y: Rows) -> Any:
    xp = namespace(X)
    return xp.exp(-sum_over_columns(X, Y, lambda x, y: xp.abs(x - y)))


def _cauchy(X: Rows, Y: Rows) -> Any:
    xp = namespace(X)
    return xp.exp(-sum_over_columns(X, Y, lambda x, y: xp.log1p((x - y) ** 2)))


def _matern(X: Rows, Y: Rows, nu: float) -> Any:
    r = math.sqrt(2.0 * nu) * namespace(X).sqrt(squared_distances(X, Y))
    if nu in (0.5, 1.5, 2.5):
        factor = {0.5: 1.0, 1.5: 1.0 + r, 2.5: 1.0 + r + r**2 / 3.0}[nu]
        return factor * namespace(X).exp(-r)
    # Bessel functions are in scipy alone.
    z = to_numpy(r).astype(np.float64)
    with np.errstate(invalid="ignore"):
        values = 2.0 ** (1.0 - nu) / scipy.special.gamma(nu) * z**nu * scipy.special.kv(nu, z)
    return like(np.where(z == 0.0, 1.0, values), X, dtype_name(X))


def _dot_product(X: Rows, Y: Rows, coefficients: list[float], radius: float | None) -> Any:
    product, total = _products(X, Y), 0.0
    for a in reversed(coefficients):
        total = total * product + a
    return total + 0.0 * product


def _linear(X: Rows, Y: Rows) -> Any:
    return _products(X, Y)


def _polynomial(X: Rows, Y: Rows, degree: int, coef0: float) -> Any:
    return (_products(X, Y) + coef0) ** degree


def _exponential_semigroup(X: Rows, Y: Rows, beta: float) -> Any:
    xp = namespace(X)
    return xp.exp(-beta * sum_over_columns(X, Y, lambda x, y: xp.sqrt(x + y)))


def _reciprocal_semigroup(X: Rows, Y: Rows, rate: float) -> Any:
    xp = namespace(X)
    return xp.exp(-sum_over_columns(X, Y, lambda x, y: xp.log1p((x + y) / rate)))


def _arc_cosine(X: Rows, Y: Rows, order: int) -> Any:
    xp = namespace(X)
    x, y = xp.sqrt(_squared_norms(X))[:, None], xp.sqrt(_squared_norms(Y))[None, :]
    lengths = x * y
    cosine = xp.clip(_products(X, Y) / xp.where(lengths > 0, lengths, 1.0), -1.0, 1.0)
    angle = xp.acos(cosine)
    sine = xp.sqrt(1.0 - cosine**2)
    J = {
        0: lambda: math.pi - angle,
        1: lambda: sine + (math.pi - angle) * cosine,
        2: lambda: 3.0 * sine * cosine + (math.pi - angle) * (1.0 + 2.0 * cosine**2),
    }[order]()
    # The feature of order 0 is zero at the origin, so its kernel is as well.
    return xp.where(lengths > 0, lengths**order * J / math.pi, 0.0)


_VALUES: dict[str, Callable[..., Any]] = {
    "gaussian": _gaussian,
    "laplacian": _laplacian,
    "cauchy": _cauchy,
    "matern": _matern,
    "linear": _linear,
    "dot-product": _dot_product,
    "polynomial": _polynomial,
    "exponential-semigroup": _exponential_semigroup,
    "reciprocal-semigroup": _reciprocal_semigroup,
    "arc-cosine": _arc_cosine,
}
