"""scikit-learn's checks of the estimators of this theme."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from sksketch import StreamingCCA, StreamingGLM, StreamingPLS

MODELS = [
    StreamingCCA(1),
    StreamingCCA(1, ridge=1.0, sketch="rfd", sketch_size=3),
    StreamingPLS(1),
    StreamingPLS(1, mode="regression"),
    StreamingPLS(1, mode="canonical", sketch="rfd", sketch_size=3),
    StreamingGLM("gaussian"),
    StreamingGLM("poisson", alpha=1.0),
    StreamingGLM("gamma", alpha=1.0, link="log"),
]


PAIRS = "fit_transform gives the scores of both views, as that of scikit-learn's own PLS"
EXPECTED = {"check_transformer_general": PAIRS, "check_transformer_data_not_an_array": PAIRS}


def expected(estimator):
    return {} if isinstance(estimator, StreamingGLM) else EXPECTED


@parametrize_with_checks(MODELS, expected_failed_checks=expected)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
