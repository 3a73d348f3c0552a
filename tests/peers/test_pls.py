"""scikit-learn's tests of CCA and partial least squares, on StreamingCCA and StreamingPLS."""

from sklearn.cross_decomposition import CCA, PLSSVD, PLSCanonical, PLSRegression

from peers.runner import Peer, renamed
from sksketch import StreamingCCA, StreamingPLS

DROPS = ("copy", "max_iter", "tol", "algorithm")
TAKES = {"n_components": "n_components", "scale": "scale"}


def with_mode(mode):
    def made(*args, **options):
        return StreamingPLS(*args, mode=mode, **options)

    made.__name__ = StreamingPLS.__name__
    return made


EXPECTED = {
    "singular vectors are exact, as with algorithm='svd'; the values are of NIPALS cut at tol": (
        "test_sanity_check_pls_regression_constant_column_y",
        "test_sanity_check_pls_canonical*",
    ),
    "no iterations that could fail to converge": ("test_convergence_fail", "test_pls_constant_y"),
    "scores of the rows learned from are not kept": (
        "test_pls_canonical_basics",
        "test_sanity_check_pls_regression",
    ),
    "the rows that come in are never changed, so there is no copy": (
        "test_copy*",
        "test_pls_prediction[[]StreamingPLS*",
    ),
    "StreamingCCA has correlations, weights and scores; StreamingPLS predicts": (
        "test_univariate_equivalence[[]StreamingCCA]",
        "test_pls_coef_shape[[]StreamingCCA]",
        "test_pls_prediction[[]StreamingCCA*",
        "test_loadings_converges",
    ),
    "components beyond the rank have weights zero": ("test_n_components_upper*",),
    "a transformer of two views, not a regressor to ensembles": ("test_pls_regression_fit_1d_y",),
}
PEER = Peer(
    "CCA and PLS",
    "sklearn.cross_decomposition.tests.test_pls",
    {
        # Correlations do not depend on the scale of columns.
        "sklearn.cross_decomposition.CCA": renamed(
            StreamingCCA, CCA, {"n_components": "n_components"}, drops=(*DROPS, "scale")
        ),
        "sklearn.cross_decomposition.PLSSVD": renamed(with_mode("svd"), PLSSVD, TAKES, drops=DROPS),
        "sklearn.cross_decomposition.PLSRegression": renamed(
            with_mode("regression"), PLSRegression, TAKES, drops=DROPS
        ),
        "sklearn.cross_decomposition.PLSCanonical": renamed(
            with_mode("canonical"), PLSCanonical, TAKES, drops=DROPS
        ),
    },
    quick=True,
    expected=EXPECTED,
)
globals().update(PEER.tests(__file__))
