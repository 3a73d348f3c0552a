"""Windows and half-lives of estimators, beside models of exactly those rows."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

import sksketch
from sksketch import StreamingPCA, StreamingRidge, StreamingSVD, fit_stream, load
from sksketch.exceptions import NotMergeableError

# So that windows of a few thousand rows are in buckets.
pytestmark = pytest.mark.usefixtures("short_tiles")


def data(n=4000, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.linspace(3, 0.5, d) + 4.0
    X[: n // 2] = X[: n // 2] @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    return X, X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)


def in_blocks(model, X, *others, step=300, **named):
    for start in range(0, len(X), step):
        part = slice(start, start + step)
        model.partial_fit(
            X[part], *(o[part] for o in others), **{k: v[part] for k, v in named.items()}
        )
    return model


@pytest.mark.parametrize("sketch", ["auto", "exact", "rfd"])
def test_a_window_of_pca_is_pca_of_its_rows(sketch):
    X, _ = data()
    window = 2500
    model = in_blocks(StreamingPCA(3, sketch=sketch, sketch_size=12, window=window), X)
    exact = PCA(3).fit(X[-window:])
    assert model.n_samples_seen_ == window
    low, high = model.certificate_.eigenvalues[:3].T / (window - 1)
    assert (low <= exact.explained_variance_).all()
    assert (exact.explained_variance_ <= high).all()
    assert np.linalg.norm(model.mean_ - exact.mean_) <= model.sketch_.mean_error + 1e-12
    np.testing.assert_allclose(model.explained_variance_, exact.explained_variance_, rtol=0.05)


def test_a_window_of_svd_with_times():
    X, _ = data()
    times = np.datetime64("2026-03-01") + np.arange(len(X)) * np.timedelta64(1, "m")
    model = in_blocks(StreamingSVD(3, window="1d"), X, times=times)
    last = X[-1440:]
    truth = np.linalg.svd(last, compute_uv=False)[:3] ** 2
    low, high = model.certificate_.eigenvalues[:3].T
    assert (low <= truth).all()
    assert (truth <= high).all()
    with pytest.raises(ValueError, match="needs the time of each row"):
        model.partial_fit(X)
    with pytest.raises(ValueError, match="got times, which only a window"):
        StreamingSVD(3).fit(X, times=times)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("sketch", ["exact", "rfd"])
@pytest.mark.parametrize("standardize", [True, False])
def test_a_window_of_ridge_is_ridge_of_its_rows(sketch, intercept, standardize):
    X, y = data()
    window = 1700
    if standardize and (sketch != "exact" or not intercept):
        pytest.skip("units of a window are read from its covariance")
    model = StreamingRidge(
        10.0, sketch=sketch, window=window, fit_intercept=intercept, standardize=standardize
    )
    in_blocks(model, X, y)
    A, b = X[-window:], y[-window:]
    unit = model.scale_
    exact = Ridge(10.0, fit_intercept=intercept).fit(A / unit, b)
    off = np.linalg.norm(model.coef_ * unit - exact.coef_)
    assert off <= model.coef_error_bound_ * np.linalg.norm(exact.coef_) + 1e-10
    low, high = model.r2_interval_
    r2 = 1 - ((b - A @ model.coef_ - model.intercept_) ** 2).sum() / ((b - b.mean()) ** 2).sum()
    assert low - 1e-9 <= (r2 if intercept else np.clip(r2, low, high)) <= high + 1e-9
    bound = model.prediction_error_bound(A)
    assert (abs(A @ model.coef_ + model.intercept_ - exact.predict(A / unit)) <= bound + 1e-8).all()


def weighted(X, half_life):
    w = 0.5 ** (np.arange(len(X) - 1, -1, -1) / half_life)
    return w, w @ X / w.sum()


def test_a_half_life_weighs_rows_by_their_age():
    X, y = data()
    w, mean = weighted(X, 400.0)
    S = ((X - mean) * w[:, None]).T @ (X - mean)
    pca = in_blocks(StreamingPCA(3, half_life=400.0), X)
    np.testing.assert_allclose(
        pca.explained_variance_, np.linalg.eigvalsh(S)[::-1][:3] / (w.sum() - 1), rtol=1e-9
    )
    for intercept in (True, False):
        ridge = StreamingRidge(5.0, half_life=400.0, fit_intercept=intercept)
        in_blocks(ridge, X, y)
        exact = Ridge(5.0, fit_intercept=intercept).fit(X, y, sample_weight=w)
        np.testing.assert_allclose(ridge.coef_, exact.coef_, rtol=1e-7)
        np.testing.assert_allclose(ridge.intercept_, exact.intercept_, rtol=1e-7, atol=1e-9)
        off = np.linalg.norm(ridge.coef_ - exact.coef_) / np.linalg.norm(exact.coef_)
        assert off <= ridge.coef_error_bound_
    sketched = in_blocks(StreamingRidge(50.0, half_life=400.0, sketch="rfd", sketch_size=10), X, y)
    exact = Ridge(50.0).fit(X, y, sample_weight=w)
    off = np.linalg.norm(sketched.coef_ - exact.coef_) / np.linalg.norm(exact.coef_)
    assert off <= sketched.coef_error_bound_


@pytest.mark.parametrize("kind", [StreamingPCA, StreamingSVD, StreamingRidge])
@pytest.mark.parametrize("options", [{"window": 700}, {"half_life": 100.0}])
def test_saved_and_resumed_models_go_on_with_the_same_bits(kind, options, tmp_path):
    X, y = data(1500)
    others = (y,) if kind is StreamingRidge else ()
    whole = in_blocks(kind(**options), X, *others)
    half = in_blocks(kind(**options), X[:900], *(o[:900] for o in others))
    half.save(tmp_path / "half.sks")
    again = in_blocks(load(tmp_path / "half.sks"), X[900:], *(o[900:] for o in others))
    for name in ("coef_",) if others else ("components_", "explained_variance_"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(again, name))
    source = (X, y) if others else X
    streamed = fit_stream(kind(**options), source, progress=False)
    name = "coef_" if others else "components_"
    np.testing.assert_array_equal(getattr(whole, name), getattr(streamed, name))


def test_windows_of_parts_are_the_window_of_all():
    da = pytest.importorskip("dask.array")
    X, _ = data()
    model = StreamingPCA(2, window=900).fit(da.from_array(X, chunks=(500, -1)))
    assert model.n_samples_seen_ == 900
    assert np.linalg.norm(model.mean_ - X[-900:].mean(0)) <= model.sketch_.mean_error + 1e-12
    first, second = (StreamingPCA(2, window=900).fit(part) for part in (X[:2000], X[2000:]))
    assert first.merge(second).n_samples_seen_ == 900
    for options, words in (({"half_life": 5.0}, "half_life"), ({"window": "7d"}, "times")):
        with pytest.raises(NotMergeableError, match=words):
            StreamingPCA(2, **options).fit(da.from_array(X, chunks=(500, -1)))


def test_what_cannot_be_forgotten_is_refused():
    X, y = data(100)
    for kind in (StreamingPCA, StreamingSVD, StreamingRidge):
        for window in (0, -5, 2.5, "week", True, "0d"):
            with pytest.raises(ValueError, match="window is"):
                kind(window=window).fit(X, y)
        with pytest.raises(ValueError, match="at most one of them"):
            kind(window=5, half_life=5.0).fit(X, y)
        with pytest.raises(ValueError, match="needs a sketch that forgets"):
            kind(half_life=5.0, sketch="sfd").fit(X, y)
        with pytest.raises(ValueError, match="half_life and a sketch"):
            kind(half_life=5.0, sketch=sksketch.ExactCovariance()).fit(X, y)
        with pytest.raises(ValueError, match="half_life is"):
            kind(half_life=0.0).fit(X, y)
    with pytest.raises(ValueError, match="refine looks at all rows"):
        StreamingRidge(refine=1, window=50).fit(X, y)
    with pytest.raises(ValueError, match="tol is for one sketch"):
        StreamingPCA(2, window=50, tol=0.1).fit(X)
    with pytest.raises(ValueError, match="not of a window"):
        StreamingSVD(2, window=50, standardize=True).fit(X)
