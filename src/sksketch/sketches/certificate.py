"""Certificates: bounds on A'A, read off a sketch without a second look at the rows."""

from __future__ import annotations

import decimal
import html
from dataclasses import dataclass

import numpy as np

from sksketch._typing import Array


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds that hold for the rows A seen so far, with probability ``confidence``.

    Parameters
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
    confidence : float, default=1.0
        1.0 if the bounds are deterministic; else they hold with this probability, at all moments
        at which the sketch is read, for rows that were not made with knowledge of the random
        numbers that verified them.
    measured : float, default=0.0
        The part of ``spectral_error`` that allows for roundings of single precision as they were
        measured. All other allowances are what rounding can do at most.

    See Also
    --------
    Sketch.certificate : Returns the certificate of a sketch.
    LowRankPlusRidge : The operator whose error is certified.

    Examples
    --------
    >>> from sksketch import FrequentDirections
    >>> X = np.diag([4.0, 3.0, 2.0, 1.0])
    >>> print(FrequentDirections(2, solver="exact").update(X).certificate())
    certificate over 4 rows (deterministic)
      spectral error     between 0.749 and 1.51, at most 5.01% of the total energy 30
      captured energy    k=1: 43.3% to 53.4%, k=2: 63.3% to 83.4%
      eigenvalues        1: 12.9 to 16.1, 2: 5.99 to 9.01
      certain directions 2
    """

    spectral_error: tuple[float, float]
    captured_energy: Array
    eigenvalues: Array
    n_certain: int
    squared_norm: float
    n_rows_seen: int
    confidence: float = 1.0
    measured: float = 0.0

    @property
    def relative_error(self) -> float:
        """The upper bound on the spectral error as a fraction of the total energy."""
        return self.spectral_error[1] / self.squared_norm if self.squared_norm > 0 else 0.0

    def facts(self) -> list[tuple[str, str]]:
        """Return what is certain in words, as names and values.

        Returns
        -------
        list of pairs
            As they are printed.
        """
        low, high = self.spectral_error
        shown = [k for k in (1, 2, 3, 5, 10, 20, 50, 100, 200) if k <= len(self.eigenvalues)]
        energy = [f"k={k}: {_span(100 * self.captured_energy[k - 1], '%')}" for k in shown]
        values = [f"{k}: {_span(self.eigenvalues[k - 1])}" for k in shown]
        share = rounded_up(100 * self.relative_error)
        error = f"between {rounded_down(low)} and {rounded_up(high)}, at most {share}% of"
        if high == np.inf:
            error = "no bound is certified for"
        return [
            ("spectral error", f"{error} the total energy {self.squared_norm:.3g}"),
            ("captured energy", ", ".join(energy) or "no components"),
            ("eigenvalues", ", ".join(values) or "none"),
            ("certain directions", str(self.n_certain)),
        ]

    def _heading(self) -> str:
        return f"certificate over {self.n_rows_seen} rows ({self._sure()})"

    def __str__(self) -> str:
        return "\n".join(
            [self._heading(), *(f"  {name:<18} {value}" for name, value in self.facts())]
        )

    def _repr_html_(self) -> str:
        """Return the record for notebooks."""
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self.facts()
        )
        return f"<p><b>{html.escape(self._heading())}</b></p><table>{rows}</table>"

    def _sure(self) -> str:
        """Return in words how certain all of it is."""
        text = "deterministic"
        if self.confidence < 1:
            text = f"confidence {rounded_down(self.confidence, 4)}"
        return text + (", single precision as measured" if self.measured > 0 else "")


def rounded_down(value: float, digits: int = 3) -> str:
    """Return a number in few digits that is not above it.

    >>> rounded_down(1.0049), rounded_down(0.999999, 4), rounded_down(0.0)
    ('1', '0.9999', '0')
    """
    return _rounded(value, digits, decimal.ROUND_FLOOR)


def rounded_up(value: float, digits: int = 3) -> str:
    """Return a number in few digits that is not below it.

    >>> rounded_up(1.0049), rounded_up(12345.0), rounded_up(2.0)
    ('1.01', '1.24e+04', '2')
    """
    return _rounded(value, digits, decimal.ROUND_CEILING)


def _rounded(value: float, digits: int, direction: str) -> str:
    if not np.isfinite(value):
        return f"{value:g}"
    context = decimal.Context(prec=digits, rounding=direction)
    return f"{float(context.create_decimal_from_float(float(value))):.{digits}g}"


def _span(interval: Array, unit: str = "") -> str:
    low, high = rounded_down(interval[0]), rounded_up(interval[1])
    return f"{low}{unit}" if low == high else f"{low}{unit} to {high}{unit}"


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
    measured: float = 0.0,
    mass_error: float = 0.0,
) -> Certificate:
    """Build a certificate from the kept eigenvalues and what every direction may have lost.

    With ``lost = (floor, upper)`` the loss S = A'A - B'B has floor I <= S <= upper I
    and trace ``lost_mass``, so for the leading components V of B::

        e_i + floor <= eigenvalue_i(A'A) <= e_i + upper
        sum e_i     <= ||A V'||_F^2      <= sum e_i + min(k upper, lost_mass)

    and rounding may move each by ``allowance``, and ``squared_norm`` by ``mass_error``.
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
    # Fractions are of a total that is itself rounded, and the division rounds once more.
    slack = mass_error + 1e-14 * squared_norm
    least, most = max(squared_norm - slack, 0.0), squared_norm + slack
    shares = np.zeros_like(captured)
    shares[:, 0] = captured[:, 0] / most if most > 0 else 0.0
    shares[:, 1] = captured[:, 1] / least if least > 0 else 1.0
    return Certificate(
        spectral_error=spectral_error,
        captured_energy=np.clip(shares, 0.0, 1.0),
        eigenvalues=np.maximum(bounds, 0.0),
        n_certain=int(np.count_nonzero(eigenvalues > upper + allowance)),
        squared_norm=squared_norm,
        n_rows_seen=n_rows_seen,
        confidence=confidence,
        measured=measured,
    )
