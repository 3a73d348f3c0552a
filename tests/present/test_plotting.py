"""The displays: what is drawn is what the model found and certifies."""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
import pytest

from sksketch import (
    ExplainedVarianceDisplay,
    FrequentDirections,
    LoadingsDisplay,
    RidgePathDisplay,
    SignSketch,
    SpectrumDisplay,
    StreamingPCA,
    StreamingRidge,
    StreamingRidgeCV,
    StreamingSVD,
)
from sksketch.present import plotting
from sksketch.present.plotting import new_axes


@pytest.fixture(autouse=True)
def pyplot():
    """Draw without a window, and leave no figure open."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    return rng.normal(size=(300, 30)) * np.geomspace(9, 0.5, 30)


@pytest.fixture(scope="module")
def pca(rows):
    return StreamingPCA(4, sketch=FrequentDirections(8, solver="exact")).fit(rows)


def bars(ax):
    return [(bar.get_y(), bar.get_height()) for bar in ax.patches]


def test_the_spectrum_shows_variances_inside_their_certified_intervals(pca, rows):
    ax = new_axes()
    display = SpectrumDisplay.from_estimator(pca, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    expected = pca.certificate_.eigenvalues[:4] / (len(rows) - 1)
    drawn = np.array([(low, low + height) for low, height in bars(ax)])
    np.testing.assert_allclose(drawn, expected)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), pca.explained_variance_)
    assert ax.get_yscale() == "log"
    true = np.linalg.eigvalsh(np.cov(rows.T))[::-1][:4]
    assert (drawn[:, 0] <= true).all()
    assert (true <= drawn[:, 1]).all()


def test_the_spectrum_of_a_sketch_is_that_of_its_certificate(rows):
    sketch = FrequentDirections(8, solver="exact").update(rows)
    display = SpectrumDisplay.from_estimator(sketch, n_components=3, ax=new_axes())
    np.testing.assert_allclose(display.intervals, sketch.certificate().eigenvalues[:3])
    summary = sketch.summary()
    np.testing.assert_allclose(display.eigenvalues, summary.eigenvalues[:3] + summary.ridge)
    # Nothing is certified of a random sketch, so no interval is drawn.
    display = SpectrumDisplay.from_estimator(SignSketch(8).update(rows), ax=new_axes())
    assert display.intervals is None
    assert not display.ax_.patches


def test_true_eigenvalues_stand_beside_the_estimates():
    display = SpectrumDisplay([4.0, 0.0], [[3.0, 5.0], [0.0, 1.0]], true_eigenvalues=[4.5, 0.5])
    lines = display.plot(new_axes()).ax_.lines
    assert [line.get_label() for line in lines] == ["estimate", "true"]
    np.testing.assert_array_equal(lines[1].get_ydata(), [4.5, 0.5])


def test_explained_variance_shows_shares_and_what_is_certain_of_their_sums(pca):
    display = ExplainedVarianceDisplay.from_estimator(pca, ax=new_axes())
    heights = [height for _, height in bars(display.ax_)]
    np.testing.assert_allclose(heights, pca.explained_variance_ratio_)
    np.testing.assert_allclose(
        display.ax_.lines[0].get_ydata(), np.cumsum(pca.explained_variance_ratio_)
    )
    np.testing.assert_allclose(display.cumulative_intervals, pca.certificate_.captured_energy[:4])
    assert display.intervals.max() <= 1


def test_loadings_are_the_largest_by_name(rows):
    svd = StreamingSVD(2).fit(rows)
    names = [f"${i}" for i in range(30)]
    display = LoadingsDisplay.from_estimator(
        svd, component=2, n_loadings=5, feature_names=names, ax=new_axes()
    )
    order = np.argsort(-np.abs(svd.components_[1]))[:5]
    assert display.names == [names[i] for i in order]
    np.testing.assert_allclose(display.loadings, svd.components_[1][order])
    display.figure_.canvas.draw()
    with pytest.raises(ValueError, match="from 1 to 2"):
        LoadingsDisplay.from_estimator(svd, component=3)
    with pytest.raises(ValueError, match="3 names for 30 columns"):
        LoadingsDisplay.from_estimator(svd, feature_names=["a", "b", "c"])


def test_the_bars_of_a_ridge_path_hold_the_coefficients_of_the_exact_covariance(rows):
    y = np.stack([rows @ np.linspace(1, 2, 30), rows[:, 0]], axis=1)
    ridge = StreamingRidge(500.0, sketch=FrequentDirections(8, solver="exact")).fit(rows, y)
    exact = StreamingRidge(500.0, sketch="exact").fit(rows, y)
    for target in (0, 1):
        display = RidgePathDisplay.from_estimator(ridge, target=target, ax=new_axes())
        assert ridge.alpha in display.alphas.round(9)
        columns = [int(name.removeprefix("column ")) for name in display.names]
        truth = exact.path(display.alphas).coef[:, target][:, columns]
        assert (np.abs(display.coef - truth) <= display.errors[:, None] + 1e-12).all()
        assert len(display.ax_.containers) == 6
        middle = np.flatnonzero(display.alphas.round(9) == 500.0)[0]
        np.testing.assert_allclose(display.errors[middle], ridge.coef_error_bound_absolute_[target])


def test_a_chosen_penalty_is_marked_and_a_random_sketch_has_no_bars(rows):
    y = rows[:, 0]
    chosen = StreamingRidgeCV([1.0, 10.0]).fit(rows, y)
    display = RidgePathDisplay.from_estimator(chosen, n_coefficients=1, ax=new_axes())
    assert display.alpha == chosen.alpha_
    assert display.alphas[0] < 1.0 < 10.0 < display.alphas[-1]
    random = StreamingRidge(1.0, sketch="sign").fit(rows, y)
    assert np.isinf(RidgePathDisplay.from_estimator(random, ax=new_axes()).errors).all()


def test_without_axes_pyplot_knows_the_figure(pca, pyplot):
    display = SpectrumDisplay.from_estimator(pca)
    assert pyplot.gcf() is display.figure_


def test_what_can_not_be_drawn_is_refused(pca):
    with pytest.raises(TypeError, match="expected a sketch or one of"):
        SpectrumDisplay.from_estimator("model.sks")
    with pytest.raises(ValueError, match="not fitted yet"):
        SpectrumDisplay.from_estimator(StreamingPCA())
    with pytest.raises(ValueError, match="no rows yet"):
        SpectrumDisplay.from_estimator(FrequentDirections(4))
    with pytest.raises(TypeError, match="no coefficients"):
        RidgePathDisplay.from_estimator(pca)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw in (plotting.new_axes, SpectrumDisplay([1.0]).plot):
        with pytest.raises(ImportError, match=r"pip install 'scikit-sketch\[plot\]'"):
            draw()
