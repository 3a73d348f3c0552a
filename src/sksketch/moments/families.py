"""Families of generalized linear models: means, variances, deviances and likelihoods of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from sksketch._typing import Array

# Means keep this distance from where a family ends.
LEAST = 1e-12
# Linear predictors of a logarithm beyond this say that something is wrong.
LARGEST_LOG = 300.0


class Link(NamedTuple):
    """The predictor as a function of the mean: its inverse, and its derivative by the mean."""

    of_mean: Callable[[Array], Array]
    mean: Callable[[Array], Array]
    slope: Callable[[Array], Array]


LINKS = {
    "identity": Link(lambda m: m, lambda e: e, np.ones_like),
    "logit": Link(special.logit, special.expit, lambda m: 1.0 / (m * (1.0 - m))),
    "log": Link(np.log, lambda e: np.exp(np.clip(e, -LARGEST_LOG, LARGEST_LOG)), lambda m: 1.0 / m),
    "inverse": Link(lambda m: 1.0 / m, lambda e: 1.0 / np.maximum(e, LEAST), lambda m: -1.0 / m**2),
}


@dataclass(frozen=True)
class Family:
    """How targets vary around their mean.

    Parameters
    ----------
    name, link : str
        Its name, and that of its usual link.
    words : str
        Which targets it takes.
    takes : callable
        Tells for each target whether the family has it.
    inside : callable
        Brings means to where the family has some.
    start : callable
        Means to begin with, from targets.
    variance : callable
        Variance at a mean, but for the dispersion.
    deviance : callable
        Deviance of targets from means.
    likelihood : callable
        Two parts of the log likelihood, of targets and means; see `log_likelihood`.
    has_dispersion : bool
        Whether the dispersion is estimated.

    Examples
    --------
    >>> FAMILIES["poisson"].deviance(np.array([1.0, 0.0]), np.array([1.0, 2.0]))
    array([0., 4.])
    """

    name: str
    link: str
    words: str
    takes: Callable[[Array], Array]
    inside: Callable[[Array], Array]
    start: Callable[[Array], Array]
    variance: Callable[[Array], Array]
    deviance: Callable[[Array, Array], Array]
    likelihood: Callable[[Array, Array], tuple[Array, Array]]
    has_dispersion: bool

    def check_numbers(self, targets: object) -> None:
        """Refuse targets that are text."""
        values = np.asarray(targets)
        words = values.ravel() if values.dtype.kind in "OSUT" else ()
        text = next((str(one) for one in words if isinstance(one, str)), None)
        if text is not None:
            raise ValueError(
                f"family={self.name!r} takes {self.words} as targets, got the text {text!r}; "
                f"recode them, as in y == {text!r}"
            )

    def checked(self, given: Array) -> Array:
        """Return targets as float64, refusing those that the family does not have."""
        targets = np.asarray(given, dtype=np.float64)
        wrong = ~self.takes(targets)
        if wrong.any():
            raise ValueError(
                f"family={self.name!r} takes {self.words} as targets, got {targets[wrong][0]:g}; "
                "recode them, or choose another family"
            )
        return targets


def _nothing(y: Array, m: Array) -> tuple[Array, Array]:
    return np.zeros_like(y), np.zeros_like(y)


def _positive(m: Array) -> Array:
    return np.asarray(np.maximum(m, LEAST))


FAMILIES = {
    "gaussian": Family(
        "gaussian",
        "identity",
        "any numbers",
        lambda y: np.ones(y.shape, dtype=bool),
        lambda m: m,
        lambda y: y,
        np.ones_like,
        lambda y, m: (y - m) ** 2,
        _nothing,
        True,
    ),
    "binomial": Family(
        "binomial",
        "logit",
        "0 and 1, or shares between them",
        lambda y: (y >= 0.0) & (y <= 1.0),
        lambda m: np.clip(m, LEAST, 1.0 - LEAST),
        lambda y: 0.5 * (y + 0.5),
        lambda m: m * (1.0 - m),
        lambda y, m: 2.0 * (special.rel_entr(y, m) + special.rel_entr(1.0 - y, 1.0 - m)),
        lambda y, m: (special.xlogy(y, m) + special.xlog1py(1.0 - y, -m), np.zeros_like(y)),
        False,
    ),
    "poisson": Family(
        "poisson",
        "log",
        "numbers from 0 on",
        lambda y: y >= 0.0,
        _positive,
        lambda y: np.maximum(y, 0.1),
        lambda m: m,
        lambda y, m: 2.0 * (special.rel_entr(y, m) - y + m),
        lambda y, m: (special.xlogy(y, m) - m - special.gammaln(y + 1.0), np.zeros_like(y)),
        False,
    ),
    "gamma": Family(
        "gamma",
        "inverse",
        "positive numbers",
        lambda y: y > 0.0,
        _positive,
        lambda y: y,
        lambda m: m**2,
        lambda y, m: 2.0 * ((y - m) / m - np.log(y / m)),
        lambda y, m: (y / m + np.log(m), np.log(y)),
        True,
    ),
}


def log_likelihood(family: str, parts: tuple[float, float], weight: float, scale: float) -> float:
    """Return the log likelihood from the sums of its parts.

    Parameters
    ----------
    family : str
        Name of the family.
    parts : (float, float)
        Weighted sums of what `Family.likelihood` gives; of gaussian targets the deviance first.
    weight : float
        Sum of the weights.
    scale : float
        Dispersion.

    Returns
    -------
    float
    """
    if family == "gaussian":
        with np.errstate(divide="ignore"):
            return float(-0.5 * weight * (np.log(2.0 * np.pi * parts[0] / weight) + 1.0))
    if family != "gamma":
        return parts[0]
    shape = 1.0 / scale
    constant = shape * np.log(shape) - special.gammaln(shape)
    return float(-shape * parts[0] + (shape - 1.0) * parts[1] + weight * constant)
