"""scikit-learn's checks of the estimators of this theme, and of what forgets elsewhere."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from sksketch import StreamingOutlierDetector, StreamingPCA, StreamingRidge, StreamingSVD

MODELS = [
    StreamingOutlierDetector(),
    StreamingOutlierDetector(2, contamination=0.1, robust=True),
    StreamingOutlierDetector(window=50),
    StreamingOutlierDetector(half_life=20.0),
    StreamingPCA(1, window=50),
    StreamingSVD(1, half_life=20.0),
    StreamingRidge(window=50),
]


STEPS = "a row is one step of forgetting, and copies of it are several"
COPIES = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]


def expected(estimator):
    forgets = isinstance(estimator, StreamingSVD) and estimator.half_life is not None
    return dict.fromkeys(COPIES, STEPS) if forgets else {}


@parametrize_with_checks(MODELS, expected_failed_checks=expected)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
