"""Eigenvalues of symmetric matrices too small for LAPACK to be worth its calls.

LAPACK serves larger ones (`shrink_buffer`); `benchmarks/speed/hand_written.py` compares the two.
"""

from __future__ import annotations

import math

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.kernels.simd import add4, load4, store4, zero4

_EPSILON = 2.0**-52
# Sweeps for one eigenvalue; two or three are usual.
_MOST_SWEEPS = 60


@jit
def eigen_inplace(A: Array, V: Array, values: Array, work: Array) -> None:
    """Write the eigenvalues of ``A``, largest first, and its eigenvectors as the rows of ``V``.

    Householder reflections bring ``A`` to tridiagonal form, rotations bring that to diagonal
    form. ``A`` is overwritten; ``work`` has four rows. The columns of all three are padded by
    zeros to a multiple of four.

    >>> import numpy as np
    >>> A, V, values = np.zeros((2, 4)), np.empty((2, 4)), np.empty(2)
    >>> A[:, :2] = [[2.0, 1.0], [1.0, 2.0]]
    >>> eigen_inplace(A, V, values, np.empty((4, 4)))
    >>> values.round(9), abs(V[:, :2].round(4))
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
            for j in range(V.shape[1]):
                V[i, j] = 1.0 if i == j else 0.0
        return
    for i in range(n):
        for j in range(n):
            A[i, j] /= largest
    _tridiagonalize(A, V, values, work)
    _diagonalize(V, values, work[0])
    for i in range(n):
        values[i] *= largest
    _sort(V, values)


@jit
def _tridiagonalize(A: Array, V: Array, diagonal: Array, work: Array) -> None:
    """Leave Q' in ``V``, and Q'AQ in ``diagonal`` and the first row of ``work``.

    The reflections I - 2 v v' / v'v are kept in the columns of ``A`` that they have cleared. What
    lies left of the four columns around k + 1 is done with.
    """
    n, width = A.shape
    off, scale, product, v = work[0], work[1], work[2], work[3]
    for j in range(width):
        product[j], v[j] = 0.0, 0.0
    for k in range(n - 2):
        start = (k + 1) // 4 * 4
        length = 0.0
        for i in range(start, n):
            v[i] = A[i, k] if i > k else 0.0
            length += v[i] * v[i]
        length = math.sqrt(length)
        # Beside a largest entry of one this is nothing, and fourth powers of it would vanish.
        if length < 1e-70:
            off[k], scale[k] = 0.0, 0.0
            continue
        first = v[k + 1]
        off[k] = -length if first > 0.0 else length
        v[k + 1] = first - off[k]
        A[k + 1, k] = v[k + 1]
        # v'v = 2 length (length + |first|), and this is 2 over it.
        scale[k] = 1.0 / (length * (length + abs(first)))
        _combine_rows(A, k + 1, work)
        inner = 0.0
        for i in range(k + 1, n):
            inner += product[i] * v[i]
        inner *= 0.5 * scale[k] * scale[k]
        for i in range(start, n):
            product[i] = scale[k] * product[i] - inner * v[i] if i > k else 0.0
        for i in range(k + 1, n):
            x, y = -v[i], -product[i]
            for j in range(start, width, 4):
                part = add4(load4(A, i, j), x, load4(work, 2, j))
                store4(A, i, j, add4(part, y, load4(work, 3, j)))
    if n > 1:
        off[n - 2] = A[n - 1, n - 2]
    off[n - 1] = 0.0
    for i in range(n):
        diagonal[i] = A[i, i]
    # Q = H_0 H_1 ... built from the right, where each H_k meets only what lies below it.
    for i in range(n):
        for j in range(width):
            V[i, j] = 1.0 if i == j else 0.0
    for k in range(n - 3, -1, -1):
        if scale[k] == 0.0:
            continue
        for i in range(k + 1, n):
            v[i] = A[i, k]
        _combine_rows(V, k + 1, work)
        for i in range(k + 1, n):
            x = -scale[k] * v[i]
            for j in range((k + 1) // 4 * 4, width, 4):
                store4(V, i, j, add4(load4(V, i, j), x, load4(work, 2, j)))
    for i in range(n):
        for j in range(i):
            V[i, j], V[j, i] = V[j, i], V[i, j]


@jit
def _combine_rows(A: Array, start: int, work: Array) -> None:
    """Write the sum of v_i times row i of ``A``, from row ``start`` on, to the third row of work.

    v is the fourth row. Columns that end before ``start`` are left alone.
    """
    n, width = A.shape
    for j in range(start // 4 * 4, width, 4):
        a, b, c, d = zero4(), zero4(), zero4(), zero4()
        i = start
        while i + 4 <= n:
            a = add4(a, work[3, i], load4(A, i, j))
            b = add4(b, work[3, i + 1], load4(A, i + 1, j))
            c = add4(c, work[3, i + 2], load4(A, i + 2, j))
            d = add4(d, work[3, i + 3], load4(A, i + 3, j))
            i += 4
        while i < n:
            a = add4(a, work[3, i], load4(A, i, j))
            i += 1
        store4(work, 2, j, add4(add4(a, 1.0, b), 1.0, add4(c, 1.0, d)))


@jit
def _diagonalize(V: Array, diagonal: Array, off: Array) -> None:
    """Rotate the off-diagonal away, with a shift near the eigenvalue that is found next."""
    n = len(diagonal)
    for first in range(n):
        for _ in range(_MOST_SWEEPS):
            last = first
            while last < n - 1:
                size = abs(diagonal[last]) + abs(diagonal[last + 1])
                if abs(off[last]) <= _EPSILON * size or abs(off[last]) < 1e-140:
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
                sine, cosine = far / radius, bulge / radius
                bulge = diagonal[i + 1] - moved
                radius = (diagonal[i] - bulge) * sine + cosine * (2.0 * near)
                moved = sine * radius
                diagonal[i + 1] = bulge + moved
                bulge = cosine * radius - near
                for j in range(0, V.shape[1], 4):
                    upper, lower = load4(V, i, j), load4(V, i + 1, j)
                    store4(V, i + 1, j, add4(add4(zero4(), cosine, lower), sine, upper))
                    store4(V, i, j, add4(add4(zero4(), cosine, upper), -sine, lower))
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
