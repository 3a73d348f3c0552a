"""What is certain about A'A, read off a sketch without a second look at the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sksketch._typing import Array


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds that hold for the rows A seen so far, with probability ``confidence``.

    Attributes
    ----------
    spectral_error : (float, float)
        Interval that holds ``||A'A - summary||_2``.
    captured_energy : array of shape (rank, 2)
        Row k - 1: interval for the fraction of ``||A||_F^2`` that lies in the span of the
        first k components.
    eigenvalues : array of shape (rank, 2)
        Row i - 1: interval for the i-th eigenvalue of A'A.
    n_certain : int
        Leading components whose eigenvalue is above everything that was lost: the rows
        certainly have that many directions of such energy.
    squared_norm : float
        ``||A||_F^2``.
    n_rows_seen : int
        Rows of A.
    confidence : float
        1.0 if the bounds are deterministic.

    Examples
    --------
    >>> from sksketch import FrequentDirections
    >>> X = np.diag([4.0, 3.0, 2.0, 1.0])
    >>> print(FrequentDirections(2, solver="exact").update(X).certificate())
    certificate over 4 rows (deterministic)
      spectral error     between 0.75 and 1.5, at most 5% of the total energy 30
      captured energy    k=1: 43.3% to 53.3%, k=2: 63.3% to 83.3%
      eigenvalues        1: 13 to 16, 2: 6 to 9
      certain directions 2
    """

    spectral_error: tuple[float, float]
    captured_energy: Array
    eigenvalues: Array
    n_certain: int
    squared_norm: float
    n_rows_seen: int
    confidence: float = 1.0

    @property
    def relative_error(self) -> float:
        """The upper bound on the spectral error as a fraction of the total energy."""
        return self.spectral_error[1] / self.squared_norm if self.squared_norm > 0 else 0.0

    def __str__(self) -> str:
        low, high = self.spectral_error
        sure = "deterministic" if self.confidence == 1 else f"confidence {self.confidence:.4g}"
        shown = [k for k in (1, 2, 3, 5, 10, 20, 50, 100, 200) if k <= len(self.eigenvalues)]
        energy = [f"k={k}: {_span(100 * self.captured_energy[k - 1], '%')}" for k in shown]
        values = [f"{k}: {_span(self.eigenvalues[k - 1])}" for k in shown]
        error = f"between {low:.3g} and {high:.3g}, at most {100 * self.relative_error:.3g}% of"
        if high == np.inf:
            error = "no bound is certified for"
        return "\n".join(
            [
                f"certificate over {self.n_rows_seen} rows ({sure})",
                f"  spectral error     {error} the total energy {self.squared_norm:.3g}",
                f"  captured energy    {', '.join(energy) or 'no components'}",
                f"  eigenvalues        {', '.join(values) or 'none'}",
                f"  certain directions {self.n_certain}",
            ]
        )


def _span(interval: Array, unit: str = "") -> str:
    low, high = (f"{value:.3g}{unit}" for value in interval)
    return low if low == high else f"{low} to {high}"


def certify(
    eigenvalues: Array,
    *,
    lost: tuple[float, float],
    lost_mass: float,
    allowance: float,
    spectral_error: tuple[float, float],
    squared_norm: float,
    n_rows_seen: int,
    confidence: float,
) -> Certificate:
    """Build a certificate from the kept eigenvalues and what every direction may have lost.

    With ``lost = (floor, upper)`` the loss S = A'A - B'B has floor I <= S <= upper I
    and trace ``lost_mass``, so for the leading components V of B::

        e_i + floor <= eigenvalue_i(A'A) <= e_i + upper
        sum e_i     <= ||A V'||_F^2      <= sum e_i + min(k upper, lost_mass)

    and rounding may move each by ``allowance``.
    """
    floor, upper = lost
    bounds = np.stack([eigenvalues + floor - allowance, eigenvalues + upper], axis=1)
    ranks = np.arange(1, len(eigenvalues) + 1)
    energy = np.cumsum(eigenvalues)
    captured = np.stack(
        [
            energy + ranks * (floor - allowance),
            energy + np.minimum(ranks * upper, lost_mass + ranks * allowance),
        ],
        axis=1,
    )
    total = squared_norm if squared_norm > 0 else 1.0
    return Certificate(
        spectral_error=spectral_error,
        captured_energy=np.clip(captured / total, 0.0, 1.0),
        eigenvalues=np.maximum(bounds, 0.0),
        n_certain=int(np.count_nonzero(eigenvalues > upper + allowance)),
        squared_norm=squared_norm,
        n_rows_seen=n_rows_seen,
        confidence=confidence,
    )
