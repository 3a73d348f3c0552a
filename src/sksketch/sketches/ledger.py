"""What a shrink-type sketch knows of its own loss: the numbers behind every certificate.

With A the rows seen, B the rows kept and S = A'A - B'B, the ledger holds

    floor * I  <=  S  <=  shrinkage * I      and      trace(S) = squared_norm - ||B||_F^2,

up to rounding. Every entry is a sum over shrinks, so ledgers of shards add, and
forgetting scales them (spectral norms are subadditive and homogeneous).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Self

# Products in finite precision move an eigenvalue by a few roundings of the largest one. Their
# signs vary, so over many shrinks they add like a random walk (Higham and Mary 2019).
ROUNDING_FACTOR = 64.0


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
        Error that rounding may have added, on either side.
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

    def __add__(self, other: Ledger) -> Ledger:
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return Ledger(**sums | {"allowance": math.hypot(self.allowance, other.allowance)})

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
        )

    def as_dict(self) -> dict[str, float | int]:
        """Return the fields as plain numbers."""
        return asdict(self)


def rounding_allowance(eps: float, largest: float, roundings: float = ROUNDING_FACTOR) -> float:
    """Return the error to allow for one shrink whose largest eigenvalue is given."""
    return roundings * eps * largest
