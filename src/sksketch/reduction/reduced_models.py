"""Linear models of very many columns, learned on few coordinates, with an optimality gap."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from sksketch._keys import DUAL_CLASSIFICATION, DUAL_REGRESSION
from sksketch._typing import Array, Rows, RowsLike, Seed
from sksketch.models import labels
from sksketch.models.checks import as_precise
from sksketch.models.constraints import DICTIONARY, NOTHING, one_of
from sksketch.models.labels import (
    has_probabilities,
    labels_of,
    labels_text,
    weights_by_class,
)
from sksketch.models.quality import LabelRating, RegressionRating
from sksketch.models.runner import lazy
from sksketch.reduction.reduced_estimator import ReducedEstimator
from sksketch.reduction.reduced_problem import ReducedModel, ReducedProblem, coded
from sksketch.state.guard import reads
from sksketch.state.persistence import State


class ReducedClassifier(ClassifierMixin, ReducedEstimator):
    """Linear classifier learned on a random subspace of the data, with a certified gap.

    Minimizes ``F(w) = mean loss + alpha / 2 |w|^2`` over the models of a subspace, and gives the
    model back in the original columns together with a bound on how much better the best model
    of all columns can be.

    Parameters
    ----------
    n_components : int, default=100
        Coordinates that the rows are reduced to.
    method : {"nor", "nordr", "rp", "rpdr", "dsrr"}, default="nor"
        "nor" learns on a subspace of the data (`SubspaceReduction`) and gives the best model
        there. "nordr" takes it out of the subspace, by its dual variables: often better where
        very many columns each matter a little, as words do. "rp" and "rpdr" do the same on a
        random projection (`RandomReduction`), and "dsrr" makes the dual variables sparse before.
    loss : {"hinge", "squared_hinge", "logistic", "softmax", "squared"}, default="hinge"
        max(0, 1 - yz), its square, log(1 + exp(-yz)), the cross entropy of all classes at once,
        or (z - y)^2 / 2, with y = 1 and -1. Several classes are each learned against the rest,
        except with "softmax", which is "logistic" for two classes.
    alpha : float, default=1e-3
        Penalty, lambda of the paper. C of scikit-learn's LinearSVC is 1 / (alpha n_samples).
    tol : float, default=1e-3
        Duality gap at which the reduced problem counts as solved.
    operator : {"countsketch", "gaussian", "srht", "sample"}, default="countsketch"
        How the reduction makes sums or a projection, see `SubspaceReduction`.
    n_power_iter : int, default=0
        Power passes of the reduction, for "nor" and "nordr".
    fit_intercept : bool, default=True
        Whether to add a column of ones after the reduction. Its weight counts in the penalty.
    class_weight : dict, "balanced" or None, default=None
        Weight of each label's loss.
    tau : float, default=0.5
        How far "dsrr" lets predictions be off for free, below 1.
    max_iter : int, default=1000
        Passes over the coordinates of all rows, or steps of L-BFGS for "softmax".
    random_state : int, RandomState or None, default=0
        Chooses the reduction, and the order of rows.
    standardize : bool, default=False
        Whether columns are divided by their standard deviations, and not centered, before they
        are reduced: the penalty and the gaps are then about columns in these units.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Models of the original columns, in the user's units.
    intercept_ : array of shape (1,) or (n_classes,)
        Zero without one.
    classes_ : array of shape (n_classes,)
        Labels.
    duality_gap_ : float
        Gap of the reduced problem, the largest of all models.
    objective_gap_bound_ : float
        The best model of all columns has an objective at most this much below F of this one.
    lemma2_bound_ : float
        The same before learning, by Lemma 2 of the paper: far larger; infinite but for "nor".
    dual_coef_ : array of shape (n_models, n_samples)
        Dual variables a, with ``w = X'(a / n) / alpha`` for the best model on all columns.
    reduced_coef_ : array of shape (n_models, n_coordinates)
        Models of the coordinates; the intercept comes last.
    reduction_ : SubspaceReduction or RandomReduction
        The reduction that `reduced_coef_` is about; with ``standardize`` of rows divided by
        ``scale_``.
    scale_ : array of shape (n_features,)
        Standard deviation of each column, one where it never changes; ones without
        ``standardize``.
    training_quality_ : dict
        Accuracy and, with probabilities, log loss on the rows learned from, and of a constant.
    baseline_ : array of shape (n_classes,)
        Weight of each class.
    n_iter_ : int
        Passes made.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the rows have names.

    See Also
    --------
    ReducedRegressor : The same for targets that are numbers.
    SubspaceReduction : The coordinates by themselves.
    OnlineNewtonClassifier : Learns row by row, from all columns.
    sklearn.svm.LinearSVC : For columns that need no reduction.

    Notes
    -----
    The methods are those of [1]_, and "dsrr" is of [2]_. The bound `objective_gap_bound_` is not
    in the paper: the dual variables of the reduced problem are feasible for the full one, and one
    pass over the rows tells what they are worth there. Neither is "nordr", which is to "nor" what
    "rpdr" is to "rp".

    References
    ----------
    .. [1] Xu, Y., Yang, H., Zhang, L. and Yang, T. (2017). "Efficient Non-oblivious Randomized
       Reduction for Risk Minimization with Improved Excess Risk Guarantee". AAAI.
    .. [2] Yang, T., Zhang, L., Jin, R. and Zhu, S. (2015). "Theory of Dual-sparse Regularized
       Randomized Reduction". ICML.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2_000, 5)) @ rng.standard_normal((5, 300))
    >>> y = np.where(X @ rng.standard_normal(300) > 0, "yes", "no")
    >>> model = ReducedClassifier(n_components=20, alpha=1e-2).fit(X, y)
    >>> model.coef_.shape, model.score(X, y) > 0.97, model.objective_gap_bound_ < 1e-3
    ((1, 300), True, True)
    """

    kind = "reduced-classifier"
    _constraints = ReducedEstimator._shared_constraints | {
        "loss": (one_of(*DUAL_CLASSIFICATION),),
        "class_weight": (DICTIONARY, one_of("balanced"), NOTHING),
    }
    _numeric_targets = False

    def __init__(
        self,
        n_components: int = 100,
        *,
        method: str = "nor",
        loss: str = "hinge",
        alpha: float = 1e-3,
        tol: float = 1e-3,
        operator: str = "countsketch",
        n_power_iter: int = 0,
        fit_intercept: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        tau: float = 0.5,
        max_iter: int = 1000,
        random_state: Seed = 0,
        standardize: bool = False,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.loss = loss
        self.alpha = alpha
        self.tol = tol
        self.operator = operator
        self.n_power_iter = n_power_iter
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tau = tau
        self.max_iter = max_iter
        self.random_state = random_state
        self.standardize = standardize

    def _targets(self, y: Array) -> tuple[Array, str]:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(
                f"got one class, {self.classes_.tolist()[0]!r}; two or more are needed to learn"
            )
        if n_classes == 2:
            loss = "logistic" if self.loss == "softmax" else self.loss
            return np.where(codes == 1, 1.0, -1.0)[:, None], loss
        if self.loss == "softmax":
            return codes, self.loss
        return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0), self.loss

    def _class_weights(self, y: Rows) -> Array | float:
        return weights_by_class(self.class_weight, self.classes_, y)

    def _rate(self, targets: Array, scores: Array, weights: Array) -> dict[str, float]:
        codes, predicted = coded(targets, scores)
        self.baseline_ = np.bincount(codes, weights, minlength=len(self.classes_))
        rating = LabelRating(self.baseline_)
        has_any = self.loss in ("logistic", "softmax")
        rating.add(codes, predicted, self._probabilities(scores) if has_any else None, weights)
        return rating.result()

    def _probabilities(self, scores: Array) -> Array:
        return labels.probabilities(scores, softmax=self.loss == "softmax")

    decision_function = labels.decision_function
    predict = labels.predict

    @available_if(has_probabilities("logistic", "softmax"))
    @reads
    @lazy
    def predict_proba(self, X: RowsLike) -> Array:
        """Return the probability of each label, for the logistic loss and softmax.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        return self._probabilities(self._scores(X))

    def _learned(self, state: State) -> State:
        return super()._learned(state).with_more({"classes": labels_text(self.classes_)}, {})

    def _recall(self, state: State) -> None:
        super()._recall(state)
        self.classes_ = labels_of(str(state.meta["classes"]))


class ReducedRegressor(RegressorMixin, ReducedEstimator):
    """Linear regression learned on a random subspace of the data, with a certified gap.

    Minimizes ``F(w) = mean loss + alpha / 2 |w|^2`` over the models of a subspace, and gives the
    model back in the original columns together with a bound on how much better the best model
    of all columns can be.

    Parameters
    ----------
    n_components : int, default=100
        Coordinates that the rows are reduced to.
    method : {"nor", "nordr", "rp", "rpdr", "dsrr"}, default="nor"
        "nor" learns on a subspace of the data (`SubspaceReduction`) and gives the best model
        there. "nordr" takes it out of the subspace, by its dual variables: often better where
        very many columns each matter a little, as words do. "rp" and "rpdr" do the same on a
        random projection (`RandomReduction`), and "dsrr" makes the dual variables sparse before.
    loss : {"squared", "absolute"}, default="squared"
        (z - y)^2 / 2, or abs(z - y).
    alpha : float, default=1e-3
        Penalty, lambda of the paper.
    tol : float, default=1e-3
        Duality gap at which the reduced problem counts as solved.
    operator : {"countsketch", "gaussian", "srht", "sample"}, default="countsketch"
        How the reduction makes sums or a projection, see `SubspaceReduction`.
    n_power_iter : int, default=0
        Power passes of the reduction, for "nor" and "nordr".
    fit_intercept : bool, default=True
        Whether to add a column of ones after the reduction. Its weight counts in the penalty.
    tau : float, default=0.5
        How far "dsrr" lets predictions be off for free, below 1.
    max_iter : int, default=1000
        Passes over the coordinates of all rows.
    random_state : int, RandomState or None, default=0
        Chooses the reduction, and the order of rows.
    standardize : bool, default=False
        Whether columns are divided by their standard deviations, and not centered, before they
        are reduced: the penalty and the gaps are then about columns in these units.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Model of the original columns, in the user's units.
    intercept_ : float
        Zero without one.
    duality_gap_ : float
        Gap of the reduced problem.
    objective_gap_bound_ : float
        The best model of all columns has an objective at most this much below F of this one.
    lemma2_bound_ : float
        The same before learning, by Lemma 2 of the paper: far larger; infinite but for "nor".
    dual_coef_ : array of shape (1, n_samples)
        Dual variables a, with ``w = X'(a / n) / alpha`` for the best model on all columns.
    reduced_coef_ : array of shape (1, n_coordinates)
        Model of the coordinates; the intercept comes last.
    reduction_ : SubspaceReduction or RandomReduction
        The reduction that `reduced_coef_` is about; with ``standardize`` of rows divided by
        ``scale_``.
    scale_ : array of shape (n_features,)
        Standard deviation of each column, one where it never changes; ones without
        ``standardize``.
    training_quality_ : dict
        Rows, R2 and RMSE of the rows learned from, and the RMSE of the mean target.
    baseline_ : array of shape (1,)
        That mean.
    n_iter_ : int
        Passes made.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the rows have names.

    See Also
    --------
    ReducedClassifier : The same for labels.
    SubspaceReduction : The coordinates by themselves.
    StreamingRidge : Least squares of all columns, in one pass.
    sklearn.linear_model.Ridge : For columns that need no reduction.

    Notes
    -----
    The methods are those of [1]_, and "dsrr" is of [2]_. The bound `objective_gap_bound_` is not
    in the paper: the dual variables of the reduced problem are feasible for the full one, and one
    pass over the rows tells what they are worth there. Neither is "nordr", which is to "nor" what
    "rpdr" is to "rp".

    References
    ----------
    .. [1] Xu, Y., Yang, H., Zhang, L. and Yang, T. (2017). "Efficient Non-oblivious Randomized
       Reduction for Risk Minimization with Improved Excess Risk Guarantee". AAAI.
    .. [2] Yang, T., Zhang, L., Jin, R. and Zhu, S. (2015). "Theory of Dual-sparse Regularized
       Randomized Reduction". ICML.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 4)) @ rng.standard_normal((4, 100))
    >>> model = ReducedRegressor(n_components=10, alpha=1e-6).fit(X, X[:, 0])
    >>> round(model.score(X, X[:, 0]), 3)
    1.0
    """

    kind = "reduced-regressor"
    _constraints = ReducedEstimator._shared_constraints | {"loss": (one_of(*DUAL_REGRESSION),)}
    _numeric_targets = True

    def __init__(
        self,
        n_components: int = 100,
        *,
        method: str = "nor",
        loss: str = "squared",
        alpha: float = 1e-3,
        tol: float = 1e-3,
        operator: str = "countsketch",
        n_power_iter: int = 0,
        fit_intercept: bool = True,
        tau: float = 0.5,
        max_iter: int = 1000,
        random_state: Seed = 0,
        standardize: bool = False,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.loss = loss
        self.alpha = alpha
        self.tol = tol
        self.operator = operator
        self.n_power_iter = n_power_iter
        self.fit_intercept = fit_intercept
        self.tau = tau
        self.max_iter = max_iter
        self.random_state = random_state
        self.standardize = standardize

    def _targets(self, y: Array) -> tuple[Array, str]:
        return np.asarray(y, dtype=np.float64)[:, None], self.loss

    def _class_weights(self, y: Rows) -> Array | float:
        return 1.0

    def _rate(self, targets: Array, scores: Array, weights: Array) -> dict[str, float]:
        self.baseline_ = weights @ targets / float(weights.sum())
        rating = RegressionRating(self.baseline_)
        rating.add(targets, scores, weights)
        return rating.result()

    def _take_over(self, model: ReducedModel, scale: Array, problem: ReducedProblem) -> None:
        super()._take_over(model, scale, problem)
        self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]

    @lazy
    def predict(self, X: RowsLike) -> Array:
        """Return the targets of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Targets as predicted, in the precision of the rows.
        """
        return as_precise(self._scores(X)[:, 0], X)
