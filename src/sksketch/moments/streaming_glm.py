"""Generalized linear models by passes over the rows."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from sksketch._typing import Array, Rows, RowsLike
from sksketch.arrays.rows import as_rows, as_weights
from sksketch.exceptions import NotMergeableError
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.checks import checked_rows, host_rows, validated
from sksketch.models.constraints import (
    FLAG,
    NOTHING,
    Constraints,
    check_value,
    number,
    one_of,
    several,
    whole,
)
from sksketch.models.inference import Inference
from sksketch.models.runner import fit_dask, is_dask, lazily
from sksketch.models.scikit_learn import Callbacks
from sksketch.moments.families import FAMILIES, LINKS
from sksketch.moments.glm_inference import record
from sksketch.moments.reweighting import ENDLESS, SEPARATED, UNFINISHED, Reweighting
from sksketch.moments.scoring import Model, PassSums, Step, linear
from sksketch.state.persistence import State


class StreamingGLM(RegressorMixin, Estimator):
    """A generalized linear model, learned by passes over the rows in flat memory.

    Minimizes the deviance plus ``alpha |w|^2`` by iteratively reweighted least squares: each pass
    is one weighted regression, whose sums merge.

    Parameters
    ----------
    family : {"binomial", "poisson", "gamma", "gaussian"}, default="binomial"
        How targets vary around their mean.
    alpha : float, default=0.0
        Penalty on the squared coefficients, as for `StreamingRidge`.
    link : {"auto", "logit", "log", "inverse", "identity"}, default="auto"
        Which function of the mean is linear; "auto" is the canonical one of the family: "logit",
        "log", "inverse" and "identity".
    fit_intercept : bool, default=True
        Whether to learn an intercept, which is not penalized.
    max_passes : int, default=25
        Most passes over the rows.
    tol : float, default=1e-16
        The passes end when the next one promises less than this share of the deviance.
    start : array-like of shape (n_features + 1,), default=None
        An intercept and coefficients to begin with, such as those of `OnlineNewtonClassifier` with
        its logistic loss; it saves passes.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Coefficients.
    intercept_ : float
        Intercept; 0.0 without one.
    deviance_, null_deviance_ : float
        Deviance of the model, and of a constant.
    n_iter_ : int
        Passes so far.
    converged_ : bool
        Whether no more is to be gained by further passes.
    separated_ : bool
        Whether the coefficients grow without end, since a plane separates zeros from ones.
    n_samples_seen_ : int
        Rows of a pass.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the rows have names.

    See Also
    --------
    StreamingRidge : Least squares in one pass, with robust standard errors.
    OnlineNewtonClassifier : A linear classifier in one pass.
    fit_stream : Reads a source as often as is needed, and can resume.

    Notes
    -----
    The method is that of [1]_. A step that makes the deviance larger is halved, at the price of a
    pass. With `partial_fit`, give all rows, call `next_pass`, and so on until ``converged_``;
    `fit_stream`, `fit_dask` and `fit_spark` do that. Sums of deviances are never rounded, so that
    blocks make no difference.

    References
    ----------
    .. [1] Nelder, J. A. and Wedderburn, R. W. M. (1972). "Generalized Linear Models". Journal of
       the Royal Statistical Society A 135(3).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 2))
    >>> y = rng.random(1000) < 1.0 / (1.0 + np.exp(-X[:, 0] - 0.5))
    >>> model = StreamingGLM().fit(X, y)
    >>> model.coef_.round(2), round(model.intercept_, 2), model.converged_
    (array([1.04, 0.08]), 0.5, True)
    """

    kind = "streaming-glm"
    _fitted = "_passes"
    _constraints: ClassVar[Constraints] = {
        "family": (one_of(*FAMILIES),),
        "alpha": (number(0.0),),
        "link": (one_of("auto", *LINKS),),
        "fit_intercept": (FLAG,),
        "max_passes": (whole(1),),
        "tol": (number(0.0, 1.0, bounds="()"),),
        "start": (several("numbers", number(-np.inf, bounds="()")), NOTHING),
    }
    _passes: Reweighting

    def __init__(
        self,
        family: str = "binomial",
        *,
        alpha: float = 0.0,
        link: str = "auto",
        fit_intercept: bool = True,
        max_passes: int = 25,
        tol: float = 1e-16,
        start: npt.ArrayLike | None = None,
    ) -> None:
        self.family = family
        self.alpha = alpha
        self.link = link
        self.fit_intercept = fit_intercept
        self.max_passes = max_passes
        self.tol = tol
        self.start = start

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = self.family in ("poisson", "gamma")
        return tags

    # Learning

    def _checked(self, X: RowsLike, y: RowsLike | None, reset: bool) -> tuple[Any, Array]:
        given = host_rows(y)
        FAMILIES[self.family].check_numbers(given)
        rows, targets = validated(
            self,
            host_rows(X),
            given,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            y_numeric=True,
            reset=reset,
        )
        return as_rows(rows), FAMILIES[self.family].checked(targets)

    def fit(
        self, X: RowsLike, y: RowsLike | None = None, sample_weight: RowsLike | None = None
    ) -> Self:
        """Learn from all rows of ``X``, in as many passes as are needed.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows; those of dask are learned where they lie, see `fit_dask`.
        y : array-like or dask collection of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Row ``i`` counts as ``sample_weight[i]`` copies.

        Returns
        -------
        self
            This estimator.
        """
        if is_dask(X):
            return fit_dask(self, X, y, sample_weight)
        with or_as_before(self), Callbacks(self).running("fit"):
            self._check_params()
            rows, targets = self._checked(X, y, reset=True)
            weights = as_weights(sample_weight, rows.shape[0])
            if weights is not None and not weights.any():
                raise ValueError("all sample weights are zero, expected some rows to count")
            passes = Reweighting.begun(self.get_params(deep=False), rows.shape[1])
            passes.add(rows, targets, weights)
            while not passes.ends():
                passes = passes.next()
                passes.add(rows, targets, weights)
            self._passes, self._answers = passes, {}
        return self

    def partial_fit(
        self, X: RowsLike, y: RowsLike | None = None, sample_weight: RowsLike | None = None
    ) -> Self:
        """Add one more block of rows to the pass that is running.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Row ``i`` counts as ``sample_weight[i]`` copies.

        Returns
        -------
        self
            This estimator.
        """
        with or_as_before(self):
            first = "_passes" not in self.__dict__
            if first:
                self._check_params()
            rows, targets = self._checked(X, y, reset=first)
            weights = as_weights(sample_weight, rows.shape[0])
            if first:
                self._passes = Reweighting.begun(self.get_params(deep=False), rows.shape[1])
            if not self._passes.settled:
                self._passes.add(rows, targets, weights)
            self._answers = {}
        return self

    def next_pass(self) -> Self:
        """End a pass: all rows have been given, and may be given once more.

        Returns
        -------
        self
            This estimator.
        """
        self._require_fitted()
        self._passes, self._answers = self._passes.turned(), {}
        return self

    # Passes of runners

    @property
    def n_passes(self) -> int:
        """Times that `fit_stream` gives all rows at most."""
        return int(self.max_passes)

    def end_pass(self, number: int) -> None:
        """Go to the next pass, unless that is done.

        Parameters
        ----------
        number : int
            Times that all rows have come.
        """
        if self._passes.n_done < number:
            self.next_pass()

    @property
    def has_converged(self) -> bool:
        """Whether runners need to give no more rows."""
        return "_passes" in self.__dict__ and self._passes.settled

    def _template(self) -> Self:
        return type(self)(**self.get_params(deep=False))

    def _part(self, index: int, n_shards: int) -> Self:
        twin = type(self)(**self.get_params(deep=False))
        if "_passes" in self.__dict__:
            twin._take_columns(self.n_features_in_, getattr(self, "feature_names_in_", None))
            twin._passes, twin._answers = self._passes.part(), {}
        return twin

    def _absorb(self, other: Self) -> None:
        if "_passes" not in self.__dict__:
            self._take_columns(other.n_features_in_, getattr(other, "feature_names_in_", None))
            self._passes = other._passes.part()
        if not self._passes.starts_like(other._passes):
            raise NotMergeableError(
                "the two are in different passes, with coefficients of their own rows; learn all "
                "parts in one run of fit_stream, fit_dask or fit_spark"
            )
        self._passes = self._passes.merged(other._passes)

    # Answers

    def _end(self) -> tuple[PassSums, Model, Step]:
        """Return the sums of the last pass, the model they are at, and the step from there."""
        found: tuple[PassSums, Model, Step] = self._once("end", self._passes.end)
        return found

    def _read(self) -> tuple[Array, float]:
        if not self.converged_ and self.n_iter_ >= self.max_passes:
            warnings.warn(self._trouble(), ConvergenceWarning, stacklevel=5)
        return self._end()[2].coef, self._end()[2].intercept

    def _trouble(self) -> str:
        return ENDLESS if self.separated_ else UNFINISHED.format(self.n_iter_)

    @property
    def coef_(self) -> Array:
        """Coefficients."""
        return np.asarray(self._once("coefficients", self._read)[0])

    @property
    def intercept_(self) -> float:
        """Intercept; 0.0 without one."""
        return float(self._once("coefficients", self._read)[1])

    @property
    def deviance_(self) -> float:
        """Deviance of the model."""
        return float(self.inference().residual_deviance)

    @property
    def null_deviance_(self) -> float:
        """Deviance of a constant."""
        sums, model, _ = self._end()
        if model.coef is None and self.family == "gaussian":
            return float(sums.regression.moments().squares[0])
        return sums.totals()["null_deviance"]

    @property
    def n_iter_(self) -> int:
        """Passes so far."""
        return self._passes.n_done + 1

    @property
    def n_samples_seen_(self) -> int:
        """Rows of a pass."""
        return self._end()[0].n_rows

    @property
    def converged_(self) -> bool:
        """Whether no more is to be gained by further passes."""
        pair = self._end()[:2]
        return bool(self._once("converged", lambda: self._passes.has_converged(*pair)))

    @property
    def separated_(self) -> bool:
        """Whether the coefficients grow without end."""
        sums, model, _ = self._end()
        known = self.family == "binomial" and model.link == "logit" and self.alpha == 0.0
        return known and not self.converged_ and sums.largest > SEPARATED

    def inference(self, confidence: float = 0.95) -> Inference:
        """Return coefficients with standard errors, tests and intervals, as a table to print.

        Parameters
        ----------
        confidence : float, default=0.95
            Level of the intervals.

        Returns
        -------
        Inference
            A record that prints as a table. ``r2`` is the share of the deviance that is explained.
        """
        self._require_fitted()
        check_value("confidence", confidence, number(0.0, 1.0, bounds="()"))
        sums, model, step = self._end()
        names = getattr(self, "feature_names_in_", None)
        asked = float(confidence), names, () if self.converged_ else (self._trouble(),)
        return record(sums, model, step, self.null_deviance_, asked)

    def predict(self, X: RowsLike) -> Any:
        """Return the mean of the targets of rows: probabilities for "binomial".

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            For dask's rows one of dask, which is computed when it is needed.
        """
        self._require_fitted()
        if is_dask(X):
            return lazily(self, "predict", X)
        rows: Rows = checked_rows(self, host_rows(X), reset=False)
        predictor = linear(rows, self.coef_) + self.intercept_
        mean = LINKS[self._passes.model.link].mean(predictor)
        return FAMILIES[self.family].inside(mean).astype(rows.dtype, copy=False)

    # Saving

    def _learned(self, state: State) -> State:
        return state.with_inner("passes", self._passes.state())

    def _recall(self, state: State) -> None:
        params = self.get_params(deep=False) | {"start": None}
        self._passes = Reweighting.from_state(state.inner("passes"), params)
