"""Mixtures from three views: weights, densities and classes, against the rows' own."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.base import clone

import sksketch
from sksketch import MultiviewMixture

# The smoothed densities are compared on this grid.
GRID = np.arange(-9.0, 18.0, 0.02)


def normal_and_gamma(n: int, seed: int = 0):
    """Return classes and three views of N(-2, 1) and Gamma(1.2, scale 1.5), equally likely."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n) < 0.5
    draw = [np.where(hidden, rng.gamma(1.2, 1.5, n), rng.normal(-2, 1, n)) for _ in range(3)]
    return hidden, [x[:, None] for x in draw]


def smoothed_truth(sigma: float):
    """Return both densities on the grid, convolved with N(0, sigma^2)."""
    step = GRID[1] - GRID[0]
    edges = np.append(GRID - step / 2, GRID[-1] + step / 2)
    gamma = np.diff(stats.gamma.cdf(edges, 1.2, scale=1.5)) / step
    window = np.arange(-6 * sigma, 6 * sigma + step / 2, step)
    bell = stats.norm.pdf(window, 0, sigma)
    normal = stats.norm.pdf(GRID, -2, np.hypot(1, sigma))
    return np.array([normal, np.convolve(gamma, bell / bell.sum(), "same")])


def l1_errors(model, sigma: float):
    """Return the L1 distances of both densities in the best order of the components."""
    found = model.density(GRID[:, None]).T
    table = np.abs(found[:, None] - smoothed_truth(sigma)).sum(axis=2) * 0.02
    return min((table[0, 0], table[1, 1]), (table[1, 0], table[0, 1]), key=sum)


@pytest.fixture(scope="module")
def rows():
    return normal_and_gamma(100_000)


@pytest.mark.parametrize("features", [{"n_random_features": 256}, {"landmarks": 64}])
def test_weights_and_densities_with_the_lift(rows, features):
    hidden, views = rows
    model = MultiviewMixture(2, bandwidth=0.3, lift_rows=10_000, **features)
    model.fit(*(X.astype(np.float32) for X in views))
    assert np.abs(model.weights_ - 0.5).max() < 0.01
    assert abs(model.weight_sum_ - 1) < 0.01
    assert max(l1_errors(model, 0.3)) < 0.03
    some = [X[:500] for X in views]
    accuracy = (model.predict(*some) == hidden[:500]).mean()
    assert max(accuracy, 1 - accuracy) > 0.99
    np.testing.assert_allclose(model.predict_proba(*some).sum(axis=1), 1.0)


def test_without_the_lift_the_features_are_the_error(rows):
    views = [X.astype(np.float32) for X in rows[1]]
    few = MultiviewMixture(2, bandwidth=0.3, n_random_features=256, lift_rows=0).fit(*views)
    good = MultiviewMixture(2, bandwidth=0.3, landmarks=400, lift_rows=0).fit(*views)
    assert min(l1_errors(few, 0.3)) > 0.3
    assert max(l1_errors(good, 0.3)) < 0.03
    assert few.density_bandwidth_ == few.bandwidth_ == 0.3


def test_defaults_tell_apart_with_the_median_and_show_with_silverman(rows):
    model = MultiviewMixture(lift_rows=10_000, landmarks=64).fit(*rows[1])
    assert 2.0 < model.bandwidth_ < 2.5
    assert 0.1 < model.density_bandwidth_ < 0.3
    assert np.abs(model.weights_ - 0.5).max() < 0.01
    assert max(l1_errors(model, model.density_bandwidth_)) < 0.05
    both = model.density(GRID[:, None])
    np.testing.assert_array_equal(both[:, 1], model.density(GRID[:, None], 1))
    total = both[:, 0].sum() * 0.02
    assert total == pytest.approx(1.0, abs=0.02)


def test_views_with_conditionals_and_columns_of_their_own():
    rng = np.random.default_rng(0)
    n = 20_000
    hidden = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    centers = [[[-4.0], [0.0], [4.0]], [[0.0, 3.0], [0.0, -3.0], [4.0, 0.0]], [[6.0], [0], [3.0]]]
    views = [np.array(c)[hidden] + rng.standard_normal((n, len(c[0]))) for c in centers]
    model = MultiviewMixture(
        3, same_conditionals=False, landmarks=100, bandwidth=1.0, lift_rows=5000
    )
    model.fit(*views)
    np.testing.assert_allclose(model.weights_, np.bincount(hidden) / n, atol=0.02)
    assert model.bandwidth_ == (1.0, 1.0, 1.0)
    for view, c in enumerate(centers, 1):
        d = len(c[0])
        for component in range(3):
            # The peak of a normal density of variance 2.
            found = model.density([c[component]], component, view=view)
            assert found[0] == pytest.approx((4 * np.pi) ** (-d / 2), rel=0.15)
    new = [X[:1000] for X in views]
    assert (model.predict(*new) == hidden[:1000]).mean() > 0.95
    with pytest.raises(ValueError, match="X2 has 1 columns, expected 2"):
        model.predict(new[0], new[0], new[2])


def test_more_components_than_there_are_get_a_warning(rows):
    views = [X[:20_000] for X in rows[1]]
    with pytest.warns(UserWarning, match="tell 2 components apart, not n_components=3"):
        MultiviewMixture(3, landmarks=64, lift_rows=0).fit(*views)


def test_views_without_anything_in_common_are_no_mixture():
    rng = np.random.default_rng(0)
    views = [rng.standard_normal((2000, 1)) for _ in range(3)]
    model = MultiviewMixture(2, landmarks=40)
    with pytest.raises(ValueError, match="do not tell 2 components apart"):
        model.fit(*views)
    assert not hasattr(model, "weights_")
    one = MultiviewMixture(1, landmarks=40).fit(*views)
    assert one.weights_ == [1.0]
    assert one.weight_sum_ == pytest.approx(1.0, abs=0.05)


def test_constant_views_have_one_component():
    views = [np.full((100, 2), 3.0)] * 3
    with pytest.raises(ValueError, match="do not tell 2 components apart"):
        MultiviewMixture(2).fit(*views)
    model = MultiviewMixture(1).fit(*views)
    assert model.weights_ == [1.0]
    assert model.weight_sum_ == pytest.approx(1.0)


def test_few_triples():
    _, views = normal_and_gamma(300)
    model = MultiviewMixture(2).fit(*views)
    assert np.abs(model.weights_ - 0.5).max() < 0.15
    with pytest.raises(ValueError, match="got 1 triples for n_components=2"):
        MultiviewMixture(2).fit(*(X[:1] for X in views))
    with pytest.raises(ValueError, match="n_components=2 needs as many features, got 1"):
        MultiviewMixture(2, landmarks=1).fit(*views)


def test_vectors_are_one_column():
    _, views = normal_and_gamma(2000)
    model = MultiviewMixture(2, landmarks=40)
    flat = clone(model).fit(*(X[:, 0] for X in views))
    model.fit(*views)
    np.testing.assert_array_equal(flat.weights_, model.weights_)
    np.testing.assert_array_equal(flat.density(GRID[:9], 0), model.density(GRID[:9, None], 0))


def test_wrong_views_are_refused_and_leave_the_model_as_it_was():
    _, views = normal_and_gamma(500)
    model = MultiviewMixture(2, landmarks=20).fit(*views)
    before = model.weights_
    with pytest.raises(ValueError, match="the views have 500, 499, 500 rows"):
        model.fit(views[0], views[1][:-1], views[2])
    broken = views[2].copy()
    broken[3] = np.nan
    with pytest.raises(ValueError, match="X3 contains NaN"):
        model.fit(views[0], views[1], broken)
    wide = np.column_stack([views[1], views[1]])
    with pytest.raises(ValueError, match="X2 has 2 columns, expected 1; views of different"):
        model.fit(views[0], wide, views[2])
    assert model.weights_ is before
    with pytest.raises(ValueError, match="component is 2; give one of None, 0, 1"):
        model.density(views[0], 2)
    with pytest.raises(ValueError, match="view is 0"):
        model.density(views[0], 0, view=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components is 0"),
        ({"kernel": "polynomial"}, "kernel is 'polynomial'; give one of 'gaussian'"),
        ({"lift_rows": -1}, "lift_rows is -1"),
        ({"density_bandwidth": "wide"}, "density_bandwidth is 'wide'"),
        ({"density_bandwidth": 0.1, "lift_rows": 0}, "keeps no rows to use it on"),
        ({"bandwidth": 0.0}, "bandwidth is 0.0"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    _, views = normal_and_gamma(50)
    with pytest.raises(ValueError, match=message):
        MultiviewMixture(**options).fit(*views)


def test_parameters_are_those_of_scikit_learn():
    model = MultiviewMixture(3, kernel="laplacian", bandwidth=2.0)
    copy = clone(model).set_params(n_components=2)
    assert copy.get_params() == model.get_params() | {"n_components": 2}
    assert not hasattr(copy, "weights_")


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "cauchy", "matern"])
def test_all_kernels_with_a_density(kernel):
    _, views = normal_and_gamma(20_000)
    model = MultiviewMixture(2, kernel=kernel, bandwidth=0.5, n_random_features=256)
    model.set_params(lift_rows=3000).fit(*views)
    assert np.abs(model.weights_ - 0.5).max() < 0.03
    grid = np.arange(-150.0, 150.0, 0.2)[:, None]
    assert model.density(grid, 1).sum() * 0.2 == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("lift_rows", [0, 100])
def test_saved_and_loaded_it_answers_the_same(tmp_path, shared, lift_rows):
    _, views = normal_and_gamma(1000)
    for features in ({"landmarks": 30}, {"n_random_features": 64}):
        model = MultiviewMixture(
            2, same_conditionals=shared, lift_rows=lift_rows, kernel="matern", **features
        ).fit(*views)
        model.save(tmp_path / "model.sks")
        loaded = sksketch.load(tmp_path / "model.sks")
        assert loaded.get_params() == model.get_params()
        np.testing.assert_array_equal(loaded.weights_, model.weights_)
        assert loaded.weight_sum_ == model.weight_sum_
        assert loaded.density_bandwidth_ == model.density_bandwidth_
        for view in (1, 3):
            np.testing.assert_array_equal(
                loaded.density(GRID[::50], 1, view=view), model.density(GRID[::50], 1, view=view)
            )
        np.testing.assert_array_equal(loaded.predict(*views), model.predict(*views))


def test_sparse_rows_and_torch_arrays_agree_with_numpy():
    _, views = normal_and_gamma(1000)
    model = MultiviewMixture(2, landmarks=30, lift_rows=200)
    plain = clone(model).fit(*views)
    sparse = clone(model).fit(*map(sp.csr_array, views))
    np.testing.assert_allclose(sparse.weights_, plain.weights_, rtol=1e-6)
    some = GRID[::100, None]
    np.testing.assert_allclose(
        sparse.density(sp.csr_array(some), 0), plain.density(some, 0), rtol=1e-5, atol=1e-8
    )
    torch = pytest.importorskip("torch")
    device = clone(model).fit(*map(torch.asarray, views))
    np.testing.assert_allclose(device.weights_, plain.weights_, rtol=1e-6)
    found = device.density(torch.asarray(some), 0)
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), plain.density(some, 0), rtol=1e-5, atol=1e-8)


def test_blocks_are_invisible(monkeypatch):
    _, views = normal_and_gamma(3000)
    model = MultiviewMixture(2, landmarks=30)
    whole = clone(model).fit(*views).weights_
    monkeypatch.setattr("sksketch.kernel_methods.latent.multiview.BLOCK_BYTES", 1)
    np.testing.assert_allclose(model.fit(*views).weights_, whole, rtol=1e-7)
