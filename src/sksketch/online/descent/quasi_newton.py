"""Directions of descent from a preconditioner and the latest changes of the gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sksketch._typing import Array

MEMORY = 10


class SecantPairs:
    """The latest steps with the changes of the gradient that they made.

    Parameters
    ----------
    memory : int, default=10
        Pairs to keep.

    Notes
    -----
    `direction` is the two-loop recursion of Nocedal (1980, "Updating quasi-Newton matrices with
    limited storage"), around an inverse Hessian that is given instead of a multiple of the
    identity. The given one is scaled such that it fits the latest pair.

    Examples
    --------
    >>> pairs = SecantPairs()
    >>> pairs.add(np.array([[1.0, 0.0]]), np.array([[4.0, 0.0]]))
    >>> pairs.direction(np.array([[8.0, 8.0]]), lambda g: g, scaled=False)
    array([[-2., -8.]])
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self.memory = memory
        self._steps: list[Array] = []
        self._changes: list[Array] = []

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        return zip(self._steps, self._changes, strict=True)

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, step: Array, change: Array) -> None:
        """Remember one more pair, unless rounding has taken its curvature away."""
        bent = float(np.vdot(step, change))
        if bent > np.finfo(np.float64).eps * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self._steps = [*self._steps, step][-self.memory :]
            self._changes = [*self._changes, change][-self.memory :]

    def forget(self) -> None:
        """Drop all pairs."""
        self._steps, self._changes = [], []

    def direction(
        self, gradient: Array, inverse: Callable[[Array], Array], *, scaled: bool
    ) -> Array:
        """Return minus the inverse Hessian times the gradient.

        Parameters
        ----------
        gradient : array of shape (n_outputs, n_columns)
            Gradient at the latest point.
        inverse : callable
            The inverse Hessian without any pairs.
        scaled : bool
            Whether it is scaled to fit the latest pair.

        Returns
        -------
        array of shape (n_outputs, n_columns)
            The direction.
        """
        pairs = [(step, change, float(np.vdot(step, change))) for step, change in self]
        left, shares = gradient.copy(), []
        for step, change, bent in reversed(pairs):
            share = float(np.vdot(step, left)) / bent
            left -= share * change
            shares.append(share)
        found = inverse(left)
        if scaled and pairs:
            _, change, bent = pairs[-1]
            found = found * (bent / float(np.vdot(change, inverse(change))))
        for (step, change, bent), share in zip(pairs, reversed(shares), strict=True):
            found = found + (share - float(np.vdot(change, found)) / bent) * step
        return np.negative(found)
