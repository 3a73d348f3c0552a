"""scikit-learn's tests of RidgeCV, on StreamingRidgeCV."""

from sklearn.linear_model import RidgeCV

from peers.runner import Peer, renamed
from sksketch import StreamingRidgeCV


def by_squared_error(scoring):
    if scoring not in (None, "neg_mean_squared_error"):
        raise NotImplementedError(f"StreamingRidgeCV has nothing for scoring={scoring!r}")
    return {}


TAKES = {name: name for name in ("alphas", "fit_intercept", "alpha_per_target")}
TAKES |= {"scoring": by_squared_error}
RIDGE_CV = renamed(StreamingRidgeCV, RidgeCV, TAKES, drops=("gcv_mode",))
EXPECTED = {
    "the score is generalized cross-validation, from the sketch alone; others need the rows": (
        "test_ridge_loo_cv_asym_scoring",
        "test_ridge_cv_custom_multioutput_scorer*",
        "test_dense_sparse*",
    ),
    "folds need all rows several times; selection='holdout' keeps some rows apart": (
        "test_ridge_gcv_vs_ridge_loo_cv[[]*",
        "test_ridge_gcv_sample_weights[[]*",
        "test_ridge_best_score*",
        "test_ridgecv_sample_weight",
    ),
    "cv_results_ has an entry for each row; scores_ has one for each penalty": (
        "test_ridge_gcv_integer_arrays",
        "test_ridge_cv_individual_penalties",
        "test_ridgecv_store_cv_results*",
        "test_ridge_cv_results_predictions*",
        "test_ridge_cv_multioutput_sample_weight*",
    ),
    "there is no gcv_mode to warn of": ("test_regularization_limits_ridge_gcv[[]csr_*-svd-*",),
    "a penalty of zero is one to choose from, and messages are ours": (
        "test_ridgecv_alphas_zero[[]StreamingRidgeCV-None]",
        "test_ridgecv_alphas_validation*",
    ),
    "there is no parameter cv to set": ("test_ridgecv_alphas_zero[[]StreamingRidgeCV-3]",),
}
PEER = Peer(
    "RidgeCV",
    "sklearn.linear_model.tests.test_ridge",
    {"sklearn.linear_model.RidgeCV": RIDGE_CV},
    expected=EXPECTED,
)
globals().update(PEER.tests(__file__))
