"""Random features of each kernel: the law of their parameters, and their values.

Every feature phi has E[phi(x) phi(y)] = k(x, y), so that a block Phi of B columns gives
K ~ Phi Phi' / B. The laws are those of Xie, Liang and Song (2015, table 1), corrected; see
`RandomFeatures` for what was wrong in print.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.special

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import dtype_name, like, namespace, on_device
from sksketch.arrays.random import normals, uniforms
from sksketch.kernel_methods.kernels import Kernel

# Kernels whose features are drawn together, as hashes of the columns.
TOGETHER = ("linear", "polynomial")
# The linear kernel as a polynomial one.
LINEAR = {"degree": 1, "coef0": 0.0}


class Columns(NamedTuple):
    """A range of the random features that a seed has for a kernel."""

    seed: int
    start: int
    stop: int
    n_features: int
    pairs: bool

    @property
    def n_columns(self) -> int:
        """How many they are."""
        return self.stop - self.start


# Laws: the parameters of features, in float64 on the device of ``device``, and the order of
# the columns that `feature_values` gives


def draw(kernel: Kernel, part: Columns, device: Rows) -> tuple[Array, tuple[Any, ...]]:
    """Return the order in which the features come, and their random parameters."""
    return _LAWS[kernel.name](kernel, part, device)


def _in_order(part: Columns) -> Array:
    return np.arange(part.start, part.stop)


def _frequencies(
    law: Callable[[Kernel, Columns, tuple[int, int], int, Any], Any],
) -> Callable[[Kernel, Columns, Any], tuple[Array, tuple[Any, ...]]]:
    """Return the law of one frequency vector for each pair of columns, or each with a phase."""

    def drawn(kernel: Kernel, part: Columns, device: Rows) -> tuple[Array, tuple[Any, ...]]:
        order = _in_order(part)
        first, n = part.start, part.n_columns
        if part.pairs:
            first, n = part.start // 2, -(-part.n_columns // 2)
        W = law(kernel, part, (n, part.n_features), first, device) / kernel.bandwidth
        if part.pairs:
            return np.concatenate([order[::2], order[1::2]]), (W.T,)
        phases = 2.0 * math.pi * uniforms((n,), part.seed, "phase", first, device)
        return order, (W.T, phases)

    return drawn


def _normal(
    _kernel: Kernel, part: Columns, shape: tuple[int, int], first: int, device: Rows
) -> Any:
    return normals(shape, part.seed, "frequency", first * shape[1], device)


def _cauchy(
    _kernel: Kernel, part: Columns, shape: tuple[int, int], first: int, device: Rows
) -> Any:
    u = uniforms(shape, part.seed, "frequency", first * shape[1], device)
    return namespace(u).tan(math.pi * (u - 0.5))


def _double_exponential(
    _kernel: Kernel, part: Columns, shape: tuple[int, int], first: int, device: Rows
) -> Any:
    u = uniforms(shape, part.seed, "frequency", first * shape[1], device)
    xp = namespace(u)
    return xp.where(u < 0.5, xp.log(2.0 * u), -xp.log(2.0 * (1.0 - u)))


def _student(
    kernel: Kernel, part: Columns, shape: tuple[int, int], first: int, device: Rows
) -> Any:
    """Draw a multivariate t with 2 nu degrees of freedom: one chi-square for each vector."""
    nu = kernel.params["nu"]
    u = uniforms((shape[0],), part.seed, "degrees", first, np.empty(0))
    chi_square = 2.0 * scipy.special.gammaincinv(nu, u)
    scale = like(np.sqrt(2.0 * nu / chi_square), device)
    return _normal(kernel, part, shape, first, device) * scale[:, None]


def _levy(kernel: Kernel, part: Columns, device: Rows) -> tuple[Array, tuple[Any, ...]]:
    z = normals(_shape(part), part.seed, "frequency", part.start * part.n_features, device)
    W = kernel.params["beta"] ** 2 / (2.0 * z**2) / kernel.bandwidth
    return _in_order(part), (W.T,)


def _exponential(kernel: Kernel, part: Columns, device: Rows) -> tuple[Array, tuple[Any, ...]]:
    u = uniforms(_shape(part), part.seed, "frequency", part.start * part.n_features, device)
    return _in_order(part), (-namespace(u).log(u).T / (kernel.params["rate"] * kernel.bandwidth),)


def _directions(kernel: Kernel, part: Columns, device: Rows) -> tuple[Array, tuple[Any, ...]]:
    W = normals(_shape(part), part.seed, "frequency", part.start * part.n_features, device)
    return _in_order(part), (W.T / kernel.bandwidth,)


def _shape(part: Columns) -> tuple[int, int]:
    return part.n_columns, part.n_features


def degree_law(kernel: Kernel) -> tuple[Array, Array]:
    """Return probabilities of the degrees of a dot-product series, and sqrt(a_n / P[n]).

    Degrees are drawn in proportion to a_n R^(2n), where R is the radius of the rows, so that
    features are bounded; the tail below 1e-12 is left out.
    """
    series = np.asarray(kernel.params["coefficients"])
    radius = kernel.params["radius"]
    radius = 1.0 if radius is None else radius / kernel.bandwidth
    weights = series * radius ** (2.0 * np.arange(len(series)))
    total = weights.sum()
    if not total > 0:
        return np.ones(1), np.sqrt(series[:1])
    keep = 1 + int(np.flatnonzero(weights > 1e-12 * total)[-1])
    law = weights[:keep] / weights[:keep].sum()
    scale = np.sqrt(np.divide(series[:keep], law, out=np.zeros(keep), where=law > 0))
    return law, scale


def _series(kernel: Kernel, part: Columns, device: Rows) -> tuple[Array, tuple[Any, ...]]:
    law, scale = degree_law(kernel)
    u = uniforms((part.n_columns,), part.seed, "degree", part.start, np.empty(0))
    degrees = np.minimum(np.searchsorted(np.cumsum(law), u), len(law) - 1)
    # High degrees first: the columns with a j-th factor are the first ones.
    order = np.argsort(-degrees, kind="stable")
    degrees = degrees[order]
    factors = []
    for j in range(int(degrees[0])):
        n = int((degrees > j).sum())
        u = uniforms(_shape(part), part.seed, f"sign {j}", part.start * part.n_features, device)
        factors.append(namespace(u).sign(u - 0.5)[like(order[:n], device)].T / kernel.bandwidth)
    return order + part.start, (like(scale[degrees], device), *factors)


def _hashes(kernel: Kernel, part: Columns, device: Rows) -> tuple[Array, tuple[Any, ...]]:
    """Draw one count sketch for each factor, of the rows and a column sqrt(coef0)."""
    sketches = []
    n = part.n_features + 1
    degree, coef0 = (kernel.params.get(name, value) for name, value in LINEAR.items())
    for j in range(int(degree)):
        u = uniforms((2, n), part.seed, f"hash {j}", part.start * 2 * n, np.empty(0))
        columns = (u[0] * part.n_columns).astype(np.int64)
        signs = np.where(u[1] < 0.5, -1.0, 1.0) / kernel.bandwidth
        signs[-1] *= kernel.bandwidth * math.sqrt(coef0)
        sketch = sp.csr_array((signs, (np.arange(n), columns)), shape=(n, part.n_columns))
        sketches.append(like(sketch.toarray(), device) if on_device(device) else sketch)
    return _in_order(part), tuple(sketches)


_LAWS: dict[str, Callable[[Kernel, Columns, Any], tuple[Array, tuple[Any, ...]]]] = {
    "gaussian": _frequencies(_normal),
    "laplacian": _frequencies(_cauchy),
    "cauchy": _frequencies(_double_exponential),
    "matern": _frequencies(_student),
    "linear": _hashes,
    "dot-product": _series,
    "polynomial": _hashes,
    "exponential-semigroup": _levy,
    "reciprocal-semigroup": _exponential,
    "arc-cosine": _directions,
}


# Values of the features on rows


def feature_values(kernel: Kernel, part: Columns, parameters: tuple[Any, ...], X: Rows) -> Any:
    """Return the features of rows, one column each, in the precision of the rows."""
    if kernel.shift_invariant:
        return _waves(part, parameters, X)
    if kernel.name == "dot-product":
        return _monomials(parameters, X)
    if kernel.name in TOGETHER:
        return _tensor_sketch(part, parameters, X)
    (W,) = parameters
    xp, product = namespace(X), _product(X, W)
    if kernel.name == "arc-cosine":
        order = kernel.params["order"]
        rectified = xp.clip(product, 0.0, math.inf) ** order if order else product > 0
        return math.sqrt(2.0) * xp.astype(rectified, product.dtype)
    return xp.exp(-product)


def _product(X: Rows, W: Any) -> Any:
    """Return X W; for one column the library's product of matrices is slow."""
    return X * W if X.shape[1] == 1 and not sp.issparse(X) else X @ W


def _waves(part: Columns, parameters: tuple[Any, ...], X: Rows) -> Any:
    xp = namespace(X)
    product = _product(X, parameters[0])
    if not part.pairs:
        return math.sqrt(2.0) * xp.cos(product + parameters[1])
    if on_device(X):
        waves = xp.concat([xp.cos(product), xp.sin(product)], axis=1)[:, : part.n_columns]
    else:
        half = product.shape[1]
        waves = np.empty((product.shape[0], part.n_columns), product.dtype)
        np.cos(product, out=waves[:, :half])
        np.sin(product[:, : part.n_columns - half], out=waves[:, half:])
    waves *= math.sqrt(2.0)
    return waves


def _monomials(parameters: tuple[Any, ...], X: Rows) -> Any:
    scale, *factors = parameters
    xp = namespace(X)
    out = xp.zeros((X.shape[0], scale.shape[0]), dtype=scale.dtype, device=_device_of(scale))
    out += scale
    for W in factors:
        out[:, : W.shape[1]] *= X @ W
    return out


def _tensor_sketch(part: Columns, sketches: tuple[Any, ...], X: Rows) -> Any:
    """Multiply the count sketches of all factors as polynomials (Pham and Pagh 2013)."""
    xp = namespace(X)
    product: Any = 1.0
    for sketch in sketches:
        counts = X @ sketch[:-1] + (sketch[-1:] if on_device(X) else sketch[-1:].toarray())
        counts = counts.toarray() if sp.issparse(counts) else counts
        product = product * xp.fft.rfft(counts, axis=1)
    found = xp.fft.irfft(product, n=part.n_columns, axis=1) * math.sqrt(part.n_columns)
    return xp.astype(found, getattr(xp, dtype_name(X)), copy=False)


def _device_of(X: Any) -> Any:
    return X.device if on_device(X) else "cpu"
