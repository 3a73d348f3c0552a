"""One-pass PCA of rows that do not fit in memory."""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array, Rows, RowsLike
from sksketch.decomposition.streaming_svd import StreamingSVD
from sksketch.low_rank import LowRankPlusRidge
from sksketch.models.checks import host_rows
from sksketch.models.constraints import FLAG
from sksketch.models.runner import lazy
from sksketch.sketches import Centered, Sketch


class StreamingPCA(StreamingSVD):
    """Principal components in one pass, centered in that pass, with an error bound.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components, a fraction of the variance to explain (below 1), or None for
        as many as the sketch keeps.
    sketch : {"auto", "fd", "rfd", "cfd", "pfd", "isvd", "exact"} or Sketch, default="auto"
        What remembers the rows. "auto" accumulates the exact covariance where that is cheap
        and otherwise takes robust Frequent Directions with ``rule="half"``; `plan_` says which.
    sketch_size : int, default=None
        Rows the sketch keeps; by default a few more than ``n_components``.
    tol : float, default=None
        Let the sketch grow while it streams so that the certified spectral error stays
        below ``tol`` times the total variance; `target_met_` tells if it did.
    max_sketch_size : int, default=None
        Limit for ``tol``.
    standardize : bool, default=False
        Whether columns are divided by their standard deviations, so that units do not matter: the
        components are those of the correlation matrix.
    whiten : bool, default=False
        Whether to scale the scores to unit variance.
    window : int, str or timedelta, default=None
        Learn from the last rows alone: that number of them, or those of a length of time such as
        "7d", for which `partial_fit` takes their ``times``. See `SlidingWindow`.
    half_life : float, default=None
        Forget by and by: a row counts half after that number of others.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        Principal directions as rows, most important first, with deterministic signs. With
        ``standardize`` they are for columns in the user's units, as `transform` takes them, and
        not orthonormal; ``components_ * scale_`` are those of columns in standard units.
    n_components_ : int
        Number of components: as asked for, and never more than columns.
    explained_variance_ : array of shape (n_components_,)
        Variance of the rows along each component.
    explained_variance_ratio_ : array of shape (n_components_,)
        The same as fractions of the total variance.
    singular_values_ : array of shape (n_components_,)
        Norms of the centered rows' coordinates along each component.
    noise_variance_ : float
        Average variance of the directions left out.
    mean_ : array of shape (n_features,)
        Mean of the rows.
    var_ : array of shape (n_features,)
        Variance of each column.
    scale_ : array of shape (n_features,)
        Standard deviation of each column (divided by the number of rows, not by one less), one
        where it never changes; ones without ``standardize``.
    certificate_ : Certificate
        What is certain about the covariance of the rows, with its error bounds. With
        ``standardize`` it is about the rows divided by exactly ``scale_``.
    target_met_ : bool
        Whether the certified error is within ``tol``, and the variance asked for is certain.
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
    StreamingSVD : The same without centering.
    StreamingKernelPCA : Components of nonlinear functions of the rows.
    FrequentDirections : The sketch by itself.
    sklearn.decomposition.IncrementalPCA : One pass, without an error bound.
    sklearn.decomposition.PCA : For rows that fit in memory.

    Notes
    -----
    The rows are remembered by Frequent Directions [1]_, in its robust form [2]_ by default.
    Nothing is solved until an attribute is read, with the parameters as they are then. The
    explained variance is an estimate, the kept eigenvalue plus the ridge that the read-out adds
    for lost energy, inside its certified interval: ``certificate_.eigenvalues``, divided by the
    total weight less one (``n_samples_seen_ - 1`` where rows have no weights and are not
    forgotten). Of components for a fraction of the variance there are as few as are certain to
    hold it, where any number is. Attributes are float64, also for rows in single precision.

    With ``standardize`` the model is that of scikit-learn's ``StandardScaler`` before ``PCA``:
    variances, `score_samples`, `get_covariance` and `reconstruction_error` are about rows in
    units of ``scale_``, while `transform`, `inverse_transform`, ``components_``, ``mean_`` and
    ``var_`` are in the user's. Where the covariance is kept (``sketch="exact"``, and "auto" where
    that is cheap) units are read from it, whatever the order of blocks and merges, and
    ``standardize`` may be changed after the fit. A sketch needs units before the first row: they
    are those of all rows in `fit`, and in `fit_stream` over rows that can be read twice; otherwise
    those of the first 1,000 rows, and they stay. `plan_` says which.

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
    >>> rng = np.random.default_rng(0)
    >>> pca = StreamingPCA(n_components=2)
    >>> for _ in range(10):
    ...     pca = pca.partial_fit(rng.standard_normal((100, 5)) * [5, 3, 1, 1, 1] + 7)
    >>> pca.explained_variance_.round(0)
    array([25.,  9.])
    >>> pca.transform(np.full((1, 5), 7.0)).round(0) + 0.0
    array([[0., 0.]])
    """

    kind = "streaming-pca"
    _centered = True
    _constraints = StreamingSVD._constraints | {"whiten": (FLAG,)}

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        sketch: str | Sketch = "auto",
        sketch_size: int | None = None,
        tol: float | None = None,
        max_sketch_size: int | None = None,
        standardize: bool = False,
        whiten: bool = False,
        window: object = None,
        half_life: float | None = None,
    ) -> None:
        super().__init__(
            n_components,
            sketch=sketch,
            sketch_size=sketch_size,
            tol=tol,
            max_sketch_size=max_sketch_size,
            standardize=standardize,
            window=window,
            half_life=half_life,
        )
        self.whiten = whiten

    def _check_enough(self, rows: Rows) -> None:
        if rows.shape[0] < 2:
            raise ValueError(
                "PCA needs variation, got n_samples = 1 row; pass at least two rows, "
                "or stream single rows with partial_fit"
            )

    @property
    def mean_(self) -> Array:
        """Mean of the rows."""
        sketch = self.sketch_
        assert isinstance(sketch, Centered)
        mean: Array = self._once("mean_", lambda: sketch.mean * self._unit_of_sketch())
        return mean

    @property
    def var_(self) -> Array:
        """Variance of each column, the mean of its squared differences to the mean.

        NaN in a model that an earlier release has saved: it kept only their sum.
        """
        sketch = self.sketch_
        assert isinstance(sketch, Centered)
        squares: Array = self._once("var_", lambda: sketch.column_squares)
        squares = squares * self._unit_of_sketch() ** 2
        return squares / max(sketch.total_weight, np.finfo(np.float64).tiny)

    def _offset(self) -> Array | None:
        return self.mean_

    def _scales(self) -> Array | None:
        if not self.whiten:
            return None
        deviations = np.sqrt(self.explained_variance_)
        # A direction without variance has no scale; leave it alone.
        return np.asarray(1.0 / np.where(deviations > 0, deviations, 1.0))

    @lazy
    def score_samples(self, X: RowsLike) -> Array:
        """Return the log-likelihood of each row under the probabilistic PCA model.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Natural logarithm of the density of each row.
        """
        scores, rest = self._scores_and_rest(self._rows(host_rows(X)))
        k, n_features = self.components_.shape
        noise = max(self.noise_variance_, np.finfo(np.float64).tiny)
        variances = np.maximum(self.explained_variance_, noise)
        outside = rest / noise if k < n_features else 0.0
        logdet = np.log(variances).sum() + (n_features - k) * np.log(noise)
        inside = (scores**2 / variances).sum(axis=1)
        return np.asarray(-0.5 * (n_features * np.log(2 * np.pi) + logdet + inside + outside))

    def _model(self) -> LowRankPlusRidge:
        """Return the covariance of the probabilistic PCA model."""
        noise = self.noise_variance_
        above = np.maximum(self.explained_variance_ - noise, 0.0)
        return LowRankPlusRidge(self._spectrum().components, above, ridge=noise)

    def get_covariance(self) -> Array:
        """Return the covariance of the probabilistic PCA model.

        Returns
        -------
        array of shape (n_features, n_features)
            The covariance, dense; with ``standardize`` of columns in units of ``scale_``.
        """
        return self._model().to_dense()

    def get_precision(self) -> Array:
        """Return the inverse of the covariance of the probabilistic PCA model.

        Returns
        -------
        array of shape (n_features, n_features)
            The inverse, dense.
        """
        return self._model().solve(np.eye(self.n_features_in_))

    def score(self, X: RowsLike, y: RowsLike | None = None) -> float:
        """Return the mean of `score_samples`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        float
            Mean log-likelihood of the rows.
        """
        return float(self.score_samples(X).mean())
