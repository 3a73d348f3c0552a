"""scikit-learn's tests of SGDClassifier and SGDRegressor, on the online Newton learners."""

import types

import scipy.sparse as sp
from sklearn import linear_model

from peers.runner import Peer, renamed
from sksketch import OnlineNewtonClassifier, OnlineNewtonRegressor

LOSSES = {"log_loss": "logistic", "squared_error": "squared"}
SHARED = {
    "loss": lambda loss: {"loss": LOSSES.get(loss, loss)},
    "fit_intercept": "fit_intercept",
    "max_iter": "max_passes",
    "shuffle": "shuffle",
    "random_state": lambda seed: {} if seed is None else {"random_state": seed},
}
# The step comes from the curvature, and so does the penalty.
STEPS = ("alpha", "eta0", "power_t", "tol", "l1_ratio", "n_iter_no_change", "validation_fraction")
DROPS = (*STEPS, "verbose", "n_jobs", "learning_rate")


class SparseClassifier(OnlineNewtonClassifier):
    """Takes all rows as sparse ones."""

    def fit(self, X, y, *args, **options):
        return super().fit(sp.csr_array(X), y, *args, **options)

    def partial_fit(self, X, y, *args, **options):
        return super().partial_fit(sp.csr_array(X), y, *args, **options)

    def decision_function(self, X):
        return super().decision_function(sp.csr_array(X))


class SparseRegressor(OnlineNewtonRegressor):
    """Takes all rows as sparse ones."""

    def fit(self, X, y, *args, **options):
        return super().fit(sp.csr_array(X), y, *args, **options)

    def partial_fit(self, X, y, *args, **options):
        return super().partial_fit(sp.csr_array(X), y, *args, **options)


def classifier(ours):
    takes = SHARED | {"class_weight": "class_weight"}
    return renamed(ours, linear_model.SGDClassifier, takes, drops=DROPS)


def regressor(ours):
    takes = SHARED | {"epsilon": lambda width: {"huber_width": width}}
    return renamed(ours, linear_model.SGDRegressor, takes, drops=DROPS)


CLASSIFIER, REGRESSOR = classifier(OnlineNewtonClassifier), regressor(OnlineNewtonRegressor)
OURS = vars(linear_model) | {"SGDClassifier": CLASSIFIER, "SGDRegressor": REGRESSOR}
EXPECTED = {
    "the step comes from the curvature of the loss: no schedule, t_, n_iter_ or tolerance": (
        "test_adaptive_longer_than_constant*",
        "test_power_t_limits*",
        "test_learning_rate_PA_raises[[]SGDRegressor*",
        "test_partial_fit_equal_fit*",
        "test_tol_parameter",
    ),
    "what was learned is continued by partial_fit, and read from a file": (
        "test_warm_start*",
        "test_provide_coef*",
        "test_set_intercept*",
        "test_sgd_multiclass_with_init_coef*",
        "test_set_coef_multiclass*",
    ),
    "weights are not averaged: the descent after the online pass ends at the minimum": (
        "test_plain_has_no_average_attr*",
        "test_late_onset_averaging*",
        "test_average*",
        "test_sgd_multiclass_average*",
        "test_partial_fit_multiclass_average*",
        "test_sgd_averaged*",
    ),
    "no rows are kept apart: online_error_ is that of each row before it is learned": (
        "test_early_stopping*",
        "test_validation*",
        "test_n_iter_no_change*",
        "test_not_enough_sample_for_early_stopping*",
        "test_sgd_early_stopping_with_partial_fit*",
        "test_multi_*_early_stopping",
        "test_sgd_error_on_zero_validation_weight",
    ),
    "the penalty is a ridge that the first rows give, for alpha, l1 and elasticnet": (
        "test_clone[[]*",
        "test_sgd_l1*",
        "test_sgd_failing_penalty_validation*",
        "test_elasticnet_convergence*",
        "test_l1_ratio",
        "test_numerical_stability_large_gradient",
        "test_large_regularization*",
        "test_equal_class_weight*",
        "test_balanced_weight*",
    ),
    "other losses: squared, logistic and hinge; squared, absolute and huber": (
        "test_sgd_clf*",
        "test_sgd_predict_proba_method_access*",
        "test_sgd_proba*",
        "test_sgd_epsilon_insensitive*",
        "test_loss_function_epsilon*",
        "test_underflow_or_overflow",
    ),
    "several targets are learned at once": ("test_input_format[[]*SGDRegressor]",),
    "messages are ours": ("test_partial_fit_weight_class_balanced*",),
    "random_state is an integer, so that a run can be resumed": ("test_regression_losses*",),
    "the order of the rows hardly matters after a descent to the minimum": (
        "test_sgd_random_state[[]SGDRegressor]",
    ),
    "the coefficients of a line are equal to rounding": ("test_sgd_reg[[]*",),
    "the intercept of one target is a number": ("test_partial_fit[[]*",),
    "coefficients are in double precision": ("test_sgd_dtype_match[[]float32*",),
}
PEER = Peer(
    "SGD",
    "sklearn.linear_model.tests.test_sgd",
    instead={
        # The module names its estimators through this one.
        "linear_model": types.SimpleNamespace(**OURS),
        "_SparseSGDClassifier": classifier(SparseClassifier),
        "_SparseSGDRegressor": regressor(SparseRegressor),
    },
    # Of the module's third estimator.
    beside=("*one_class*", "*oneclass*", "*OneClassSVM*"),
    expected=EXPECTED,
)
globals().update(PEER.tests(__file__))
