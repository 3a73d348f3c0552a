"""Summary and certificate of A'A itself, in the units of its columns or in others."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import eigh_descending
from sksketch.arrays.namespace import namespace, to_numpy
from sksketch.arrays.rounding import eigen_error
from sksketch.low_rank import LowRankPlusRidge
from sksketch.sketches.base import Answer, Sketch
from sksketch.sketches.certificate import certify
from sksketch.sketches.column_errors import ColumnErrors, ExactGram


def answer_of(
    C: Array, error: float, ridge: float, n_rows_seen: int, mass_error: float = 0.0
) -> Answer:
    """Return the answer of A'A that is known to ``error``.

    Parameters
    ----------
    C : array of shape (n_features, n_features)
        A'A, symmetric.
    error : float
        Bound on the spectral norm of its error.
    ridge : float
        The target is ``A'A + ridge I``.
    n_rows_seen : int
        Rows of A.
    mass_error : float, default=0.0
        Bound on what the trace is off by, beyond that.

    Returns
    -------
    Answer

    Examples
    --------
    >>> answer_of(np.diag([4.0, 1.0]), 0.0, 0.0, 2).summary.eigenvalues
    array([4., 1.])
    """
    total = float(namespace(C).linalg.trace(C))
    spectrum, V = eigh_descending(C)
    eigenvalues = np.maximum(spectrum, 0.0)
    rank = int(np.count_nonzero(eigenvalues))
    # Roundings of the sums, of the eigenproblem both ways, and what they made negative.
    largest = float(eigenvalues[0])
    bound = error + 2 * eigen_error(len(C), largest) + max(-float(spectrum[-1]), 0.0)
    summary = LowRankPlusRidge(
        np.ascontiguousarray(to_numpy(V)[:, :rank].T),
        eigenvalues[:rank],
        ridge=ridge,
        error_bound=bound,
        n_rows_seen=n_rows_seen,
        squared_norm=total,
    )
    certificate = certify(
        eigenvalues[:rank],
        lost=(0.0, bound),
        lost_mass=0.0,
        allowance=bound,
        spectral_error=(0.0, bound),
        squared_norm=total,
        n_rows_seen=n_rows_seen,
        confidence=1.0,
        mass_error=bound + mass_error,
    )
    return Answer(summary, certificate)


def gram_in_units(sketch: Sketch, units: Array) -> ExactGram:
    """Return A'A of a sketch that keeps it, for columns divided by exactly ``units``."""
    gram = sketch._exact_gram()
    if gram is None or not math.isfinite(gram.errors.flat):
        # Of states of earlier releases no more is known than a bound for all entries.
        summary = sketch.summary()
        off = summary.error_bound + eigen_error(summary.n_features, summary.squared_norm)
        errors = replace(ColumnErrors.none(summary.n_features), flat=off)
        gram = ExactGram(summary.with_ridge(0.0).to_dense(), summary.ridge, errors)
    return gram.in_units(units)


def answer_in_units(sketch: Sketch, units: Array) -> Answer:
    """Return the answer of a sketch that keeps A'A, for columns divided by exactly ``units``.

    Parameters
    ----------
    sketch : Sketch
        `ExactCovariance`, by itself or wrapped.
    units : array of shape (n_features,)
        Positive numbers.

    Returns
    -------
    Answer
        About the rows in these units, whatever they are: that they were read from the same
        sketch is no error.
    """
    gram = gram_in_units(sketch, units)
    error = gram.errors.norm(np.ones(len(units)))
    return answer_of(gram.matrix, error, gram.ridge, sketch.n_rows_seen)
