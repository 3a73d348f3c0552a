"""Random numbers addressed by position, so that any part can be made again anywhere."""

from __future__ import annotations

import hashlib
from typing import Any

import array_api_compat
import numpy as np

from sksketch._typing import Matrix
from sksketch.arrays.kernels import generic, kernels
from sksketch.arrays.namespace import like, namespace, normal_quantile, on_device


def stream(seed: int, purpose: str, index: int = 0) -> np.random.Generator:
    """Open the generator number ``index`` of all those that ``seed`` keeps for ``purpose``.

    The same three values give the same numbers on every machine, in any
    order of calls; different values give independent numbers. Opening one
    costs tens of microseconds, so an index stands for a block, not a row.

    >>> a = stream(0, "probes", 3).standard_normal(2)
    >>> b = stream(0, "probes", 3).standard_normal(2)
    >>> bool((a == b).all())
    True
    """
    key = np.frombuffer(_digest(f"{seed}:{purpose}", 16), dtype="<u8").astype(np.uint64)
    # The counter's low word moves with every draw; its high word is ours to address.
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, index]))


def uniforms(shape: tuple[int, ...], seed: int, purpose: str, start: int, X: Matrix) -> Any:
    """Return float64 numbers between 0 and 1, made on the device of ``X``.

    They are those from number ``start`` on of all that ``seed`` keeps for ``purpose``, the same
    bits on every device.

    >>> uniforms((3,), 0, "phases", 5, np.empty(0)).round(3)
    array([0.253, 0.589, 0.26 ])
    """
    xp, device = namespace(X), array_api_compat.device(X) if on_device(X) else "cpu"
    numbers = xp.empty(int(np.prod(shape)), dtype=xp.float64, device=device)
    key = int.from_bytes(_digest(f"{seed}:{purpose}", 8), "little", signed=True)
    (generic if on_device(X) else kernels()).uniforms_inplace(numbers, key, start)
    return xp.reshape(numbers, shape)


def normals(shape: tuple[int, ...], seed: int, purpose: str, start: int, X: Matrix) -> Any:
    """Return standard normal numbers in float64, made on the device of ``X``.

    They are addressed as those of `uniforms`, and equal on all devices but for the last bits.
    """
    return normal_quantile(uniforms(shape, seed, purpose, start, X))


def sampled(X: Matrix, n_rows: int, seed: int, purpose: str) -> Any:
    """Return at most ``n_rows`` random rows, in their order.

    >>> sampled(np.arange(10)[:, None], 3, 0, "pilot").shape
    (3, 1)
    """
    if X.shape[0] <= n_rows:
        return X
    chosen = np.sort(stream(seed, purpose).choice(X.shape[0], n_rows, replace=False))
    return X[like(chosen, X)]


def _digest(text: str, size: int) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=size).digest()
