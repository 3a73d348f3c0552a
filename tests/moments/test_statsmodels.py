"""Standard errors beside those of statsmodels, where that is installed."""

import warnings

import numpy as np
import pytest

from sksketch import StreamingGLM, StreamingRidge

sm = pytest.importorskip("statsmodels.api", reason="statsmodels, the peer, is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def problems(rng):
    X = rng.standard_normal((500, 5)) + 10.0
    y = X @ rng.standard_normal(5) + np.abs(X[:, 0]) * rng.standard_normal(500)
    dummies = np.eye(3)[rng.integers(0, 3, 500)]
    return {
        "random": (X, y),
        "collinear": (np.column_stack([X, X[:, 0] + X[:, 1], X[:, 2]]), y),
        "dummies": (np.column_stack([X, dummies]), y),
    }


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("covariance", ["classical", "HC0", "HC1", "HC2", "HC3", "cluster"])
def test_least_squares(rng, covariance, weighted, intercept):
    groups, w = rng.integers(0, 30, 500), rng.random(500) + 0.5
    for name, (X, y) in problems(rng).items():
        design = np.column_stack([np.ones(500), X]) if intercept else X
        peer = sm.WLS(y, design, weights=w) if weighted else sm.OLS(y, design)
        more = {"cov_kwds": {"groups": groups}} if covariance == "cluster" else {}
        kind = "nonrobust" if covariance == "classical" else covariance
        expected = peer.fit(cov_type=kind, **more)
        model = StreamingRidge(alpha=0.0, fit_intercept=intercept)
        model.fit(X, y, sample_weight=w if weighted else None)
        found = model.inference(covariance, weights="analytic", groups=groups)
        pairs = {
            "coef": expected.params,
            "standard_error": expected.bse,
            "statistic": expected.tvalues,
            "log_likelihood": expected.llf,
            "aic": expected.aic,
            "bic": expected.bic,
            "df_resid": expected.df_resid,
        }
        if name != "dummies" or intercept:
            # Without a column of ones statsmodels looks for one among the others.
            pairs |= {"r2": expected.rsquared, "adjusted_r2": expected.rsquared_adj}
        for field, value in pairs.items():
            message = f"{name} {field}"
            np.testing.assert_allclose(getattr(found, field), value, rtol=1e-9, err_msg=message)
        np.testing.assert_allclose(found.interval, expected.conf_int(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", ["binomial", "poisson", "gaussian", "gamma"])
def test_generalized_models(rng, family, weighted):
    X = rng.standard_normal((2000, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 3.0, 0.0, 0.0]
    predictor = X @ [0.5, 0.02, 3.0, -0.2] + 0.3
    y = {
        "binomial": (rng.random(2000) < 1.0 / (1.0 + np.exp(-predictor))).astype(float),
        "poisson": rng.poisson(np.exp(predictor)).astype(float),
        "gaussian": predictor + rng.standard_normal(2000),
        "gamma": rng.gamma(2.0, 0.5 / np.maximum(predictor - predictor.min() + 1.0, 0.5)),
    }[family]
    w = rng.integers(1, 4, 2000) if weighted else None
    law = getattr(sm.families, family.capitalize())()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = sm.GLM(y, np.column_stack([np.ones(2000), X]), family=law, freq_weights=w)
        expected = peer.fit(tol=1e-14, maxiter=200)
    model = StreamingGLM(family).fit(X, y, sample_weight=w)
    found = model.inference()
    np.testing.assert_allclose(found.coef, expected.params, rtol=1e-7)
    np.testing.assert_allclose(found.standard_error, expected.bse, rtol=1e-7)
    np.testing.assert_allclose(found.residual_deviance, expected.deviance, rtol=1e-9)
    np.testing.assert_allclose(model.null_deviance_, expected.null_deviance, rtol=1e-9)
    np.testing.assert_allclose(found.aic, expected.aic, rtol=1e-7)
    np.testing.assert_allclose(found.p_value, expected.pvalues, rtol=1e-6, atol=1e-12)
