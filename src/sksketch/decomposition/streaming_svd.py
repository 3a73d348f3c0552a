"""One-pass truncated SVD of rows that do not fit in memory."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from sksketch._typing import Array, OneRow, RowsLike
from sksketch.arrays.namespace import cast, like, on_device, precision
from sksketch.arrays.rows import times
from sksketch.decomposition.scores import scores_and_rest, scores_of
from sksketch.decomposition.spectrum import Spectrum, is_fraction, read_spectrum
from sksketch.models import forgetting, standardized
from sksketch.models.checks import host_rows, learn_one, one_row
from sksketch.models.constraints import (
    FLAG,
    NOTHING,
    SKETCH,
    SKETCH_KEY,
    Constraints,
    number,
    whole,
)
from sksketch.models.runner import lazy
from sksketch.models.scikit_learn import preserving_precision
from sksketch.models.sketched import SketchEstimator
from sksketch.sketches import Centered, ExactCovariance, FrequentDirections, Sketch, make_sketch
from sksketch.sketches.planning import exact_or_sketch

DEFAULT_SKETCH_SIZE = 64

# Sketches that can meet a tolerance: those that grow, and the one without an error.
GROWING = ("fd", "rfd", "cfd", "pfd", "isvd", "exact")


class StreamingSVD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SketchEstimator):
    """Truncated SVD in one pass, without centering, with an error bound.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components, a fraction of the energy to explain (below 1), or None for as
        many as the sketch keeps.
    sketch : {"auto", "fd", "rfd", "cfd", "pfd", "isvd", "exact"} or Sketch, default="auto"
        What remembers the rows. "auto" accumulates the exact Gram matrix where that is cheap
        and otherwise takes robust Frequent Directions with ``rule="half"``; `plan_` says which.
    sketch_size : int, default=None
        Rows the sketch keeps; by default a few more than ``n_components``.
    tol : float, default=None
        Bound on the spectral error, relative to the squared norm, that the sketch grows to meet.
    max_sketch_size : int, default=None
        Limit for ``tol``.
    standardize : bool, default=False
        Whether columns are divided by their standard deviations, so that units do not matter.
    window : int, str or timedelta, default=None
        Learn from the last rows alone: that number of them, or those of a length of time such as
        "7d", for which `partial_fit` takes their ``times``. See `SlidingWindow`.
    half_life : float, default=None
        Forget by and by: a row counts half after that number of others.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        Right singular vectors as rows, most important first, with deterministic signs. With
        ``standardize`` they are for columns in the user's units, and ``components_ * scale_`` are
        the orthonormal ones of columns in standard units.
    n_components_ : int
        Number of components: as asked for, and never more than columns.
    singular_values_ : array of shape (n_components_,)
        Norms of the rows' coordinates along each component.
    explained_variance_ : array of shape (n_components_,)
        Mean squared coordinate along each component.
    explained_variance_ratio_ : array of shape (n_components_,)
        The same as fractions of the whole.
    noise_variance_ : float
        Average of the same over the directions left out.
    scale_ : array of shape (n_features,)
        Standard deviation of each column, one where it never changes; ones without
        ``standardize``.
    certificate_ : Certificate
        What is certain about the Gram matrix of the rows, with its error bounds. With
        ``standardize`` it is about the rows divided by exactly ``scale_``.
    target_met_ : bool
        Whether the certified error is within ``tol``, and the energy asked for is certain.
    plan_ : str
        One sentence: how the rows are remembered, why, and in how much memory.
    sketch_ : Sketch
        What remembers the rows.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the rows have names.

    See Also
    --------
    StreamingPCA : The same of centered rows.
    FrequentDirections : The sketch by itself.
    sklearn.decomposition.TruncatedSVD : For rows that fit in memory.

    Notes
    -----
    The rows are remembered by Frequent Directions [1]_, in its robust form [2]_ by default.
    Nothing is solved until an attribute is read, with the parameters as they are then.

    With ``standardize`` columns are divided by their standard deviations and not centered, as by
    scikit-learn's ``StandardScaler(with_mean=False)``. All but ``components_`` is then about rows
    in these units, `reconstruction_error` included. Units are those of all rows where the Gram
    matrix is kept, in `fit`, and in `fit_stream` over rows that can be read twice; otherwise those
    of the first 1,000 rows, and they stay. `plan_` says which.

    References
    ----------
    .. [1] Ghashami, M., Liberty, E., Phillips, J. M. and Woodruff, D. P. (2016). "Frequent
       Directions: Simple and Deterministic Matrix Sketching". SIAM Journal on Computing 45(5).
       doi:10.1137/15M1009718
    .. [2] Luo, L., Chen, C., Zhang, Z., Li, W.-J. and Zhang, T. (2019). "Robust Frequent
       Directions with Application in Online Learning". Journal of Machine Learning Research
       20(45).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.diag([3.0, 2.0, 1.0])
    >>> StreamingSVD(n_components=2).fit(X).singular_values_.round(6)
    array([3., 2.])
    """

    kind = "streaming-svd"
    # Whether the rows are centered in the same pass.
    _centered: ClassVar[bool] = False
    _constraints: ClassVar[Constraints] = {
        "n_components": (whole(1), number(0.0, 1.0, bounds="()"), NOTHING),
        "sketch": (SKETCH_KEY, SKETCH),
        "sketch_size": (whole(1), NOTHING),
        "tol": (number(0.0, bounds="()"), NOTHING),
        "max_sketch_size": (whole(1), NOTHING),
        "standardize": (FLAG,),
        **forgetting.CONSTRAINTS,
    }

    learn_one = learn_one

    # Columns in units of their own
    standardize: bool
    _units = standardized.units_of
    scale_ = property(standardized.scale_)
    is_of_plain_rows = property(standardized.is_of_plain_rows)
    n_passes = property(standardized.n_passes)
    pilot_rows = property(standardized.pilot_rows)
    measure_first = standardized.measure_first
    take_pilot = standardized.take_pilot
    end_pass = standardized.end_pass

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        sketch: str | Sketch = "auto",
        sketch_size: int | None = None,
        tol: float | None = None,
        max_sketch_size: int | None = None,
        standardize: bool = False,
        window: object = None,
        half_life: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.tol = tol
        self.max_sketch_size = max_sketch_size
        self.standardize = standardize
        self.window = window
        self.half_life = half_life

    def _sketch_for(self, n_features: int) -> Sketch:
        if self.n_components is not None and self.n_components > n_features:
            text = f"n_components={self.n_components} is more than the {n_features} columns; "
            warnings.warn(text + "there will be as many components", stacklevel=2)
        if isinstance(self.sketch, Sketch):
            inner = self.sketch.fresh()
            if isinstance(inner, Centered):
                inner = inner.sketch
        else:
            inner = self._choose(n_features)
        inner = Centered(inner) if self._centered else inner
        return forgetting.windowed(inner, self.window, n_features)

    def _choose(self, n_features: int) -> Sketch:
        size = self._sketch_size(n_features)
        options: dict[str, Any] = {}
        ages: dict[str, Any] = {} if self.half_life is None else {"half_life": self.half_life}
        if self.tol is not None:
            limit = self.max_sketch_size or min(n_features, max(8 * size, int(2 / self.tol)))
            options = {"tol": self.tol, "max_sketch_size": max(limit, size)}
        if self.sketch != "auto":
            if options and self.sketch not in GROWING:
                raise ValueError(
                    f"tol needs a sketch that grows, got sketch={self.sketch!r}; "
                    f"drop tol or choose from {', '.join(map(repr, GROWING))}"
                )
            options = options if self.sketch != "exact" else {}
            return make_sketch(str(self.sketch), size, **options, **ages)
        n_bytes = forgetting.exact_bytes(self.window, n_features)
        if exact_or_sketch("directions", n_features, size, n_bytes=n_bytes).exact:
            return ExactCovariance(**ages)
        # Leading directions are what counts here, and this rule follows them most closely.
        return FrequentDirections(size, rule="half", **options, **ages)

    def _sketch_size(self, n_features: int) -> int:
        if self.sketch_size is not None:
            return self.sketch_size
        k = self.n_components
        if k is None or is_fraction(k):
            # A fraction of the variance may need any number of components.
            wanted = DEFAULT_SKETCH_SIZE if k is None else 4 * DEFAULT_SKETCH_SIZE
        else:
            # A few rows more than components: the last of them would be poorly known.
            wanted = int(max(k + 8, min(2 * k, 32)))
        return min(wanted, n_features)

    def _check_together(self) -> None:
        k, size = self.n_components, self.sketch_size
        if k is not None and size is not None and size < k:
            raise ValueError(
                f"sketch_size={size} keeps fewer rows than n_components={k}; enlarge it"
            )
        forgetting.check_forgetting(self.window, self.half_life, self.sketch)
        if self.window is not None and self.tol is not None:
            raise ValueError(
                "tol is for one sketch that grows, and a window has many; drop tol and enlarge "
                "sketch_size"
            )

    def _spectrum(self) -> Spectrum:
        spectrum: Spectrum = self._once(
            "spectrum",
            lambda: read_spectrum(self.sketch_, self.n_components, self._read()),
        )
        return spectrum

    @property
    def components_(self) -> Array:
        """Directions as rows, most important first; for columns in the user's units."""
        directions, unit = self._spectrum().components, self._unit()
        if unit is None:
            return directions
        components: Array = self._once("components_", lambda: directions / unit)
        return components

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
        return self._spectrum().singular_values

    @property
    def noise_variance_(self) -> float:
        """Average variance of the directions left out, of as many as rows or columns allow."""
        return self._spectrum().noise

    @property
    def target_met_(self) -> bool:
        """Whether the certified error is within ``tol``, and the variance asked for is certain.

        With a fraction as ``n_components`` this also tells if the components found
        certainly hold that fraction: the lower end of ``certificate_.captured_energy``.
        """
        certificate = self.certificate_
        met = self.tol is None or certificate.relative_error <= self.tol
        k = self.n_components
        if k is not None and is_fraction(k):
            found = min(self.n_components_, len(certificate.captured_energy))
            certain = certificate.captured_energy[found - 1, 0] if found else 0.0
            met = met and bool(certain >= k)
        return bool(met)

    def _offset(self) -> Array | None:
        """Return the mean to remove, if any."""
        return None

    def _scales(self) -> Array | None:
        """Return factors for the scores, if they are to be scaled."""
        return None

    @lazy
    def transform(self, X: RowsLike) -> Any:
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
        rows = self._rows(X)
        scores = scores_of(rows, self.components_, self._offset())
        if (scales := self._scales()) is not None:
            scores = scores * like(scales, scores, precision(scores))
        return cast(scores, precision(rows))

    def inverse_transform(self, X: RowsLike) -> Any:
        """Return rows with the given coordinates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Coordinates, as `transform` returns them.

        Returns
        -------
        array of shape (n_samples, n_features)
            Rows, within the span of the components, in the precision of the coordinates.
        """
        self._require_fitted()
        scores: Any = X if on_device(X) else np.asarray(X)
        if scores.ndim != 2 or scores.shape[1] != self.n_components_:
            raise ValueError(
                f"got coordinates of shape {scores.shape}, expected (n, {self.n_components_}); "
                "pass what transform returned"
            )
        single = precision(scores) == np.float32
        if (scales := self._scales()) is not None:
            scores = scores / like(scales, scores)
        directions, unit = self._spectrum().components, self._unit()
        rows = times(scores, directions if unit is None else directions * unit)
        offset = self._offset()
        rows = rows if offset is None else rows + like(offset, rows)
        return cast(rows, np.float32) if single else rows

    @lazy
    def reconstruction_error(self, X: RowsLike) -> Array:
        """Return the squared distance of each row from its projection on the components.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Squared distances.
        """
        return self._scores_and_rest(self._rows(host_rows(X)))[1]

    def score_one(self, x: OneRow) -> float:
        """Return the anomaly score of one row: its squared distance from its projection.

        Parameters
        ----------
        x : mapping of names to numbers, or array-like of shape (n_features,)
            The row.

        Returns
        -------
        float
            The higher, the less of it the components explain; 0 before the first row.
        """
        if self._fitted not in self.__dict__:
            return 0.0
        return float(self._scores_and_rest(one_row(self, x))[1][0])

    def _scores_and_rest(self, rows: Any) -> tuple[Array, Array]:
        """Return scores in float64, and the squared distance of each row from its projection."""
        return scores_and_rest(rows, self._spectrum().components, self._offset(), self._unit())

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Tags:
        return preserving_precision(super().__sklearn_tags__())
