"""Eigenvalues of symmetric matrices too small for LAPACK to be worth its calls."""

from __future__ import annotations

import math

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit

_EPSILON = 2.0**-52
# Sweeps for one eigenvalue; two or three are usual.
_MOST_SWEEPS = 60


@jit
def eigen_inplace(A: Array, V: Array, values: Array, work: Array) -> None:
    """Write the eigenvalues of ``A``, largest first, and its eigenvectors as the rows of ``V``.

    Householder reflections bring ``A`` to tridiagonal form, rotations bring that to diagonal
    form. ``A`` is overwritten; ``work`` has four rows.

    >>> import numpy as np
    >>> A, V, values = np.array([[2.0, 1.0], [1.0, 2.0]]), np.empty((2, 2)), np.empty(2)
    >>> eigen_inplace(A, V, values, np.empty((4, 2)))
    >>> values.round(9), abs(V.round(4))
    (array([3., 1.]), array([[0.7071, 0.7071],
           [0.7071, 0.7071]]))
    """
    n = len(A)
    largest = 0.0
    for i in range(n):
        for j in range(n):
            largest = max(largest, abs(A[i, j]))
    if largest == 0.0:
        for i in range(n):
            values[i] = 0.0
            for j in range(n):
                V[i, j] = 1.0 if i == j else 0.0
        return
    for i in range(n):
        for j in range(n):
            A[i, j] /= largest
    _tridiagonalise(A, V, values, work)
    _diagonalise(V, values, work[0])
    for i in range(n):
        values[i] *= largest
    _sort(V, values)


@jit
def _tridiagonalise(A: Array, V: Array, diagonal: Array, work: Array) -> None:
    """Leave Q' in ``V``, and Q'AQ in ``diagonal`` and the first row of ``work``.

    The reflections I - 2 v v' / v'v are kept in the columns of ``A`` that they have cleared. Loops
    run over whole rows, also where they are zero: equal lengths are what processors like.
    """
    n = len(A)
    off, scale, product, v = work[0], work[1], work[2], work[3]
    for k in range(n - 2):
        length = 0.0
        for i in range(n):
            v[i] = A[i, k] if i > k else 0.0
            length += v[i] * v[i]
        length = math.sqrt(length)
        if length == 0.0:
            off[k], scale[k] = 0.0, 0.0
            continue
        first = v[k + 1]
        off[k] = -length if first > 0.0 else length
        v[k + 1] = first - off[k]
        A[k + 1, k] = v[k + 1]
        # v'v = 2 length (length + |first|), and this is 2 over it.
        scale[k] = 1.0 / (length * (length + abs(first)))
        _combine_rows(A, k + 1, v, scale[k], product)
        inner = 0.0
        for i in range(k + 1, n):
            inner += product[i] * v[i]
        inner *= 0.5 * scale[k]
        for i in range(n):
            product[i] = product[i] - inner * v[i] if i > k else 0.0
        for i in range(k + 1, n):
            a, b = v[i], product[i]
            for j in range(n):
                A[i, j] -= a * product[j] + b * v[j]
    if n > 1:
        off[n - 2] = A[n - 1, n - 2]
    off[n - 1] = 0.0
    for i in range(n):
        diagonal[i] = A[i, i]
    # Q = H_0 H_1 ... built from the right, where each H_k meets only what lies below it.
    for i in range(n):
        for j in range(n):
            V[i, j] = 1.0 if i == j else 0.0
    for k in range(n - 3, -1, -1):
        if scale[k] == 0.0:
            continue
        for i in range(n):
            v[i] = A[i, k]
        _combine_rows(V, k + 1, v, 1.0, product)
        for i in range(k + 1, n):
            part = scale[k] * v[i]
            for j in range(n):
                V[i, j] -= part * product[j]
    for i in range(n):
        for j in range(i):
            V[i, j], V[j, i] = V[j, i], V[i, j]


@jit
def _combine_rows(A: Array, start: int, v: Array, factor: float, out: Array) -> None:
    """Write the sum of v_i times row i of ``A``, from row ``start`` on, times a factor."""
    n = len(A)
    for j in range(n):
        out[j] = 0.0
    i = start
    while i + 4 <= n:
        a, b, c, d = factor * v[i], factor * v[i + 1], factor * v[i + 2], factor * v[i + 3]
        for j in range(n):
            total = out[j]
            total += a * A[i, j]
            total += b * A[i + 1, j]
            total += c * A[i + 2, j]
            total += d * A[i + 3, j]
            out[j] = total
        i += 4
    while i < n:
        a = factor * v[i]
        for j in range(n):
            out[j] += a * A[i, j]
        i += 1


@jit
def _diagonalise(V: Array, diagonal: Array, off: Array) -> None:
    """Rotate the off-diagonal away, with a shift near the eigenvalue that is found next."""
    n = len(diagonal)
    for first in range(n):
        for _ in range(_MOST_SWEEPS):
            last = first
            while last < n - 1:
                size = abs(diagonal[last]) + abs(diagonal[last + 1])
                if abs(off[last]) <= _EPSILON * size or abs(off[last]) < 1e-300:
                    break
                last += 1
            if last == first:
                break
            half = (diagonal[first + 1] - diagonal[first]) / (2.0 * off[first])
            root = math.sqrt(half * half + 1.0)
            ahead = half + (root if half >= 0.0 else -root)
            bulge = diagonal[last] - diagonal[first] + off[first] / ahead
            sine, cosine, moved = 1.0, 1.0, 0.0
            split = False
            for i in range(last - 1, first - 1, -1):
                far, near = sine * off[i], cosine * off[i]
                radius = math.sqrt(far * far + bulge * bulge)
                off[i + 1] = radius
                if radius == 0.0:
                    diagonal[i + 1] -= moved
                    off[last] = 0.0
                    split = True
                    break
                inverse = 1.0 / radius
                sine, cosine = far * inverse, bulge * inverse
                bulge = diagonal[i + 1] - moved
                radius = (diagonal[i] - bulge) * sine + 2.0 * cosine * near
                moved = sine * radius
                diagonal[i + 1] = bulge + moved
                bulge = cosine * radius - near
                for j in range(n):
                    upper, lower = V[i, j], V[i + 1, j]
                    V[i + 1, j] = sine * upper + cosine * lower
                    V[i, j] = cosine * upper - sine * lower
            if split:
                continue
            diagonal[first] -= moved
            off[first] = bulge
            off[last] = 0.0


@jit
def _sort(V: Array, values: Array) -> None:
    """Put the largest first."""
    n = len(values)
    for i in range(n - 1):
        best = i
        for j in range(i + 1, n):
            if values[j] > values[best]:
                best = j
        if best != i:
            values[i], values[best] = values[best], values[i]
            for j in range(n):
                V[i, j], V[best, j] = V[best, j], V[i, j]
