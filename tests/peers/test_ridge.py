"""scikit-learn's tests of Ridge, on StreamingRidge."""

from sklearn.linear_model import Ridge

from peers.runner import Peer, renamed
from sksketch import StreamingRidge

TAKES = {name: name for name in ("alpha", "fit_intercept", "positive")}
# How it is solved there.
DROPS = ("copy_X", "max_iter", "tol", "solver", "random_state")
RIDGE = renamed(StreamingRidge, Ridge, TAKES, drops=DROPS)
EXPECTED = {
    "there is one way to solve, with an error bound, and no solver_ or n_iter_": (
        "test_ridge_regression[[]*",
        "test_n_iter",
    ),
    "weights of several columns are refused, one number is that of all rows": (
        "test_raises_value_error_if_sample_weights_greater_than_1d",
    ),
    "the one solver does for sparse rows with an intercept and for positive coefficients": (
        "test_ridge_fit_intercept_sparse_error*",
        "test_ridge_fit_intercept_sparse_sag*",
        "test_ridge_positive_error_test*",
        "test_lbfgs_solver_error",
    ),
    "coefficients are in double precision, predictions as precise as rows": ("test_dtype_match*",),
    "the intercept of one column of targets is a number": ("test_ridge_shapes_type",),
}
PEER = Peer(
    "Ridge",
    "sklearn.linear_model.tests.test_ridge",
    {"sklearn.linear_model.Ridge": RIDGE},
    expected=EXPECTED,
)
globals().update(PEER.tests(__file__))
