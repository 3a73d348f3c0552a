"""Xie, Liang and Song (2015), section 5: hidden classes from the moments of three views."""

from __future__ import annotations

import numpy as np
import pytest

from sksketch.kernel_methods.feature_maps import NystromMap
from sksketch.kernel_methods.kernels import Kernel
from sksketch.kernel_methods.latent.density import WeightedDensity, volume
from sksketch.kernel_methods.latent.multiview import (
    Moments,
    Triple,
    coordinates,
    find_bases,
    find_moments,
    responsibilities,
    solve,
)
from sksketch.kernel_methods.latent.tensor_power import symmetrized, tensor_power


def orthogonal(k: int, seed: int):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((k, k)))[0]


def moments_of(weights, means) -> Moments:
    """Return the moments that a mixture has without any noise."""
    pairs = {(a, b): (means[a] * weights) @ means[b].T for a in range(3) for b in range(3)}
    return Moments(pairs, np.einsum("h,ah,bh,ch->abc", weights, *means))


@pytest.mark.parametrize("k", [1, 2, 5, 12])
def test_tensor_power_finds_an_orthogonal_decomposition(k):
    Q = orthogonal(k, k)
    truth = np.linspace(3.0, 1.0, k)
    T = np.einsum("h,ih,jh,kh->ijk", truth, Q, Q, Q)
    values, vectors = tensor_power(T)
    order = np.argsort(-values)
    np.testing.assert_allclose(values[order], truth, rtol=1e-9)
    np.testing.assert_allclose(vectors[:, order], Q, atol=1e-8)


def test_tensor_power_errs_no_more_than_the_tensor():
    k, noise = 4, 1e-3
    Q, rng = orthogonal(k, 0), np.random.default_rng(1)
    E = symmetrized(rng.standard_normal((k, k, k)))
    T = np.einsum("h,ih,jh,kh->ijk", [2.0, 1.6, 1.4, 1.2], Q, Q, Q) + noise * E
    values, vectors = tensor_power(T)
    # Theorem 5.1 of Anandkumar et al. (2014): errors of the order of |E|.
    size = noise * np.linalg.norm(E)
    assert np.abs(values - [2.0, 1.6, 1.4, 1.2]).max() < 5 * size
    assert np.abs(vectors - Q).max() < 8 * size


def test_symmetrized_is_the_same_in_every_order():
    T = symmetrized(np.random.default_rng(0).standard_normal((3, 3, 3)))
    for order in ((1, 0, 2), (2, 1, 0), (1, 2, 0)):
        np.testing.assert_allclose(T, T.transpose(order), atol=1e-15)
    np.testing.assert_allclose(symmetrized(T), T, atol=1e-15)


@pytest.mark.parametrize("shared", [True, False])
def test_exact_moments_give_the_mixture_back(shared):
    rng = np.random.default_rng(0)
    weights = np.array([0.5, 0.3, 0.2])
    means = [rng.standard_normal((3, 3)) for _ in range(3)]
    means = means[:1] * 3 if shared else means
    mixture = solve(moments_of(weights, means), 0, shared=shared)
    np.testing.assert_allclose(mixture.weights, weights, rtol=1e-7)
    for found, truth in zip(mixture.means, means, strict=True):
        np.testing.assert_allclose(found, truth, atol=1e-6)


def test_moments_of_fewer_classes_are_refused():
    weights = np.array([0.6, 0.4, 0.0])
    means = [np.random.default_rng(1).standard_normal((3, 3))] * 3
    with pytest.raises(np.linalg.LinAlgError):
        solve(moments_of(weights, means), 0, shared=True)


def views_of(n: int, seed: int, *, shared: bool):
    """Return classes with weights 0.7 and 0.3, and three views of one or two columns."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n) < 0.3
    shifts = (2.0, 2.0, 2.0) if shared else (2.0, -1.5, 3.0)
    widths = (1, 1, 1) if shared else (1, 2, 1)
    views = [
        np.where(hidden, shift, -shift)[:, None] + rng.standard_normal((n, width))
        for shift, width in zip(shifts, widths, strict=True)
    ]
    return hidden, Triple(*views)


@pytest.mark.parametrize("shared", [True, False])
def test_weights_and_means_come_from_rows(shared):
    hidden, views = views_of(20_000, 0, shared=shared)
    kernel = Kernel("gaussian", 1.5)
    maps = [NystromMap(kernel, X[:60]) for X in views]
    features = Triple(*(maps[:1] * 3 if shared else maps))
    bases = find_bases(features, views, 2, 0, shared=shared, n_passes=1)
    mixture = solve(find_moments(features, views, bases), 0, shared=shared)
    share = hidden.mean()
    np.testing.assert_allclose(mixture.weights, [1 - share, share], atol=0.01)
    for view in range(3):
        Z = coordinates(features[view], views[view], bases[view])
        truth = np.column_stack([Z[~hidden].mean(axis=0), Z[hidden].mean(axis=0)])
        np.testing.assert_allclose(mixture.means[view], truth, atol=0.02)
        # Means 1/weight in its own class and zero in the other.
        g = responsibilities(mixture, Z, view)
        for h, own in enumerate((~hidden, hidden)):
            assert g[own, h].mean() == pytest.approx(1 / own.mean(), rel=0.03)
            assert abs(g[~own, h].mean()) < 0.05


def test_noise_falls_like_one_over_the_root_of_the_rows():
    errors = []
    for n in (2000, 32_000):
        found = []
        for seed in range(8):
            hidden, views = views_of(n, seed, shared=True)
            features = Triple(*[NystromMap(Kernel("gaussian", 1.5), views[0][:40])] * 3)
            bases = find_bases(features, views, 2, 0, shared=True, n_passes=1)
            mixture = solve(find_moments(features, views, bases), 0, shared=True)
            found.append((mixture.weights[1] / mixture.weights.sum() - hidden.mean()) ** 2)
        errors.append(np.sqrt(np.mean(found)))
    # Sixteen times the rows: a quarter of the error, between a half and an eighth.
    assert 2 < errors[0] / errors[1] < 8


@pytest.mark.parametrize(
    "kernel",
    [Kernel("gaussian", 0.7), Kernel("laplacian", 0.7), Kernel("matern", 0.7, {"nu": 2.5})],
    ids=lambda kernel: kernel.name,
)
@pytest.mark.parametrize("d", [1, 2])
def test_densities_integrate_to_one(kernel, d):
    step = 0.05
    axis = np.arange(-12.0, 12.0, step)
    grid = np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d)
    density = WeightedDensity(kernel, np.zeros((1, d)), np.ones((1, 1)))
    total = density(grid).sum() * step**d / volume(kernel, d)
    assert total == pytest.approx(1.0, rel=5e-3)
    # The tails of the Cauchy kernel need more than a grid.
    assert volume(Kernel("cauchy", 2.0), 2) == pytest.approx((2 * np.pi) ** 2)
