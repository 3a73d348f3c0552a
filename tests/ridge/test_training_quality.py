"""R2 and RMSE of the rows learned from, read from the sketch."""

import numpy as np
import pytest
from sklearn.metrics import r2_score, root_mean_squared_error

from sksketch import StreamingRidge

pytestmark = pytest.mark.filterwarnings("ignore:the coefficients are certain only to")

OPTIONS = [
    {},
    {"standardize": True},
    {"fit_intercept": False},
    {"sketch": "fd", "sketch_size": 4, "refine": 2},
    {"sketch": "rfd", "sketch_size": 4, "standardize": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("n_targets", [1, 2])
def test_the_interval_holds_the_true_r2(options, n_targets):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 30)) * np.geomspace(1, 30, 30) + 1.0
    Y = X @ rng.standard_normal((30, 2)) + 20.0 * rng.standard_normal((900, 2))
    y = Y if n_targets > 1 else Y[:, 0]
    model = StreamingRidge(300.0, **options).fit(X, y)
    predicted = model.predict(X)
    exact = np.atleast_1d(r2_score(y, predicted, multioutput="raw_values"))
    low, high = np.atleast_2d(model.r2_interval_).T
    assert (low <= exact + 1e-12).all()
    assert (exact <= high + 1e-12).all()
    if "sketch" not in options:
        np.testing.assert_allclose(np.atleast_1d(model.r2_), exact, rtol=1e-9)
        rmse = root_mean_squared_error(y, predicted, multioutput="raw_values")
        np.testing.assert_allclose(np.atleast_1d(model.rmse_), rmse, rtol=1e-9)
        assert model.training_quality_["r2"] == pytest.approx(exact.mean())


def test_a_linear_sketch_estimates_it():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2000, 5))
    y = X.sum(axis=1) + rng.standard_normal(2000)
    model = StreamingRidge(1.0, sketch="gaussian", sketch_size=800).fit(X, y)
    assert model.r2_ == pytest.approx(model.score(X, y), abs=0.05)
    assert model.r2_interval_[1] == 1.0
