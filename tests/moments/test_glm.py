"""Generalized linear models by passes, against scipy's optimum of the likelihood and formulas."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from sksketch import StreamingGLM, fit_dask, fit_stream, load
from sksketch.exceptions import NotMergeableError
from sksketch.moments.families import FAMILIES, LINKS


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def table(rng, family, n=600):
    X = rng.standard_normal((n, 3)) * [1.0, 10.0, 0.1] + [0.0, 3.0, 0.0]
    predictor = X @ [0.5, 0.02, 3.0] + 0.3
    y = {
        "binomial": lambda: (rng.random(n) < 1.0 / (1.0 + np.exp(-predictor))).astype(float),
        "poisson": lambda: rng.poisson(np.exp(predictor)).astype(float),
        "gaussian": lambda: predictor + rng.standard_normal(n),
        "gamma": lambda: rng.gamma(2.0, 0.5 / np.maximum(predictor + 4.0, 0.5)),
    }[family]()
    return X, y


def optimum(X, y, w, family, link, alpha):
    """Return the minimum of the deviance by Newton's method with exact derivatives, dense."""
    X = np.column_stack([np.ones(len(X)), X])
    law, of = FAMILIES[family], LINKS[link]
    penalties = alpha * np.array([0.0, *np.ones(X.shape[1] - 1)])

    def objective(b):
        mean = law.inside(of.mean(X @ b))
        return w @ law.deviance(y, mean) + penalties @ b**2

    def gradient(b):
        mean = law.inside(of.mean(X @ b))
        return -2.0 * X.T @ (w * (y - mean) / law.variance(mean) / of.slope(mean)) + (
            2.0 * penalties * b
        )

    start = np.linalg.lstsq(X, of.of_mean(law.inside(law.start(y))), rcond=None)[0]
    if family == "gamma":
        start = np.array([1.0 / y.mean(), *np.zeros(X.shape[1] - 1)])
    b = optimize.minimize(objective, start, jac=gradient, method="BFGS").x
    for _ in range(20):
        # The gradient by finite differences of itself, which is exact to half the digits.
        H = np.stack([gradient(b + h) - gradient(b - h) for h in 1e-6 * np.eye(len(b))]) / 2e-6
        b = b - np.linalg.solve(H, gradient(b))
    mean = law.inside(of.mean(X @ b))
    W = w / (of.slope(mean) ** 2 * law.variance(mean))
    M = X.T @ (W[:, None] * X)
    G = np.linalg.inv(M + np.diag(penalties))
    scale = 1.0
    if law.has_dispersion:
        df = w.sum() - np.trace(G @ M)
        scale = (w * (y - mean) ** 2 / law.variance(mean)).sum() / df
    return b, np.sqrt(scale * np.diag(G @ M @ G)), objective(b) - penalties @ b**2


@pytest.mark.parametrize("alpha", [0.0, 5.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", list(FAMILIES))
def test_is_the_optimum(rng, family, weighted, alpha):
    X, y = table(rng, family)
    w = rng.integers(0, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    model = StreamingGLM(family, alpha=alpha).fit(X, y, sample_weight=w if weighted else None)
    found = model.inference()
    b, errors, deviance = optimum(X, y, w, family, FAMILIES[family].link, alpha)
    np.testing.assert_allclose(found.coef, b, rtol=1e-7)
    np.testing.assert_allclose(found.standard_error, errors, rtol=1e-7)
    assert model.deviance_ == pytest.approx(deviance, rel=1e-9)
    assert model.converged_
    assert not model.separated_
    mean = LINKS[FAMILIES[family].link].mean(X @ model.coef_ + model.intercept_)
    np.testing.assert_allclose(model.predict(X), mean, rtol=1e-9)
    base = FAMILIES[family].deviance(y, np.full(len(y), w @ y / w.sum()))
    assert model.null_deviance_ == pytest.approx(w @ base, rel=1e-9)
    assert "Generalized linear model" in str(found)


def test_gaussian_needs_one_pass(rng):
    X, y = table(rng, "gaussian")
    model = StreamingGLM("gaussian").partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    assert model.converged_
    assert model.n_iter_ == 1
    design = np.column_stack([np.ones(len(X)), X])
    expected = np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose([model.intercept_, *model.coef_], expected, rtol=1e-9)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_every_runner_and_any_blocks_give_the_same(rng, family, tmp_path):
    X, y = table(rng, family)
    whole = StreamingGLM(family).fit(X, y)
    streamed = fit_stream(StreamingGLM(family), (X, y), progress=False)
    assert np.array_equal(streamed.coef_, whole.coef_)
    assert np.array_equal(streamed.inference().standard_error, whole.inference().standard_error)
    da = pytest.importorskip("dask.array")
    shared = fit_dask(StreamingGLM(family), da.from_array(X, (130, -1)), da.from_array(y, 130))
    np.testing.assert_allclose(shared.coef_, whole.coef_, rtol=1e-9)
    assert shared.converged_
    by_hand = StreamingGLM(family)
    for _ in range(by_hand.max_passes):
        for start in range(0, len(X), 77):
            by_hand.partial_fit(X[start : start + 77], y[start : start + 77])
            if start == 154:
                # Resumes in the middle of a pass.
                by_hand.save(tmp_path / "glm.sks")
                by_hand = load(tmp_path / "glm.sks")
        by_hand.next_pass()
        if by_hand.has_converged:
            break
    assert np.array_equal(by_hand.coef_, whole.coef_)
    sparse = StreamingGLM(family).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, whole.coef_, rtol=1e-7)


def test_a_checkpoint_resumes_between_and_within_passes(rng, tmp_path):
    X, y = table(rng, "poisson")
    whole = fit_stream(StreamingGLM("poisson"), (X, y), progress=False)

    class StopError(Exception):
        pass

    for stop in (300, 600, 1100, 1800):

        def watch(done, total, stop=stop):
            if done >= stop:
                raise StopError

        path = tmp_path / f"{stop}.ckpt"
        options = {"checkpoint": path, "every": 100}
        with pytest.raises(StopError):
            fit_stream(StreamingGLM("poisson"), (X, y), progress=watch, **options)
        model = fit_stream(StreamingGLM("poisson"), (X, y), progress=False, **options)
        assert np.array_equal(model.coef_, whole.coef_)


def test_a_start_saves_passes(rng):
    X, y = table(rng, "binomial")
    plain = StreamingGLM().fit(X, y)
    near = [plain.intercept_ + 1e-3, *(plain.coef_ + 1e-3)]
    started = fit_stream(StreamingGLM(start=near), (X, y), progress=False)
    assert started.n_iter_ < plain.n_iter_
    np.testing.assert_allclose(started.coef_, plain.coef_, rtol=1e-9)
    assert started.null_deviance_ == pytest.approx(plain.null_deviance_)
    again = StreamingGLM.from_state(started.state())
    assert np.array_equal(again.coef_, started.coef_)
    with pytest.raises(ValueError, match="start has 2 numbers"):
        StreamingGLM(start=[0.0, 1.0]).fit(X, y)


def test_separation_is_said():
    x = np.linspace(-1.0, 1.0, 40)[:, None]
    model = StreamingGLM().fit(x, x[:, 0] > 0.0)
    with pytest.warns(ConvergenceWarning, match="a plane separates zeros from ones"):
        _ = model.coef_
    assert model.separated_
    assert "separates" in str(model.inference())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ridged = StreamingGLM(alpha=1.0).fit(x, x[:, 0] > 0.0)
        assert ridged.converged_
        assert np.isfinite(ridged.coef_).all()


def test_too_few_passes_are_said(rng):
    X, y = table(rng, "poisson")
    model = StreamingGLM("poisson", max_passes=2).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="not converged after 2 passes"):
        _ = model.coef_
    assert not model.separated_


def test_collinear_columns_have_finite_answers(rng):
    X, y = table(rng, "binomial")
    wide = np.column_stack([X, X[:, 0] - X[:, 2], np.full(len(X), 3.0)])
    model, plain = StreamingGLM().fit(wide, y), StreamingGLM().fit(X, y)
    np.testing.assert_allclose(model.predict(wide), plain.predict(X), rtol=1e-6)
    found = model.inference()
    assert found.rank == 4
    assert np.isfinite(found.standard_error).all()
    assert "depend on others" in str(found)


def test_refusals(rng):
    X, y = table(rng, "poisson")
    with pytest.raises(ValueError, match="takes 0 and 1"):
        StreamingGLM().fit(X, y)
    with pytest.raises(ValueError, match="got the text 'no'; recode them, as in y == 'no'"):
        StreamingGLM().fit(X, np.where(y > 1, "yes", "no"))
    with pytest.raises(ValueError, match="takes positive numbers"):
        StreamingGLM("gamma").fit(X, y)
    with pytest.raises(ValueError, match="family is 'tweedie'"):
        StreamingGLM("tweedie").fit(X, y)
    with pytest.raises(NotMergeableError, match="different passes"):
        StreamingGLM("poisson").fit(X, y).merge(StreamingGLM("poisson").fit(X[1:], y[1:]))
    model = StreamingGLM("poisson").fit(X, y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(X, np.where(y == y[0], np.nan, y))
    assert np.array_equal(model.coef_, before)
