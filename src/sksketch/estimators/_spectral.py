"""What one-pass PCA and SVD share: the sketch they choose, and what they read from it."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.extmath import row_norms, svd_flip
from sklearn.utils.validation import check_is_fitted

from sksketch._typing import Array
from sksketch.arrays.namespace import cast, like, on_device, precision
from sksketch.arrays.random import stream
from sksketch.arrays.rows import times
from sksketch.drive.dask import is_dask, lazily
from sksketch.estimators._base import SketchEstimator
from sksketch.estimators._checks import host_rows
from sksketch.sketches import Centered, ExactCovariance, FrequentDirections, Sketch, make_sketch

# With so few columns the exact covariance is as fast as any sketch.
FEW_COLUMNS = 512
DEFAULT_SKETCH_SIZE = 64

# Sketches that can meet a tolerance: those that grow, and the one without an error.
GROWING = ("fd", "rfd", "cfd", "pfd", "isvd", "exact")


class Spectrum(NamedTuple):
    """The leading components, what they explain, and what is left."""

    components: Array
    variances: Array
    ratios: Array
    noise: float


class StreamingDecomposition(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SketchEstimator):
    """All that PCA and SVD share; they differ in the mean."""

    _centered: bool

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        sketch: str | Sketch = "auto",
        sketch_size: int | None = None,
        tol: float | None = None,
        max_sketch_size: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.tol = tol
        self.max_sketch_size = max_sketch_size

    def _new_sketch(self, n_features: int) -> Sketch:
        self._check_params()
        if isinstance(self.sketch, Sketch):
            inner = self.sketch.fresh()
            if isinstance(inner, Centered):
                inner = inner.sketch
        else:
            inner = self._choose(n_features)
        return Centered(inner) if self._centered else inner

    def _choose(self, n_features: int) -> Sketch:
        size = self._sketch_size(n_features)
        options: dict[str, Any] = {}
        if self.tol is not None:
            limit = self.max_sketch_size or min(n_features, max(8 * size, int(2 / self.tol)))
            options = {"tol": self.tol, "max_sketch_size": max(limit, size)}
        if self.sketch != "auto":
            if options and self.sketch not in GROWING:
                raise ValueError(
                    f"tol needs a sketch that grows, got sketch={self.sketch!r}; "
                    f"drop tol or choose from {', '.join(map(repr, GROWING))}"
                )
            return make_sketch(
                str(self.sketch), size, **(options if self.sketch != "exact" else {})
            )
        if n_features <= FEW_COLUMNS:
            return ExactCovariance()
        # Leading directions are what counts here, and this rule follows them most closely.
        return FrequentDirections(size, rule="half", **options)

    def _sketch_size(self, n_features: int) -> int:
        if self.sketch_size is not None:
            return self.sketch_size
        k = self.n_components
        if k is None or isinstance(k, float):
            # A fraction of the variance may need any number of components.
            wanted = DEFAULT_SKETCH_SIZE if k is None else 4 * DEFAULT_SKETCH_SIZE
        else:
            # A few rows more than components: the last of them would be poorly known.
            wanted = max(k + 8, min(2 * k, 32))
        return min(wanted, n_features)

    def _check_params(self) -> None:
        k: Any = self.n_components
        size = self.sketch_size
        whole = isinstance(k, Integral) and not isinstance(k, bool)
        if not (k is None or (whole and k >= 1) or (isinstance(k, float) and 0 < k < 1)):
            raise ValueError(
                "n_components must be an integer from 1 on, a fraction of variance between 0 "
                f"and 1, or None, got {k!r}"
            )
        if whole and size is not None and size < k:
            raise ValueError(
                f"sketch_size={size} keeps fewer rows than n_components={k}; enlarge it"
            )
        if self.tol is not None and not self.tol > 0:
            raise ValueError(f"tol must be positive, got {self.tol!r}")

    def _n_kept(self, variances: Array, total: float, n_features: int) -> int:
        """Return how many components to have: as asked for, at least one, at most all columns."""
        k = self.n_components
        if k is None:
            return max(len(variances), 1)
        if isinstance(k, float):
            captured = np.cumsum(variances) / total if total > 0 else np.ones(1)
            return max(min(int(np.searchsorted(captured, k)) + 1, len(variances)), 1)
        return min(int(k), n_features)

    def _spectrum(self) -> Spectrum:
        spectrum: Spectrum = self._once("spectrum", self._solve)
        return spectrum

    def _solve(self) -> Spectrum:
        summary = self.sketch_.summary()
        n_rows, n_features = self.sketch_.n_rows_seen, summary.n_features
        # Centering takes one dimension, and rows beyond the data's rank carry only the ridge.
        rank = min(summary.rank, max(n_rows - self._centered, 1), n_features)
        per_row = 1.0 / max(self.sketch_.total_weight - self._centered, 1.0)
        # What the sketch lost is known only as a bound, so an estimate may not exceed the total.
        total = summary.squared_norm * per_row
        values = (summary.eigenvalues[:rank] + self._shift(summary.ridge)) * per_row
        values *= min(1.0, total / values.sum()) if values.sum() > 0 else 1.0
        k = self._n_kept(values, total, n_features)
        components = _completed(summary.components[: min(rank, k)], k)
        values = np.pad(values[:k], (0, k - len(values[:k])))
        _, components = svd_flip(None, components, u_based_decision=False)
        left = total - float(values[:k].sum())
        noise = max(left, 0.0) / (n_features - k) if k < n_features else 0.0
        ratios = values[:k] / total if total > 0 else np.zeros(k)
        dtype = components.dtype
        return Spectrum(components, values[:k].astype(dtype), ratios.astype(dtype), noise)

    def _shift(self, ridge: float) -> float:
        """Return the part of the summary's ridge that stands for lost energy."""
        inner = self.sketch_.sketch if isinstance(self.sketch_, Centered) else self.sketch_
        return float(ridge - getattr(inner, "initial_ridge", 0.0))

    @property
    def components_(self) -> Array:
        """Principal directions as rows, most important first, with deterministic signs."""
        return self._spectrum().components

    @property
    def n_components_(self) -> int:
        """Number of components: as asked for, and never more than columns."""
        return len(self._spectrum().components)

    @property
    def explained_variance_(self) -> Array:
        """Variance of the rows along each component."""
        return self._spectrum().variances

    @property
    def explained_variance_ratio_(self) -> Array:
        """The same as fractions of the total variance, which is known exactly."""
        return self._spectrum().ratios

    @property
    def singular_values_(self) -> Array:
        """Norms of the rows' coordinates along each component."""
        spectrum = self._spectrum()
        degrees = max(self.sketch_.total_weight - self._centered, 1.0)
        values: Array = np.sqrt(spectrum.variances.astype(np.float64) * degrees)
        return values.astype(spectrum.variances.dtype)

    @property
    def noise_variance_(self) -> float:
        """Average variance of the directions left out."""
        return self._spectrum().noise

    @property
    def target_met_(self) -> bool:
        """Whether the certified error is within ``tol``, and the variance asked for is reached.

        With a fraction as ``n_components`` this also says whether the components found
        reach that fraction.
        """
        met = self.tol is None or self.certificate_.relative_error <= self.tol
        if isinstance(self.n_components, float):
            met = met and float(self.explained_variance_ratio_.sum()) >= self.n_components
        return bool(met)

    def _offset(self) -> Array | None:
        """Return the mean to remove, if any."""
        return None

    def _scales(self) -> Array | None:
        """Return factors for the scores, if they are to be scaled."""
        return None

    def transform(self, X: Any) -> Any:
        """Return the coordinates of the rows along the components.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows; sparse ones are never made dense.

        Returns
        -------
        array of shape (n_samples, n_components)
            For dask's rows one of dask, which is computed when it is needed.
        """
        if is_dask(X):
            return lazily(self, "transform", X)
        rows = self._rows(X)
        V = self.components_
        scores = times(rows, V.T)
        if (offset := self._offset()) is not None:
            scores = scores - like(offset @ V.T, scores, precision(scores))
        if (scales := self._scales()) is not None:
            scores = scores * like(scales, scores, precision(scores))
        return cast(scores, precision(rows))

    def inverse_transform(self, X: Any) -> Any:
        """Return rows with the given coordinates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Coordinates, as `transform` returns them.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self, "sketch_")
        scores = X if on_device(X) else np.asarray(X)
        if scores.ndim != 2 or scores.shape[1] != self.n_components_:
            raise ValueError(
                f"got coordinates of shape {scores.shape}, expected (n, {self.n_components_}); "
                "pass what transform returned"
            )
        if (scales := self._scales()) is not None:
            scores = scores / like(scales, scores)
        rows = times(scores, self.components_)
        offset = self._offset()
        return rows if offset is None else rows + like(offset, rows)

    def reconstruction_error(self, X: Any) -> Array:
        """Return the squared distance of each row from its projection on the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        rows = self._rows(host_rows(X))
        V = self.components_.astype(np.float64)
        offset = self._offset()
        norms = row_norms(rows, squared=True).astype(np.float64)
        scores = np.asarray(rows @ V.T)
        if offset is not None:
            norms = norms - 2 * np.asarray(rows @ offset).ravel() + offset @ offset
            scores = scores - offset @ V.T
        return np.asarray(np.maximum(norms - np.vecdot(scores, scores), 0.0))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _completed(components: Array, k: int) -> Array:
    """Return k orthonormal rows: those given, then directions in which nothing varies.

    Rows of low rank, or fewer of them than components, leave directions open; a fixed choice
    keeps the width of `transform` the same from the first batch on.
    """
    missing = k - len(components)
    if missing <= 0:
        return np.array(components[:k])
    fill = stream(0, "completion").standard_normal((missing, components.shape[1]))
    for _ in range(2):
        fill -= (fill @ components.T) @ components
    Q = np.linalg.qr(fill.T)[0]
    return np.concatenate([components, Q.T.astype(components.dtype)])
