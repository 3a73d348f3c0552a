"""From components back to rows: the linear map that comes closest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import dtype_name, like, on_device, to_numpy
from sksketch.state.persistence import State


class PreImage(NamedTuple):
    """Rows as ``components @ weights + offset``.

    Examples
    --------
    >>> H = np.array([[0.0], [1.0], [2.0]])
    >>> PreImage.learned(H, np.hstack([H, 3 * H + 1]))(H[1:2]).round(6)
    array([[1., 4.]])
    """

    weights: Array
    offset: Array

    @classmethod
    def learned(cls, components: Rows, rows: Rows) -> PreImage:
        """Return the least squares map between components and the rows that have them."""
        H = to_numpy(components).astype(np.float64)
        X = rows.toarray() if hasattr(rows, "toarray") else to_numpy(rows)
        h, x = H.mean(axis=0), X.mean(axis=0, dtype=np.float64)
        H = H - h
        ridge = 1e-12 * max(float(np.trace(H.T @ H)), 1e-300) * np.eye(H.shape[1])
        weights = np.linalg.solve(H.T @ H + ridge, H.T @ (X - x))
        return cls(weights, x - h @ weights)

    def arrays(self) -> dict[str, Array]:
        """Return both as fields of a state."""
        return {f"inverse.{name}": part for name, part in self._asdict().items()}

    @classmethod
    def of(cls, state: State) -> PreImage | None:
        """Build it again from a state with what `arrays` gave; None if there was no map."""
        inverse = state.behind("inverse.")
        return cls(**inverse) if inverse else None

    def rows(self, components: Any) -> Any:
        """Return rows that have about these components, after a look at their shape."""
        shape, width = np.shape(components), len(self.weights)
        if len(shape) != 2 or shape[1] != width:
            raise ValueError(f"got components of shape {shape}, expected {width} columns")
        if on_device(components):
            return self(components)
        plain = np.asarray(components)
        return self(plain.astype(np.result_type(plain, np.float32), copy=False))

    def __call__(self, components: Rows) -> Any:
        """Return rows that have about these components."""
        weights, offset = (like(part, components, dtype_name(components)) for part in self)
        return components @ weights + offset
