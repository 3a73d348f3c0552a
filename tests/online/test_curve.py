"""The progressive error of an online learner, kept in the model."""

import numpy as np
import pytest

from sksketch import OnlineNewtonClassifier, OnlineNewtonRegressor


@pytest.mark.parametrize("kind", [OnlineNewtonClassifier, OnlineNewtonRegressor])
def test_the_curve_does_not_depend_on_blocks_and_is_saved(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = X @ np.arange(4.0) + rng.standard_normal(300)
    if kind is OnlineNewtonClassifier:
        y = np.where(y > 0, 1, -1)

    def learned(cuts):
        model = kind()
        options = {"classes": [-1, 1]} if kind is OnlineNewtonClassifier else {}
        for part in np.split(np.arange(300), cuts):
            model.partial_fit(X[part], y[part], **options)
            model = kind.from_state(model.state())
        return model

    whole, cut = learned([]), learned([1, 2, 40, 41, 200])
    curve = whole.online_error_curve_
    np.testing.assert_array_equal(curve, cut.online_error_curve_)
    np.testing.assert_array_equal(curve[:, 0], [1, 2, 4, 8, 16, 32, 64, 128, 256, 300])
    assert curve[-1, 1] == pytest.approx(whole.online_error_)
    assert curve[-1, 2] == pytest.approx(whole.baseline_error_)
    single = kind()
    for row, target in zip(X[:20], y[:20], strict=True):
        single.learn_one(dict(enumerate(row)), target)
    assert len(single.online_error_curve_) in (0, 6)
