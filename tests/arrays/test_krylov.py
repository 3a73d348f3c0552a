"""Coverage of the probabilistic bound on the largest eigenvalue, by simulation."""

import numpy as np
import pytest
import scipy.stats

from sksketch.arrays.krylov import top_eigenvalue

WIDTH = 60
SPECTRA = {
    "flat": np.ones(WIDTH),
    "isolated": np.concatenate([[1.02], np.ones(WIDTH - 1)]),
    "isolated by more": np.concatenate([[1.3], np.ones(WIDTH - 1)]),
    "bulk below": np.concatenate([[1.0], np.linspace(0.9, 0.0, WIDTH - 1)]),
    "decaying": np.arange(1.0, WIDTH + 1) ** -1.5,
    "cluster": np.concatenate([np.linspace(1.0, 0.98, 6), np.full(WIDTH - 6, 0.5)]),
    "faint top": np.concatenate([[1.0], np.full(WIDTH - 1, 0.02)]),
}


def runs(spectrum, probability, n_runs, depth, n_probes):
    """Return estimates and bounds over seeds, relative to the true largest eigenvalue."""
    # Gaussian probes do not care about a rotation, so a diagonal matrix stands for all.
    values = []
    for seed in range(n_runs):
        probes = np.random.default_rng(seed).standard_normal((n_probes, len(spectrum)))
        top = top_eigenvalue(lambda W: W * spectrum, probes, probability, depth)
        values.append((top.estimate, top.upper))
    return np.array(values).T / spectrum.max()


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize(("depth", "n_probes"), [(3, 4), (6, 8)])
def test_bounds_fail_no_more_often_than_stated(name, depth, n_probes):
    n_runs, probability = 600, 0.05
    estimates, uppers = runs(SPECTRA[name], probability, n_runs, depth, n_probes)
    failures = int((uppers < 1.0 - 1e-9).sum())
    assert failures <= scipy.stats.binom.ppf(1 - 1e-4, n_runs, probability)
    assert estimates.max() <= 1.0 + 1e-9
    assert (uppers >= estimates).all()


@pytest.mark.parametrize("name", ["isolated", "decaying", "faint top"])
def test_small_probabilities(name):
    _, uppers = runs(SPECTRA[name], 1e-3, 2000, 4, 4)
    assert (uppers < 1.0 - 1e-9).sum() <= scipy.stats.binom.ppf(1 - 1e-4, 2000, 1e-3)


@pytest.mark.parametrize("n_probes", [1, 2])
def test_where_the_bound_is_sharp_it_fails_as_often_as_stated(n_probes):
    # So this simulation would see a quantile that is off.
    _, uppers = runs(SPECTRA["decaying"], 0.3, 2000, 2, n_probes)
    failures = (uppers < 1.0 - 1e-9).sum()
    low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], 2000, 0.3)
    assert 0.5 * low <= failures <= high


@pytest.mark.parametrize("name", SPECTRA)
def test_bounds_are_worth_having(name):
    estimates, uppers = runs(SPECTRA[name], 1e-3, 50, 6, 8)
    assert np.median(estimates) >= 0.9
    assert np.median(uppers) <= 1.35
    looser = runs(SPECTRA[name], 1e-9, 50, 6, 8)[1]
    assert np.median(looser) >= np.median(uppers) - 1e-9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [0, 1, 2, 5])
def test_matrices_of_low_rank(dtype, rank):
    spectrum = np.zeros(WIDTH, dtype=dtype)
    spectrum[:rank] = np.linspace(2.0, 1.0, rank)
    for seed in range(20):
        probes = np.random.default_rng(seed).standard_normal((3, WIDTH)).astype(dtype)
        top = top_eigenvalue(lambda W: W * spectrum, probes, 1e-6, 8)
        assert top.estimate == pytest.approx(2.0 if rank else 0.0, rel=1e-5)
        true = float(spectrum.max())
        assert true * (1 - 1e-6) <= top.upper <= true * 1.011
        assert np.isfinite(top.vectors).all()


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_scale_does_not_matter(scale):
    spectrum = SPECTRA["decaying"]
    probes = np.random.default_rng(0).standard_normal((4, WIDTH))
    one = top_eigenvalue(lambda W: W * spectrum, probes, 1e-3, 5)
    two = top_eigenvalue(lambda W: W * (scale * spectrum), probes, 1e-3, 5)
    np.testing.assert_allclose(two.upper, scale * one.upper, rtol=1e-6)
    np.testing.assert_allclose(two.estimate, scale * one.estimate, rtol=1e-9)


def test_a_single_column():
    probes = np.random.default_rng(0).standard_normal((4, 1))
    top = top_eigenvalue(lambda W: 3.0 * W, probes, 1e-3, 4)
    assert top.estimate == pytest.approx(3.0)
    assert 3.0 <= top.upper * (1 + 1e-12) <= 3.1


def test_ritz_vectors_are_orthonormal_and_show_the_top():
    spectrum = SPECTRA["faint top"]
    probes = np.random.default_rng(0).standard_normal((4, WIDTH))
    top = top_eigenvalue(lambda W: W * spectrum, probes, 1e-3, 5)
    np.testing.assert_allclose(top.vectors @ top.vectors.T, np.eye(len(top.vectors)), atol=1e-8)
    assert abs(top.vectors[0, 0]) > 0.999


def test_more_products_give_a_tighter_bound():
    medians = [np.median(runs(SPECTRA["bulk below"], 1e-3, 40, k, 4)[1]) for k in (2, 4, 8)]
    assert medians[0] > medians[1] > medians[2] >= 1.0


def test_nearly_a_multiple_of_the_identity_in_single_precision():
    # Lanczos stops at once, because the rest is at rounding level of many columns; the direction
    # that stands out is then in the rest.
    width = 20_000
    spectrum = np.ones(width, dtype=np.float32)
    spectrum[0] = 1.0001
    failures = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        probes = rng.standard_normal((8, width), dtype=np.float32)
        failures += top_eigenvalue(lambda W: W * spectrum, probes, 1e-3, 6).upper < 1.0001
    assert failures == 0
