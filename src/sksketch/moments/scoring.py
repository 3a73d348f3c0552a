"""Iteratively reweighted least squares: each pass is one regression, and passes add up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.linalg import eigh_descending
from sksketch.arrays.rounding import unit_roundoff
from sksketch.moments.families import FAMILIES, LINKS
from sksketch.sketches import ExactCovariance, Regression
from sksketch.sketches.wrappers.exact_products import ExactProducts
from sksketch.state.persistence import State

# Sums of a pass: weights, targets, deviance, squares of Pearson's residuals, deviance of the mean
# alone, and two parts of the likelihood.
SUMS = ("weight", "target", "deviance", "pearson", "null_deviance", "first", "second")


@dataclass(frozen=True, eq=False)
class Model:
    """The start of a pass, never changed.

    Parameters
    ----------
    family, link : str
        Names.
    coef : array of shape (n_features,) or None
        Coefficients; None in the first pass.
    intercept : float
        Intercept.
    mean_target : float
        Mean of the targets, as far as it is known.
    """

    family: str
    link: str
    coef: Array | None = None
    intercept: float = 0.0
    mean_target: float = np.nan

    def working(self, rows: Any, y: Array) -> tuple[Array, Array, Array, float]:
        """Return weights, working targets, terms of the sums, and the largest predictor."""
        family, link = FAMILIES[self.family], LINKS[self.link]
        if self.coef is None:
            mean = family.inside(family.start(y))
            predictor = link.of_mean(mean)
        else:
            predictor = linear(rows, self.coef) + self.intercept
            mean = family.inside(link.mean(predictor))
        slope, variance = link.slope(mean), family.variance(mean)
        weights = 1.0 / (slope**2 * variance)
        targets = predictor + (y - mean) * slope
        base = mean if np.isnan(self.mean_target) else np.full_like(y, self.mean_target)
        null = family.deviance(y, family.inside(base))
        squares = (y - mean) ** 2 / variance
        terms = [y, family.deviance(y, mean), squares, null, *family.likelihood(y, mean)]
        return weights, targets, np.stack(terms, axis=1), float(np.abs(predictor).max(initial=0.0))


def linear(rows: Any, coef: Array) -> Array:
    """Return products with coefficients; that of a row does not depend on other rows."""
    if sp.issparse(rows):
        return np.asarray(rows @ coef)
    return np.asarray(np.vecdot(np.ascontiguousarray(rows, dtype=np.float64), coef))


class PassSums:
    """The regression of one pass, and its sums; parts of the rows merge.

    Parameters
    ----------
    intercept : bool
        Whether the model has one.
    """

    kind = "glm-pass"

    def __init__(self, intercept: bool) -> None:
        self.regression = Regression(ExactCovariance(), centered=intercept)
        self._sums = ExactProducts(len(SUMS))
        self.largest = 0.0

    @property
    def n_rows(self) -> int:
        """Rows of the pass so far."""
        return self.regression.n_rows_seen

    def add(self, model: Model, rows: Any, y: Array, weights: Array | None) -> Self:
        """Add rows with their targets and weights."""
        counts = np.ones(len(y)) if weights is None else weights
        working, targets, terms, largest = model.working(rows, y)
        terms = np.hstack([counts[:, None], counts[:, None] * terms])
        self.regression.update(rows, counts * working, targets=targets)
        self._sums.update(terms, np.zeros((len(y), 0)))
        self.largest = max(self.largest, largest)
        return self

    def copy(self) -> PassSums:
        """Return an independent copy."""
        return type(self).from_state(self.state())

    def merge(self, other: PassSums) -> None:
        """Add the sums of other rows."""
        self.regression.merge(other.regression)
        self._sums.merge(other._sums)
        self.largest = max(self.largest, other.largest)

    def totals(self) -> dict[str, float]:
        """Return the sums by name."""
        found, place = self._sums.whole()
        values = [_float(found[0][i + 1], place) for i in range(len(SUMS))]
        return dict(zip(SUMS, values, strict=True))

    def state(self) -> State:
        """Return all that it is, as plain data."""
        meta = {"intercept": self.regression.centered, "largest": self.largest}
        state = State(self.kind, 1, meta, {}).with_inner("regression", self.regression.state())
        return state.with_inner("sums", self._sums.state())

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build what `state` was taken from."""
        state.require(1)
        meta: Any = state.meta
        made = cls(bool(meta["intercept"]))
        made.regression = Regression.from_state(state.inner("regression"))
        made._sums = ExactProducts.from_state(state.inner("sums"))
        made.largest = float(meta["largest"])
        return made


def _float(whole: int, place: int) -> float:
    """Return an integer times a power of two."""
    return float(whole << place) if place >= 0 else whole / (1 << -place)


@dataclass(frozen=True, eq=False)
class Step:
    """The end of a pass: new coefficients, and what is known at those it started from.

    Parameters
    ----------
    coef : array of shape (n_features,)
        New coefficients.
    intercept : float
        New intercept.
    spread : array of shape (n_coef, n_coef)
        Covariance of the coefficients without the dispersion, the intercept first.
    decrement : float
        How much less the deviance can become, by the quadratic model.
    n_free : float
        Trace of the hat matrix, without the intercept.
    rank : int
        Directions that the rows determine, the intercept included.
    """

    coef: Array
    intercept: float
    spread: Array
    decrement: float
    n_free: float
    rank: int


def step_of(sums: PassSums, model: Model, alpha: float) -> Step:
    """Return the solution of the regression of a pass.

    Columns are measured by their lengths there; what is linear in others gets the shortest
    coefficients in these units.
    """
    regression = sums.regression
    gram, moments = regression._exact_gram(), regression.moments()
    assert gram is not None
    first, d = int(regression.centered), len(gram.matrix)
    lengths = np.sqrt(np.maximum(gram.matrix.diagonal(), 0.0) + alpha)
    units = np.where(lengths > 0.0, lengths, 1.0)
    C = gram.matrix / units / units[:, None]
    penalties = alpha / units**2
    values, V = eigh_descending(C + np.diag(penalties))
    kept = values > 64.0 * d * unit_roundoff() * max(float(values[0]), 0.0)
    inverse = (V[:, kept] / values[kept]) @ V[:, kept].T
    solution = inverse @ (moments.cross[:, 0] / units)
    # Once more, for what rounding did.
    rest = moments.cross[:, 0] / units - (C @ solution + penalties * solution)
    solution = solution + inverse @ rest
    inner = inverse @ C @ inverse
    coef = solution / units
    back = np.zeros((first + d, first + d))
    back[first:, first:] = inner / units / units[:, None]
    intercept = 0.0
    if first:
        intercept = float(moments.target_mean[0] - moments.mean @ coef)
        along = back[1:, 1:] @ moments.mean
        back[0, 1:] = back[1:, 0] = -along
        back[0, 0] = 1.0 / moments.weight + float(moments.mean @ along)
    decrement = np.inf
    if model.coef is not None:
        moved = coef - model.coef
        shift = intercept - model.intercept + float(moments.mean @ moved) if first else 0.0
        scaled = moved * units
        decrement = float(scaled @ (C @ scaled + penalties * scaled)) + moments.weight * shift**2
    n_free = float(np.vdot(inverse, C))
    return Step(coef, intercept, back, decrement, n_free, first + int(kept.sum()))


def halfway(model: Model, start: Model) -> Model:
    """Return the model in the middle of two."""
    assert model.coef is not None
    assert start.coef is not None
    middle = 0.5 * (model.coef + start.coef)
    return replace(model, coef=middle, intercept=0.5 * (model.intercept + start.intercept))
