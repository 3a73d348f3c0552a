"""One row in one call: of few columns, with its values and the columns that these belong to."""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.curvature.kernels.exact_rows import learn_exact
from sksketch.online.curvature.kernels.layout import CENTER, SCALE, STEPS
from sksketch.online.curvature.kernels.records import Exact, Row, Task, Totals
from sksketch.online.kernels.copying import copy_inplace, copy_rows_inplace


@jit
def learn_single(
    row: Row, limits: Array, state: Exact, totals: Totals, means: Array, task: Task, scores: Array
) -> bool:
    """Learn from one row as `learn_exact` does, and write the scores it had before.

    Where its values exceed ``limits[0]``, its targets ``limits[1]``, or a number of the learner
    exceeds ``limits[2]`` afterwards, nothing is changed and the answer is False.
    """
    p, n_outputs = len(state.W) - int(task.constant), state.W.shape[1]
    X, y = np.zeros((1, p)), np.empty((1, n_outputs))
    for i in range(len(row.values)):
        if not abs(row.values[i]) <= limits[0]:
            return False
        # Sums with zero have no negative zero.
        X[0, row.columns[i]] = row.values[i] + 0.0
    for c in range(n_outputs):
        if not abs(row.targets[c]) <= limits[1]:
            return False
        y[0, c] = row.targets[c]
    before = Exact(state.W.copy(), state.G.copy(), state.U.copy(), state.units.copy())
    counters, sums, former = totals.counters.copy(), totals.sums.copy(), means.copy()
    found, weights = np.empty((1, n_outputs)), np.ones(1)
    learn_exact(X, y, weights, found, state, totals.counters, totals.sums, means, task)
    largest = max(_largest(found), _largest(state.W), _largest(state.U))
    for i in range(STEPS):
        # A NaN fails the comparison below, and max may lose it.
        largest += abs(totals.sums[i]) if not abs(totals.sums[i]) <= limits[2] else 0.0
    if not largest <= limits[2]:
        copy_rows_inplace(state.W, before.W, len(before.W))
        copy_rows_inplace(state.G, before.G, len(before.G))
        copy_rows_inplace(state.U, before.U, len(before.U))
        copy_rows_inplace(state.units, before.units, len(before.units))
        copy_inplace(means, former)
        copy_inplace(totals.counters, counters)
        copy_inplace(totals.sums, sums)
        return False
    copy_inplace(scores, found[0])
    return True


@jit
def _largest(numbers: Array) -> float:
    """Return the size of the largest number, infinity if one is NaN."""
    largest = 0.0
    for number in numbers.ravel():
        if not abs(number) <= largest:
            largest = abs(number) if number == number else np.inf
    return largest


@jit
def score_single(row: Row, W: Array, units: Array, scores: Array, constant: bool) -> None:
    """Write the scores of one row."""
    lead = int(constant)
    x = np.zeros(len(W))
    for i in range(len(row.values)):
        x[lead + row.columns[i]] = row.values[i]
    for j in range(len(W)):
        value = x[j] if j >= lead else 1.0
        x[j] = (value - units[j, CENTER]) / units[j, SCALE] if units[j, SCALE] > 0.0 else 0.0
    for c in range(len(scores)):
        scores[c] = 0.0
        for j in range(len(W)):
            scores[c] += x[j] * W[j, c]
