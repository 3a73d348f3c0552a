"""What one-pass PCA and SVD share: the sketch they choose, and what they read from it."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.extmath import row_norms, svd_flip
from sklearn.utils.validation import check_is_fitted

from sksketch._typing import Array
from sksketch.arrays.namespace import cast, like, on_device, precision
from sksketch.arrays.random import stream
from sksketch.arrays.rows import dense_tiles, times
from sksketch.arrays.sparse import is_sparse
from sksketch.models.base import SketchEstimator
from sksketch.models.checks import host_rows
from sksketch.models.runner import is_dask, lazily
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
            # Directions of rounding size are not counted, or their number would be an accident.
            least = n_features * np.finfo(np.float64).eps * variances.max(initial=0.0)
            return max(int(np.count_nonzero(variances > least)), 1)
        if isinstance(k, float):
            certain = self.certificate_.captured_energy[: len(variances), 0]
            if len(certain) and certain.max() >= k:
                return int(np.argmax(certain >= k)) + 1
            # What was lost leaves it open, so an estimate has to do.
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
        total = summary.squared_norm * per_row
        values = self._estimates(summary.eigenvalues[:rank] + self._shift(summary.ridge)) * per_row
        k = self._n_kept(values, total, n_features)
        components = _completed(summary.components[: min(rank, k)], k)
        values = np.pad(values[:k], (0, k - len(values[:k])))
        _, components = svd_flip(None, components, u_based_decision=False)
        left = total - float(values[:k].sum())
        # As many directions as rows, or columns, as PCA counts them.
        others = min(n_rows, n_features) - k
        noise = max(left, 0.0) / others if others > 0 else 0.0
        ratios = values[:k] / total if total > 0 else np.zeros(k)
        return Spectrum(components, values[:k], ratios, noise)

    def _estimates(self, values: Array) -> Array:
        """Return eigenvalues within their certified intervals, and no more in all than there is.

        What the sketch lost is known only as a bound, so what is put back may be too much.
        """
        certificate, rank = self.certificate_, len(values)
        low, high = certificate.eigenvalues[:rank].T
        values = np.clip(values, low, high)
        if not rank:
            return values
        most = float(certificate.captured_energy[rank - 1, 1]) * certificate.squared_norm
        least, sums = float(low.sum()), float(values.sum())
        if sums > most:
            values = low + (values - low) * max((most - least) / (sums - least), 0.0)
        return np.asarray(values)

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
        """Variance of the rows along each component: an estimate in its certified interval."""
        return self._spectrum().variances

    @property
    def explained_variance_ratio_(self) -> Array:
        """The same as fractions of the total variance, which is known to rounding."""
        return self._spectrum().ratios

    @property
    def singular_values_(self) -> Array:
        """Norms of the rows' coordinates along each component."""
        spectrum = self._spectrum()
        degrees = max(self.sketch_.total_weight - self._centered, 1.0)
        return np.asarray(np.sqrt(spectrum.variances * degrees))

    @property
    def noise_variance_(self) -> float:
        """Average variance of the directions left out, of as many as rows or columns allow."""
        return self._spectrum().noise

    @property
    def target_met_(self) -> bool:
        """Whether the certified error is within ``tol``, and the variance asked for is certain.

        With a fraction as ``n_components`` this also says whether the components found
        certainly hold that fraction: the lower end of ``certificate_.captured_energy``.
        """
        certificate = self.certificate_
        met = self.tol is None or certificate.relative_error <= self.tol
        if isinstance(self.n_components, float):
            found = min(self.n_components_, len(certificate.captured_energy))
            certain = certificate.captured_energy[found - 1, 0] if found else 0.0
            met = met and bool(certain >= self.n_components)
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
        scores = scores_of(rows, self.components_, self._offset())
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
        return self._scores_and_rest(host_rows(X))[1]

    def _scores_and_rest(self, X: Any) -> tuple[Array, Array]:
        """Return scores in float64, and the squared distance of each row from its projection."""
        rows, V, offset = self._rows(X), self.components_, self._offset()
        if sp.issparse(rows):
            return _sparse_scores_and_rest(rows.astype(np.float64), V, offset)
        scores, rest = np.empty((len(rows), len(V))), np.empty(len(rows))
        start = 0
        for piece in dense_tiles(rows, np.dtype(np.float64)):
            part = slice(start, start + len(piece))
            # The mean first: differences of large squares would have no digits left.
            around = piece if offset is None else piece - offset
            scores[part] = around @ V.T
            outside = around - scores[part] @ V
            rest[part] = np.vecdot(outside, outside)
            start = part.stop
        return scores, rest

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def scores_of(rows: Any, V: Array, offset: Array | None) -> Any:
    """Return the coordinates of rows, wherever they are, along the rows of V.

    Dense rows are moved before they are multiplied: far from zero, what a product leaves of their
    differences is rounding.
    """
    if offset is None:
        return times(rows, cast(V, precision(rows)).T)
    if is_sparse(rows):
        scores = times(rows, V.T)
        return scores - like(offset @ V.T, scores, precision(scores))
    if on_device(rows):
        around = cast(cast(rows, np.float64) - like(offset, rows), precision(rows))
        return times(around, V.T)
    narrow = cast(V, precision(rows)).T
    scores = np.empty((len(rows), len(V)), precision(rows))
    start = 0
    for piece in dense_tiles(rows, precision(rows)):
        around = (piece - offset).astype(precision(rows), copy=False)
        scores[start : start + len(piece)] = around @ narrow
        start += len(piece)
    return scores


def _sparse_scores_and_rest(rows: Any, V: Array, offset: Array | None) -> tuple[Array, Array]:
    """Return both for sparse rows, which can not be moved."""
    scores, norms = np.asarray(rows @ V.T), row_norms(rows, squared=True)
    if offset is not None:
        norms = norms - 2 * np.asarray(rows @ offset).ravel() + offset @ offset
        scores = scores - offset @ V.T
    return scores, np.maximum(norms - np.vecdot(scores, scores), 0.0)


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
