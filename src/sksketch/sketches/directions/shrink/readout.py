"""Read-outs: how the energy that shrinking lost is put back when a sketch is read.

The loss S = A'A - B'B satisfies floor I <= S <= upper I. A read-out replaces S by shift I,
or by shift on the row space of B, and its error is at most max(shift - floor, upper - shift).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.linalg import thin_svd
from sksketch.arrays.products import gram, squared_norm
from sksketch.arrays.rounding import gamma, perturbed_gram, unit_roundoff
from sksketch.low_rank import LowRankPlusRidge
from sksketch.sketches.base import Answer
from sksketch.sketches.certificate import certify
from sksketch.sketches.directions.shrink.compression import ShrinkState, probes

# Roundings of a cosine between rows that count as orthogonal.
ORTHOGONAL = 64.0


def _no_shift(held: ShrinkState) -> float:
    return 0.0


def _half_shift(held: ShrinkState) -> float:
    """Half of what was lost: least error when nothing else is known of S.

    Kept directions lost ``kept_loss`` and none lost more than about ``largest_loss``. The two
    are one number for the exact solver, and then this is Luo et al. (2019), Algorithm 2. The
    block solver's losses add up less than fully, so we take a number between them.
    """
    ledger = held.ledger
    typical = (ledger.kept_loss + 2 * ledger.largest_loss) / 3
    return (ledger.floor + min(typical, held.upper)) / 2


def _trace_shift(held: ShrinkState) -> float:
    """Return the ridge with which the trace is that of A'A."""
    return held.lost_mass / int(held.matrix.shape[1])


def _energy_shift(held: ShrinkState) -> float:
    """trace(S^2) / trace(S), the lost energy averaged by energy, from probes of S."""
    if held.image is None or held.lost_mass <= 0:
        return 0.0
    G = probes(held.matrix, held.probe_seed)
    loss = held.image - (G @ held.matrix.T) @ held.matrix
    return float(np.vdot(loss, loss)) / len(G) / held.lost_mass


SHIFTS: dict[str, Callable[[ShrinkState], float]] = {
    "none": _no_shift,
    "half": _half_shift,
    "full": lambda held: held.upper,
    "trace": _trace_shift,
    "energy": _energy_shift,
}


def check_correction(correction: object) -> str | float:
    """Return a valid ``correction``: a name or a number that is not negative."""
    if isinstance(correction, str) and correction in SHIFTS:
        return correction
    if isinstance(correction, (int, float, np.number)) and 0 <= correction < np.inf:
        return float(correction)
    names = ", ".join(map(repr, SHIFTS))
    raise ValueError(
        f"correction must be one of {names} or a number that is not negative, got {correction!r}"
    )


def _shift(held: ShrinkState, correction: str | float) -> float:
    if isinstance(correction, str):
        return min(SHIFTS[correction](held), held.upper)
    return correction


def read_out(
    held: ShrinkState, *, correction: str | float, initial_ridge: float, n_rows_seen: int
) -> Answer:
    """Return the operator and the certificate that a state amounts to, in numpy."""
    kept, components, rounding = _components(held)
    held = held.allowing(rounding)
    ledger = held.ledger
    total = ledger.squared_norm
    n_features = held.matrix.shape[1]
    shift = _shift(held, correction)
    # CFD puts the loss back on the kept directions alone; the others spread it evenly.
    full = correction == "full"
    low = (shift if full else shift - ledger.floor) + ledger.allowance
    high = held.upper if full else held.upper - shift
    ridge = initial_ridge + (0.0 if full else shift)
    # Beside a large ridge of the target a small one is rounded.
    bound = max(low, high, 0.0)
    bound += 0.0 if full else abs((ridge - initial_ridge) - shift)
    traced = shift * (len(kept) if full else n_features)
    apart = abs(held.lost_mass - traced) - held.mass_error
    least = max(apart / n_features - ledger.allowance, 0.0)
    # The lost mass is certain; only a smaller probabilistic bound is not.
    sure = held.lost_mass + held.mass_error <= ledger.shrinkage
    confidence = 1.0 if sure else max(1.0 - ledger.failure_probability, 0.0)
    summary = LowRankPlusRidge(
        components,
        kept + (shift if full else 0.0),
        ridge=ridge,
        error_bound=bound,
        confidence=confidence,
        n_rows_seen=n_rows_seen,
        squared_norm=total,
    )
    certificate = certify(
        kept,
        lost=(ledger.floor, held.upper),
        lost_mass=held.lost_mass + held.mass_error,
        allowance=ledger.allowance,
        spectral_error=(min(least, bound), bound),
        squared_norm=total,
        n_rows_seen=n_rows_seen,
        confidence=confidence,
        measured=ledger.measured,
        mass_error=ledger.mass_error,
    )
    return Answer(summary, certificate)


def _orthogonal(matrix: Array) -> tuple[Array, Array] | None:
    """Return squared lengths and unit rows of rows that are orthogonal to rounding, if they are.

    Shrinks leave such rows, unless their lengths span many digits. One product then does
    instead of a factorization as long as a row.
    """
    G = gram(matrix)
    lengths = np.sqrt(G.diagonal())
    if not lengths.all():
        return None
    overlap = G / np.outer(lengths, lengths) - np.eye(len(G))
    if np.abs(overlap).max() > ORTHOGONAL * np.finfo(matrix.dtype).eps:
        return None
    order = np.argsort(-lengths, kind="stable")
    return lengths[order] ** 2, matrix[order] / lengths[order, None]


def _components(held: ShrinkState) -> tuple[Array, Array, float]:
    """Return the eigenvalues of B'B, orthonormal rows, and what rounding does to both at most."""
    matrix = held.matrix
    if not len(matrix) or held.components is not None:
        unit = matrix if held.components is None else held.components
        return held.eigenvalues, unit, 0.0
    n_rows, n_features = matrix.shape
    if (found := _orthogonal(matrix)) is not None:
        # Cosines of this size move an eigenvalue by no more than their sum, relative to it.
        relative = 2.0 * ORTHOGONAL * n_rows * unit_roundoff() + gamma(n_features + 8)
        return *found, relative * float(found[0][0])
    singular_values, V = thin_svd(matrix)
    resolution = max(matrix.shape) * float(np.finfo(np.float64).eps)
    keep = singular_values > resolution * singular_values[0]
    error = gamma(4 * (n_rows + n_features)) * math.sqrt(squared_norm(matrix))
    rounding = perturbed_gram(float(singular_values[0]), error)
    return singular_values[keep] ** 2, V[keep], rounding
