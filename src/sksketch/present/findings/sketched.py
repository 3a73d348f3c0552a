"""Findings of models and sketches, as the numbers that pictures, tables and reports show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sksketch._typing import Array
from sksketch.decomposition import StreamingPCA, StreamingSVD
from sksketch.models.base import Estimator
from sksketch.models.standardized import keeps_gram
from sksketch.present.findings.progressive import ONLINE, largest_columns
from sksketch.ridge import StreamingRidge, StreamingRidgeCV
from sksketch.ridge.exact import RidgeReader
from sksketch.run.loading import ESTIMATORS
from sksketch.sketches import Centered, Certificate, Regression, Sketch, SlidingWindow

# A path goes this many factors of ten to both sides of the penalty, in PATH_STEPS steps.
PATH_DECADES = 3
PATH_STEPS = 13


@dataclass(frozen=True, eq=False)
class Estimates:
    """Numbers and the intervals that certainly hold the true ones.

    ``intervals`` has shape (n, 2); it is None where nothing is certified.
    """

    values: Array
    intervals: Array | None


@dataclass(frozen=True, eq=False)
class CoefficientPath:
    """Coefficients of one target for many penalties, and how far each can be from the truth.

    ``coef`` has shape (n_alphas, n_features). No coefficient at ``alphas[i]`` is off by more
    than ``errors[i]``, which is ``inf`` where nothing is certified.
    """

    alphas: Array
    coef: Array
    errors: Array


class Findings:
    """The results of a fitted estimator or of a sketch, computed at the first read.

    Parameters
    ----------
    model : estimator or Sketch
        With at least one row seen.
    names : sequence of str, optional
        Names of the columns; by default those that the estimator has met, or their numbers.

    Examples
    --------
    >>> from sksketch import FrequentDirections
    >>> sketch = FrequentDirections(2, solver="exact").update(np.diag([4.0, 3.0, 2.0, 1.0]))
    >>> found = Findings(sketch, names=["a", "b", "c", "d"])
    >>> found.spectrum.values.round(2), found.spectrum.intervals.round(2).tolist()
    (array([14.5,  7.5]), [[13.0, 16.0], [6.0, 9.0]])
    >>> found.largest(found.components[0], 1)
    [('a', 1.0)]
    """

    def __init__(self, model: object, names: Sequence[str] | None = None) -> None:
        kinds = [kind for kind in ESTIMATORS.values() if kind not in ONLINE]
        known: tuple[Any, ...] = (Sketch, *kinds)
        if not isinstance(model, known):
            raise TypeError(
                f"expected a sketch or one of {', '.join(kind.__name__ for kind in kinds)}, got "
                f"{model!r:.80}"
            )
        if not isinstance(model, Sketch) and not hasattr(model, "sketch_"):
            raise ValueError(f"this {type(model).__name__} is not fitted yet; call fit first")
        self.model = model
        self.sketch: Sketch = model if isinstance(model, Sketch) else model.sketch_
        if isinstance(model, SlidingWindow) and model.n_features is not None:
            self.sketch = model.read()
        if self.sketch.n_features is None:
            raise ValueError(f"this {type(model).__name__} has seen no rows yet; update it first")
        self.n_features: int = self.sketch.n_features
        self._names = getattr(model, "feature_names_in_", None) if names is None else names
        if self._names is not None and len(self._names) != self.n_features:
            raise ValueError(
                f"got {len(self._names)} names for {self.n_features} columns; name each of them"
            )

    def name(self, column: int) -> str:
        """Return the name of a column, or its number where it has none."""
        return f"column {column}" if self._names is None else str(self._names[column])

    def largest(self, values: Array, n: int) -> list[tuple[str, float]]:
        """Return names and values of the columns with the largest values, whatever their sign."""
        return [(self.name(i), float(values[i])) for i in largest_columns(values, n)]

    # Spectrum

    @property
    def rows(self) -> Sketch:
        """The sketch of the rows alone, without what it remembers of targets."""
        return self.sketch.sketch if isinstance(self.sketch, Regression) else self.sketch

    @property
    def is_centered(self) -> bool:
        """Whether means were removed."""
        return isinstance(self.rows, Centered)

    @cached_property
    def decomposition(self) -> Any:
        """The PCA or SVD of the rows: the model itself, or what is read out of its sketch."""
        if isinstance(self.model, StreamingPCA | StreamingSVD):
            return self.model
        kind: Any = StreamingPCA if self.is_centered else StreamingSVD
        standardize = self.is_standardized and keeps_gram(self.rows) and self.is_centered
        return kind(standardize=standardize).reading(self.rows)

    @property
    def is_standardized(self) -> bool:
        """Whether the model has columns in units of their own, which everything is shown in."""
        return bool(getattr(self.model, "standardize", False))

    @property
    def certificate(self) -> Certificate:
        """The certificate about the rows."""
        certificate: Certificate = self.decomposition.certificate_
        return certificate

    @property
    def is_certified(self) -> bool:
        """Whether any bound is."""
        return bool(np.isfinite(self.certificate.spectral_error[1]))

    @property
    def n_components(self) -> int:
        """Components of which something is known."""
        return min(int(self.decomposition.n_components_), len(self.certificate.eigenvalues))

    @property
    def components(self) -> Array:
        """Directions, as rows, most important first."""
        found = self.decomposition
        return np.asarray(found.components_[: self.n_components] * found.scale_)

    @property
    def shows_variances(self) -> bool:
        """Whether the spectrum is per row, as PCA and SVD have it, and not that of A'A."""
        return self.decomposition is self.model

    @property
    def quantity(self) -> str:
        """The name of the quantity in the spectrum."""
        if not self.shows_variances:
            return "eigenvalue"
        return "variance" if self.is_centered else "mean square"

    @cached_property
    def spectrum(self) -> Estimates:
        """Variances of a decomposition, or eigenvalues of A'A of anything else."""
        scale = 1.0
        values = np.asarray(self.decomposition.singular_values_, dtype=np.float64) ** 2
        if self.shows_variances:
            scale = 1.0 / max(self.rows.total_weight - self.is_centered, 1.0)
        return self._estimates(values * scale, self.certificate.eigenvalues * scale)

    @cached_property
    def shares(self) -> Estimates:
        """Fraction of the whole along each component."""
        total = self.certificate.squared_norm or 1.0
        ratios = np.asarray(self.decomposition.explained_variance_ratio_, dtype=np.float64)
        return self._estimates(ratios, np.minimum(self.certificate.eigenvalues / total, 1.0))

    @cached_property
    def captured(self) -> Estimates:
        """Fraction of the whole in the span of the first 1, 2, ... components."""
        return self._estimates(np.cumsum(self.shares.values), self.certificate.captured_energy)

    def _estimates(self, values: Array, intervals: Array) -> Estimates:
        n = self.n_components
        return Estimates(values[:n], intervals[:n] if self.is_certified else None)

    # Regression

    @property
    def is_regression(self) -> bool:
        """Whether the model predicts."""
        return isinstance(self.model, StreamingRidge | StreamingRidgeCV)

    @property
    def alpha(self) -> float:
        """The penalty of a regression, the mean of several."""
        return float(np.mean(self._penalties()))

    def _penalties(self) -> Array:
        model = self._regression()
        chosen = model.alpha_ if isinstance(model, StreamingRidgeCV) else model.alpha
        return np.atleast_1d(np.asarray(chosen, dtype=np.float64))

    @property
    def coefficients(self) -> Array:
        """Coefficients of a regression, of shape (n_targets, n_features), of standard columns."""
        model = self._regression()
        return np.asarray(np.atleast_2d(model.coef_) * model.scale_)

    @property
    def is_refined(self) -> bool:
        """Whether further passes have improved on the sketch's coefficients."""
        model = self._regression()
        penalties = self._penalties()
        found = model.path(penalties).coef
        each = np.arange(len(penalties))
        return not np.array_equal(found[0] if len(each) == 1 else found[each, each], model.coef_)

    def default_alphas(self) -> Array:
        """Return penalties around that of the model, or around those it chose from."""
        low = high = self.alpha
        if isinstance(self.model, StreamingRidgeCV):
            tried = np.atleast_1d(np.asarray(self.model.alphas, dtype=np.float64))
            low, high = tried[tried > 0].min(initial=np.inf), tried.max()
            if high > 0:
                return np.geomspace(low / 10, high * 10, PATH_STEPS)
        if high <= 0:
            # A zero penalty has no multiples; a mean eigenvalue is the scale that one works on.
            low = high = self.certificate.squared_norm / self.n_features or 1.0
        factor = 10.0**PATH_DECADES
        return np.geomspace(low / factor, high * factor, PATH_STEPS)

    def path(self, alphas: npt.ArrayLike | None = None, *, target: int = 0) -> CoefficientPath:
        """Return the coefficients of one target for many penalties, with their error."""
        model = self._regression()
        found = model.path(self.default_alphas() if alphas is None else alphas)
        coef = found.coef if found.coef.ndim == 2 else found.coef[:, target]
        return CoefficientPath(found.alphas, coef * model.scale_, self._errors(found, target))

    def _errors(self, found: Estimator, target: int) -> Array:
        """Return bounds on the length of the error; those of a path are relative."""
        bounds = np.asarray(found.error_bounds, dtype=np.float64)
        if not (np.isfinite(bounds) & (bounds > 0)).any():
            return bounds
        model = self._regression()
        # Rows that were divided before they were sketched are in their units already.
        in_units = self.is_standardized and keeps_gram(model.sketch_)
        units = model.scale_ if in_units else None
        positive = isinstance(model, StreamingRidge) and model.positive
        reader = RidgeReader(model.sketch_, units, positive=positive)
        solutions = (reader.solve(float(alpha)) for alpha in found.alphas)
        return np.array([solution.absolute_bounds[target] for solution in solutions])

    def _regression(self) -> Any:
        if not self.is_regression:
            raise TypeError(
                "expected a fitted StreamingRidge or StreamingRidgeCV, got a "
                f"{type(self.model).__name__}, which has no coefficients"
            )
        return self.model
