"""The bucket that the edge of a window cuts: half of it is taken, and the other half allowed for.

Let m and S be the mean and the scatter matrix of the rows that are certainly in the window, and
let a bucket of weight k have mean u = m + g and scatter matrix S_e. Which of its rows are in the
window is not known. Whichever they are, the scatter matrix of the window is S + Y with::

    0  <=  Y  <=  T  =  S_e + k g g'

since around the mean of all its rows the window scatters less than around m, and fewer rows
scatter less than more. (Without centering T is A'A of the bucket.) The bucket's own sketch knows
S_e <= L + e I, with L of low rank. So S + (L + k g g') / 2 is off by no more than the largest
eigenvalue of (L + k g g') / 2, and by e. That eigenvalue, not the trace, is what the edge costs.

*Means and targets.* The same holds for rows [x, y] with their targets. So the part of the cross
moment that is not known, beyond half of the bucket's, is at most sqrt(T_xx T_yy) / 2, where for
T_xx its largest eigenvalue will do. The sum of the rows in question around m is at most
sqrt(w T_xx) for rows of weight w <= k, and the mean of the window is off m by that over n + w.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.rounding import gamma, perturbed_gram, unit_roundoff
from sksketch.sketches.base import Sketch
from sksketch.sketches.directions.exact_covariance import ExactCovariance
from sksketch.sketches.directions.frequent_directions import FrequentDirections
from sksketch.sketches.wrappers.centered import Centered
from sksketch.sketches.wrappers.moment_sums import Moments, MomentShift
from sksketch.sketches.wrappers.regression import Regression
from sksketch.sketches.wrappers.running_mean import RunningMean

# More than the roundings of the sums and products here, relative to what they are of.
SLACK = 1e-9


class Edge(NamedTuple):
    """A bucket that may be in the window in part.

    Parameters
    ----------
    sketch : Sketch
        Of its rows.
    share : float
        Part of them that is in the window: known, or one half.
    """

    sketch: Sketch
    share: float


class _Half(NamedTuple):
    """Half of an edge, which is taken, and what is allowed for.

    ``rows`` have the Gram matrix (L + k g g') / 2; T is at most twice that and ``outside`` I.
    """

    rows: Array
    outside: float
    allowance: float
    mass_error: float

    @property
    def largest(self) -> float:
        """Bound on the largest eigenvalue of T."""
        return 2.0 * self.allowance

    @property
    def diagonal(self) -> Array:
        """Bounds on the diagonal of T."""
        squares: Array = np.einsum("ij,ij->j", self.rows, self.rows)
        return (2.0 * squares + self.outside) * (1.0 + SLACK)


def admit_edges(sketch: Sketch, edges: list[Edge]) -> None:
    """Add to a sketch of the rows that are in a window what is known of those at its edge.

    Its bounds hold for the window then. The edges are left as they were.
    """
    rows_of = sketch.sketch if isinstance(sketch, Regression) else sketch
    if isinstance(sketch, Regression) and sketch.target_shape is not None:
        inside = sketch.moments()
    else:
        inside = None
    gaps = _admit_means(rows_of, edges) if isinstance(rows_of, Centered) else None
    inner = rows_of.sketch if isinstance(rows_of, Centered) else rows_of
    halves = [_half(edge.sketch, None if gaps is None else gaps[i]) for i, edge in enumerate(edges)]
    for half in halves:
        _admit(inner, half)
    if isinstance(rows_of, Centered):
        _allow_for_mean(rows_of, edges, halves)
    if isinstance(sketch, Regression) and inside is not None:
        sketch._shift = _moment_shift(sketch.centered, inside, edges, halves)
    n_rows = sum(round(edge.share * edge.sketch.n_rows_seen) for edge in edges)
    weight = sum(edge.share * edge.sketch.total_weight for edge in edges)
    for part in {id(part): part for part in (sketch, rows_of, inner)}.values():
        part.n_rows_seen += n_rows
        part.total_weight += weight


def _half(edge: Sketch, gap: tuple[float, Array, Array] | None) -> _Half:
    """Return half of a bucket, whose mean is ``gap`` away from that of the window."""
    summary = edge.summary()
    rows_of: Any = edge
    while hasattr(rows_of, "sketch"):
        rows_of = rows_of.sketch
    outside = max(summary.ridge - rows_of.initial_ridge, 0.0) + summary.error_bound
    rows = np.sqrt(0.5 * summary.eigenvalues)[:, None] * summary.components.astype(np.float64)
    kept = 0.5 * float(summary.eigenvalues.sum())
    between, off = 0.0, 0.0
    largest = 0.5 * float(summary.eigenvalues[0]) if summary.rank else 0.0
    if gap is not None:
        weight, step, errors = gap
        root = math.sqrt(0.5 * weight)
        rows = np.concatenate([rows, root * step[None]])
        between = float(rows[-1] @ rows[-1])
        off = root * float(np.linalg.norm(errors))
        largest = float(np.linalg.eigvalsh(rows @ rows.T)[-1]) if between else largest
    # Of the small eigenproblem, of the roots, and of a step that is off itself.
    total = kept + between
    largest += gamma(16 * len(rows) + rows.shape[1] + 64) * total
    largest += 2.0 * perturbed_gram(math.sqrt(between), off)
    allowance = (largest + outside) * (1.0 + SLACK)
    mass_error = (max(summary.squared_norm - kept, 0.0) + between + outside) * (1.0 + SLACK)
    return _Half(rows, outside, allowance, max(mass_error, total * (1.0 + SLACK)))


def _admit(inner: Sketch, half: _Half) -> None:
    """Add half of an edge to a sketch of rows."""
    part: Any = inner.fresh()
    assert inner.n_features is not None
    assert inner.dtype is not None
    part._begin(inner.n_features, inner.dtype)
    length = float(np.linalg.norm(half.rows))
    rounding = perturbed_gram(length, (gamma(64) + unit_roundoff(inner.dtype)) * length)
    part._allow(half.allowance + rounding)
    part._take(half.rows.astype(inner.dtype))
    allow_mass(part, half.mass_error + rounding * len(half.rows))
    inner.merge(part)
    exact = inner if isinstance(inner, ExactCovariance) else getattr(inner, "_exact", None)
    if exact is not None:
        # Entry by entry nothing is known.
        exact._depth = math.inf


def allow_mass(sketch: Any, amount: float) -> None:
    """Count with a squared norm that is off by that much."""
    if isinstance(sketch, FrequentDirections) and sketch._exact is not None:
        sketch = sketch._exact
    if isinstance(sketch, ExactCovariance):
        sketch._mass_error += amount
        return
    name = "_first" if hasattr(sketch, "_first") else "_held"
    held = getattr(sketch, name)
    ledger = replace(held.ledger, mass_error=held.ledger.mass_error + amount)
    setattr(sketch, name, replace(held, ledger=ledger))


def _admit_means(sketch: Centered, edges: list[Edge]) -> list[tuple[float, Array, Array]]:
    """Add the shares of the edges to the mean; return weight, step to its mean and its errors."""
    sketch._cached = None
    sketch._flush_dense()
    sketch._flush_sparse()
    before = sketch._mean
    gaps = []
    origin: RunningMean | None = before if before.weight > 0 else None
    for edge in edges:
        assert isinstance(edge.sketch, Centered | Regression)
        rows_of: Any = edge.sketch.sketch if isinstance(edge.sketch, Regression) else edge.sketch
        theirs = rows_of._with_tile().mean
        origin = theirs if origin is None else origin
        _, gap, errors = origin.merged(theirs)
        gaps.append((theirs.weight, gap, errors))
        sketch._mean = sketch._mean.merged(theirs.aged(edge.share))[0]
    return gaps


def _farthest(weight: float, edges: list[Edge]) -> float:
    """Return the most that sqrt(w) / (weight + w) can be for rows of the edges, of weight w."""
    most = sum(edge.sketch.total_weight for edge in edges)
    w = min(most, weight)
    return math.sqrt(w) / (weight + w) if weight > 0.0 else math.inf


def _allow_for_mean(sketch: Centered, edges: list[Edge], halves: list[_Half]) -> None:
    """Count with a mean that the rows of the edges may have moved."""
    mean = sketch._mean
    shared = sum(edge.share * edge.sketch.total_weight for edge in edges)
    inside = max(mean.weight - shared, 0.0)
    diagonal = sum((half.diagonal for half in halves), np.zeros(len(mean.origin)))
    # Both the mean of the window and ours are at most so far from that of the rows inside.
    most = _farthest(inside, edges)
    off = 2.0 * most * np.sqrt(diagonal) * (1.0 + SLACK) if math.isfinite(most) else np.inf
    held = (*mean.held[:3], mean.held[3] + off * max(mean.weight, 0.0), *mean.held[4:])
    sketch._mean = replace(mean, held=held)


def _moment_shift(
    centered: bool, inside: Moments, edges: list[Edge], halves: list[_Half]
) -> MomentShift:
    """Return what the edges may add to moments of rows and targets."""
    shift = MomentShift.none(*inside.cross.shape)
    largest = sum(half.largest for half in halves)
    squares, weight = np.zeros_like(inside.squares), inside.weight
    moved, target_moved = weight * inside.mean, weight * inside.target_mean
    for edge, half in zip(edges, halves, strict=True):
        assert isinstance(edge.sketch, Regression)
        theirs = edge.sketch.moments()
        gap, target_gap = theirs.mean - inside.mean, theirs.target_mean - inside.target_mean
        k = theirs.weight if centered else 0.0
        cross, own = theirs.cross + k * np.outer(gap, target_gap), theirs.squares_error
        off = inside.target_mean_error + theirs.target_mean_error
        own = own + k * (2.0 * np.abs(target_gap) + off) * off
        most = (theirs.squares + k * target_gap**2 + own) * (1.0 + SLACK)
        length, lengths = float(np.linalg.norm(gap)), np.abs(target_gap)
        step = inside.mean_error + theirs.mean_error
        error = theirs.cross_error + k * (length * off + step * (lengths + off))
        error = error + gamma(16) * np.linalg.norm(cross, axis=0)
        shift = shift.adding(cross, error, most, half.largest)
        squares = squares + most
        k = edge.share * theirs.weight
        moved, target_moved = moved + k * theirs.mean, target_moved + k * theirs.target_mean
        weight += k
    farthest = _farthest(inside.weight, edges)
    mean, target_mean = moved / (weight or 1.0), target_moved / (weight or 1.0)
    off_mean, off_target = mean - inside.mean, target_mean - inside.target_mean
    apart, target_apart = 0.0, np.zeros_like(off_target)
    if not centered:
        # T is around zero then: the rows of the edge can be as far from the mean as that is.
        apart, target_apart = float(np.linalg.norm(inside.mean)), np.abs(inside.target_mean)
    return shift._replace(
        weight=weight - inside.weight,
        n_rows=sum(round(edge.share * edge.sketch.n_rows_seen) for edge in edges),
        mean=off_mean,
        target_mean=off_target,
        mean_error=farthest * math.sqrt(largest) + float(np.linalg.norm(off_mean)) + apart,
        target_mean_error=farthest * np.sqrt(squares) + np.abs(off_target) + target_apart,
        columns=np.sqrt(sum((half.diagonal for half in halves), np.zeros(len(mean)))),
        targets=np.sqrt(squares),
    )
