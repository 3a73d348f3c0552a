"""The ledger of a sketch that shrinks: the losses behind every certificate.

With A the rows seen, B the rows kept and S = A'A - B'B, the ledger holds

    floor * I  <=  S  <=  shrinkage * I      and      trace(S) = squared_norm - ||B||_F^2,

but for roundings, which ``allowance`` and ``mass_error`` bound. Every entry is a sum over
shrinks, so ledgers of shards add, and forgetting scales them (spectral norms are subadditive and
homogeneous). Roundings need not cancel, so what is allowed for them adds up like all the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from sksketch.arrays.products import NORM_ERROR
from sksketch.arrays.rounding import gamma, unit_roundoff


@dataclass(frozen=True)
class Ledger:
    """Sums over all shrinks so far, in float64.

    Parameters
    ----------
    squared_norm : float
        Squared norm of all rows absorbed.
    shrinkage : float
        Certified bound on what any direction lost.
    kept_loss : float
        Sum of cuts: what the kept directions lost. Equal to ``shrinkage`` for
        the exact solver.
    largest_loss : float
        Estimate of the most that any direction lost.
    floor : float
        What every direction lost at least.
    allowance : float
        Error that rounding may have added, on either side of both inequalities.
    measured : float
        The part of ``allowance`` that rests on what roundings in single precision were measured
        to do, and not on what they can do at most.
    mass_error : float
        Bound on the error of ``squared_norm``.
    failure_probability : float
        Probability that ``shrinkage`` is not a bound.
    n_shrinks : int
        Shrinks so far.

    Examples
    --------
    >>> a = Ledger(squared_norm=6.0, shrinkage=2.0, n_shrinks=1)
    >>> (a + a).shrinkage, a.scaled(0.5).squared_norm
    (4.0, 3.0)
    """

    squared_norm: float = 0.0
    shrinkage: float = 0.0
    kept_loss: float = 0.0
    largest_loss: float = 0.0
    floor: float = 0.0
    allowance: float = 0.0
    failure_probability: float = 0.0
    n_shrinks: int = 0
    measured: float = 0.0
    mass_error: float = 0.0

    def __add__(self, other: Ledger) -> Ledger:
        squared_norm = self.squared_norm + other.squared_norm
        rounded = unit_roundoff() * abs(squared_norm)
        # One by one: every shrink comes here, and a loop over fields takes as long as a product.
        return Ledger(
            squared_norm=squared_norm,
            shrinkage=self.shrinkage + other.shrinkage,
            kept_loss=self.kept_loss + other.kept_loss,
            largest_loss=self.largest_loss + other.largest_loss,
            floor=self.floor + other.floor,
            allowance=self.allowance + other.allowance,
            failure_probability=self.failure_probability + other.failure_probability,
            n_shrinks=self.n_shrinks + other.n_shrinks,
            measured=self.measured + other.measured,
            mass_error=self.mass_error + other.mass_error + rounded,
        )

    def allowing(self, amount: float) -> Self:
        """Return the ledger with more allowed for rounding."""
        return replace(self, allowance=self.allowance + amount)

    def scaled(self, factor: float) -> Self:
        """Return the ledger after every row's weight was multiplied by ``factor``."""
        return replace(
            self,
            squared_norm=self.squared_norm * factor,
            shrinkage=self.shrinkage * factor,
            kept_loss=self.kept_loss * factor,
            largest_loss=self.largest_loss * factor,
            floor=self.floor * factor,
            allowance=self.allowance * factor,
            measured=self.measured * factor,
            mass_error=(self.mass_error + gamma(4) * self.squared_norm) * factor,
        )

    def as_dict(self) -> dict[str, float | int]:
        """Return the fields as plain numbers."""
        return asdict(self)

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> Ledger:
        """Build the ledger that `as_dict` came from.

        Earlier releases took allowances for a random walk and knew nothing of the squared norm's
        own error.
        """
        known = {f.name: entries[f.name] for f in fields(cls) if f.name in entries}
        if "mass_error" not in known:
            n_shrinks = known["n_shrinks"]
            known["allowance"] *= max(n_shrinks, 1) ** 0.5
            known["mass_error"] = (1e3 * NORM_ERROR + gamma(n_shrinks)) * known["squared_norm"]
        return cls(**known)
