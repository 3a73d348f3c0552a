"""Every statement of a certificate as an inequality between the truth and a bound."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from _support import extended, oracle
from _support.extended import LD

# What float64 loses of a product below its range, at most. Rows whose squares vanish are answered
# with zero, as the documentation says, so that much is not held against a bound.
UNDERFLOW = LD(5e-324)
# Beyond this order the eigenvalues of float64, with their error, have to do.
LARGEST_JACOBI = 40
TINY = np.finfo(LD).tiny


class Check(NamedTuple):
    """One statement: ``low`` is at most ``high``, for all of their entries.

    One of the two is a bound and the other one the truth. ``failure`` is the probability with
    which the statement may be false, 0 if it is meant to be certain. ``ratio`` is bound / truth,
    or truth / bound for a lower one: 1 is best. ``worst`` is how many times low is high.
    """

    kind: str
    failure: float
    broken: bool
    ratio: float
    worst: float


def check(kind, low, high, slack=0, failure=0.0):
    """Compare, with ``slack`` for the error of the oracle; NaN is no bound."""
    low, high = np.atleast_1d(np.asarray(low, LD)), np.atleast_1d(np.asarray(high, LD))
    slack = np.asarray(slack, LD)
    with np.errstate(all="ignore"):
        broken = bool((~(low - slack <= high)).any())
        useful = (low > slack) & np.isfinite(high)
        ratios = (high[useful] / low[useful]).astype(np.float64)
        worst = np.where(low > slack, low / np.maximum(high, TINY), 0)
    ratio = float(np.median(ratios)) if len(ratios) else math.nan
    return Check(kind, float(failure), broken, ratio, float(worst.max(initial=LD(0))))


def of_sketch(sketch, rows, configuration, label=""):
    """Return all checks of a sketch that has seen these rows."""
    found = oracle.truth(rows, centered=configuration.centered)
    return of_answer(
        sketch.summary(), sketch.certificate(), found, rows.n_rows, configuration, label
    )


def of_answer(summary, certificate, found, n_rows, configuration, label=""):
    """Return all checks of a summary and a certificate against the truth."""
    failure = 1.0 - certificate.confidence
    G = found.gram
    d = len(G)
    floor = UNDERFLOW * 16 * n_rows * d
    slack = found.error + floor
    result = []
    parts = (summary.components, summary.eigenvalues, summary.ridge, certificate.eigenvalues)
    if not all(np.isfinite(part).all() for part in parts):
        return [check("finite numbers" + label, 1, 0)]

    def claim(kind, low, high, slack, failure=failure):
        result.append(check(kind + label, low, high, slack, failure))

    # The operator, without the ridge that the target has as well.
    K = extended.operator(summary.components, summary.eigenvalues)
    shift = LD(summary.ridge) - LD(configuration.initial_ridge)
    largest = np.sum(summary.eigenvalues, dtype=LD) + abs(shift)
    formed = slack + LD(summary.rank + 4) * extended.ROUNDOFF * largest
    error, error_slack = extended.spectral_norm(G - K - shift * np.eye(d, dtype=LD))
    low, high = certificate.spectral_error
    if np.isfinite(high):
        claim("spectral error, upper end", error, high, formed + error_slack)
    claim("spectral error, lower end", low, error, formed + error_slack)
    values, value_slack = _eigenvalues(G, certificate.eigenvalues, slack)
    n = len(certificate.eigenvalues)
    if n:
        least, most = certificate.eigenvalues.T
        claim("eigenvalue, upper end", values[:n], most, value_slack)
        claim("eigenvalue, lower end", least, values[:n], value_slack)
    if n and found.trace > floor:
        captured = extended.captured(G, summary.components) / found.trace
        least, most = certificate.captured_energy.T
        # Of the sums over k directions, and of the trace.
        relative = (np.arange(1, n + 1) + d) * slack / found.trace
        claim("captured energy, upper end", captured, most, relative)
        claim("captured energy, lower end", least, captured, relative)
    # A read-out that puts the loss on the kept eigenvalues hides what was kept.
    if certificate.n_certain and "correction='full'" not in configuration.name:
        # So many eigenvalues of A'A are above all that was lost, and above nothing.
        lost = extended.double_eigenvalues(G - K)[0][0]
        last = values[certificate.n_certain - 1]
        claim("certain directions", max(lost, TINY), last, value_slack + error_slack + formed)
    if np.isfinite(high):
        # No bound is stated for it but this follows: rows that are off change it by no more than
        # the trace of what they change A'A by, and a sum of squares has its roundings.
        sums = LD(n_rows + d + 8) * LD(extended.DOUBLE) * found.trace
        off = abs(LD(certificate.squared_norm) - found.trace)
        claim("squared norm", off, d * LD(high) + sums, d * slack, 0.0)
    return result


def _eigenvalues(G, intervals, slack):
    """Return eigenvalues that are fine enough to decide about the intervals, and their error."""
    values, rough = extended.double_eigenvalues(G)
    if not len(intervals) or len(G) > LARGEST_JACOBI:
        return values, rough + slack
    least, most = intervals.T.astype(LD)
    near, margin = values[: len(intervals)], rough + slack
    clear = (least <= near - margin).all() and (near + margin <= most).all()
    if clear:
        return values, margin
    values, fine = extended.eigenvalues(G)
    return values, fine + slack
