"""Units do not matter: reduced models with ``standardize`` beside those of a scaler."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from sksketch import ReducedClassifier, ReducedRegressor


@pytest.fixture
def data():
    rng = np.random.default_rng(2)
    Z = rng.standard_normal((600, 5)) @ rng.standard_normal((5, 40))
    X = (Z + 0.1 * rng.standard_normal(Z.shape) + 1.0) * np.geomspace(1e-4, 1e4, 40)
    X[:, 3] = 2.0
    y = Z @ rng.standard_normal(40)
    return X, y, np.where(y > 0, "yes", "no")


@pytest.mark.parametrize("method", ["nor", "nordr", "rp", "rpdr", "dsrr"])
@pytest.mark.parametrize("style", [np.asarray, sp.csr_array])
def test_a_model_is_that_of_standardized_rows(data, method, style):
    X, y, labels = data
    scaler = StandardScaler(with_mean=False).fit(X)
    Z = style(scaler.transform(X))
    for kind, targets in ((ReducedClassifier, labels), (ReducedRegressor, y)):
        options = {"method": method, "alpha": 1e-2, "tol": 1e-9}
        model = kind(10, standardize=True, **options).fit(style(X), targets)
        plain = kind(10, **options).fit(Z, targets)
        np.testing.assert_allclose(model.scale_, scaler.scale_, rtol=1e-10)
        np.testing.assert_allclose(model.coef_ * model.scale_, plain.coef_, atol=1e-4)
        np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-4)
        assert model.score(X, targets) == pytest.approx(plain.score(Z, targets), abs=1e-3)
        assert model.objective_gap_bound_ == pytest.approx(plain.objective_gap_bound_, rel=1e-2)
        again = kind.from_state(model.state())
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.scale_, model.scale_)
        np.testing.assert_array_equal(plain.scale_, np.ones(40))


def test_rows_of_a_source_are_measured_first(data, tmp_path):
    X, y, _ = data
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    from sksketch import open_rows

    source = open_rows(tmp_path / "rows.npy", target=40)
    model = ReducedRegressor(10, standardize=True).fit_rows(source)
    whole = ReducedRegressor(10, standardize=True).fit(X, y)
    np.testing.assert_allclose(model.scale_, whole.scale_, rtol=1e-10)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-4)
    path = whole.path(X, y, [whole.alpha])
    np.testing.assert_allclose(path.coef[0, 0], whole.coef_, rtol=1e-6)
