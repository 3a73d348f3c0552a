"""Losses of the online learners: what each is called and what its predictions may be."""

from __future__ import annotations

from dataclasses import dataclass

from sksketch.online.kernels import layout, online_kernels

CODES = {
    "squared": layout.SQUARED,
    "logistic": layout.LOGISTIC,
    "hinge": layout.HINGE,
    "absolute": layout.ABSOLUTE,
    "huber": layout.HUBER,
}


@dataclass(frozen=True)
class Loss:
    """A loss for predictions between ``-limit`` and ``limit``.

    Parameters
    ----------
    name : str
        A key of `CODES`.
    limit : float
        Bound C of the predictions; 0 with ``grows``.
    grows : bool
        Whether the limit is the largest target so far instead of a number.
    knee : float
        Where the Huber loss turns from squares to lengths. For the squared loss a bound of the
        targets where the limit is none: 1 for labels, 0 for targets within the limit.

    Notes
    -----
    A learner adds the row sqrt(mu + eta_t) g_t to its curvature. mu is the largest number with::

        l(b) >= l(a) + l'(a) (b - a) + mu / 2 (l'(a) (b - a))^2    for |a|, |b| <= C

    that is known to hold: 1/(2 (C + max|y|)^2) for the squared loss, min(1/(8 C), exp(-C))/2
    for the logistic one, 0 for those with corners. eta_t is 1/t, or 1/sqrt(t) where mu is 0.
    """

    name: str
    limit: float = 1.0
    grows: bool = False
    knee: float = 1.0

    @property
    def code(self) -> int:
        """The number by which the compiled loops know it."""
        return CODES[self.name]

    def value(self, z: float, y: float) -> float:
        """Return the loss of predicting ``z``.

        >>> Loss("huber").value(3.0, 0.0)
        2.5
        """
        return float(online_kernels().loss_value(self.code, float(z), float(y), self.knee))

    def slope(self, z: float, y: float) -> float:
        """Return its derivative in ``z``, or a subgradient."""
        return float(online_kernels().loss_slope(self.code, float(z), float(y), self.knee))

    def weights(self, t: int, limit: float | None = None) -> tuple[float, float]:
        """Return mu and eta_t.

        >>> Loss("squared").weights(2)
        (0.125, 0.5)
        """
        bound = self.limit if limit is None else limit
        mu, eta = online_kernels().step_weights(self.code, t, bound, self.knee, self.grows)
        return float(mu), float(eta)
