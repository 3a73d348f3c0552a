"""The spectrum of a sketch: its leading components, what they explain, and what is left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.random import stream
from sksketch.sketches import Centered, Certificate, Sketch
from sksketch.sketches.base import Answer


class Spectrum(NamedTuple):
    """The leading components, what they explain, and what is left.

    Parameters
    ----------
    components : array of shape (n_components, n_features)
        Orthonormal rows, with deterministic signs.
    variances : array of shape (n_components,)
        Per row, along each component.
    ratios : array of shape (n_components,)
        The same as fractions of the total.
    noise : float
        Average variance of the directions left out.
    degrees : float
        Rows that a variance is divided by: their weight, less one where they are centered.
    """

    components: Array
    variances: Array
    ratios: Array
    noise: float
    degrees: float

    @property
    def singular_values(self) -> Array:
        """Norms of the rows' coordinates along each component."""
        return np.asarray(np.sqrt(self.variances * self.degrees))


def read_spectrum(
    sketch: Sketch,
    n_components: int | float | None = None,
    answer: Answer | None = None,
) -> Spectrum:
    """Return the spectrum of the rows that a sketch has seen; centered if the sketch is.

    Parameters
    ----------
    sketch : Sketch
        With rows.
    n_components : int, float or None, default=None
        Components to have, a fraction of the variance that they must hold, or all.
    answer : Answer, default=None
        That of the sketch, where it is known already or was read in other units.

    Returns
    -------
    Spectrum

    Examples
    --------
    >>> from sksketch import ExactCovariance
    >>> read_spectrum(ExactCovariance().update(np.diag([3.0, 2.0])), 1).singular_values.round(6)
    array([3.])
    """
    summary, certificate = sketch._answer() if answer is None else answer
    centered = isinstance(sketch, Centered)
    n_rows, n_features = sketch.n_rows_seen, summary.n_features
    # Centering takes one dimension, and rows beyond the data's rank carry only the ridge.
    rank = min(summary.rank, max(n_rows - centered, 1), n_features)
    degrees = max(sketch.total_weight - centered, 1.0)
    per_row = 1.0 / degrees
    total = summary.squared_norm * per_row
    raised = summary.eigenvalues[:rank] + _lost(sketch, summary.ridge)
    values = _within(raised, certificate) * per_row
    k = _n_kept(n_components, values, total, n_features, certificate)
    components = _signed(_completed(summary.components[: min(rank, k)], k))
    values = np.pad(values[:k], (0, k - len(values[:k])))
    left = total - float(values[:k].sum())
    # As many directions as rows, or columns, as PCA counts them.
    others = min(n_rows, n_features) - k
    noise = max(left, 0.0) / others if others > 0 else 0.0
    ratios = values[:k] / total if total > 0 else np.zeros(k)
    return Spectrum(components, values[:k], ratios, noise, degrees)


def is_fraction(n_components: int | float | None) -> bool:
    """Tell a fraction of the variance from a number of components."""
    return n_components is not None and n_components < 1


def _lost(sketch: Sketch, ridge: float) -> float:
    """Return the part of the summary's ridge that stands for lost energy."""
    inner = sketch.sketch if isinstance(sketch, Centered) else sketch
    return float(ridge - getattr(inner, "initial_ridge", 0.0))


def _within(values: Array, certificate: Certificate) -> Array:
    """Return eigenvalues within their certified intervals, and no more in all than there is.

    What the sketch lost is known only as a bound, so what is put back may be too much.
    """
    rank = len(values)
    low, high = certificate.eigenvalues[:rank].T
    values = np.clip(values, low, high)
    if not rank:
        return values
    most = float(certificate.captured_energy[rank - 1, 1]) * certificate.squared_norm
    least, sums = float(low.sum()), float(values.sum())
    if sums > most:
        values = low + (values - low) * max((most - least) / (sums - least), 0.0)
    return np.asarray(values)


def _n_kept(
    wanted: int | float | None,
    variances: Array,
    total: float,
    n_features: int,
    certificate: Certificate,
) -> int:
    """Return how many components to have: as asked for, at least one, at most all columns."""
    if wanted is None:
        # Directions of rounding size are not counted, or their number would be an accident.
        least = n_features * np.finfo(np.float64).eps * variances.max(initial=0.0)
        return max(int(np.count_nonzero(variances > least)), 1)
    if not is_fraction(wanted):
        return min(int(wanted), n_features)
    certain = certificate.captured_energy[: len(variances), 0]
    if len(certain) and certain.max() >= wanted:
        return int(np.argmax(certain >= wanted)) + 1
    # What was lost leaves it open, so an estimate has to do.
    captured = np.cumsum(variances) / total if total > 0 else np.ones(1)
    return max(min(int(np.searchsorted(captured, wanted)) + 1, len(variances)), 1)


def _signed(components: Array) -> Array:
    """Return components whose largest entries are positive, as scikit-learn turns them."""
    largest = np.argmax(np.abs(components), axis=1)
    signs = np.sign(components[np.arange(len(components)), largest])
    return np.asarray(components * signs[:, np.newaxis])


def _completed(components: Array, k: int) -> Array:
    """Return k orthonormal rows: those given, then directions in which nothing varies.

    Rows of low rank, or fewer of them than components, leave directions open; a fixed choice
    keeps the width of `transform` the same from the first batch on.
    """
    missing = k - len(components)
    if missing <= 0:
        return np.array(components[:k])
    fill = stream(0, "completion").standard_normal((missing, components.shape[1]))
    for _ in range(2):
        fill -= (fill @ components.T) @ components
    Q = np.linalg.qr(fill.T)[0]
    return np.concatenate([components, Q.T.astype(components.dtype)])
