"""Xie, Liang and Song (2015): doubly stochastic kernel PCA, SVD and CCA.

The references are closed forms and dense eigenproblems in numpy and scipy.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
from numpy.polynomial.hermite import hermgauss, hermval
from sklearn.datasets import load_digits

from sksketch import RandomFeatures, StreamingKernelCCA, StreamingKernelPCA
from sksketch.kernel_methods.feature_maps import RandomFeatureMap
from sksketch.kernel_methods.kernels import Kernel
from sksketch.kernel_methods.pairs.paired_steps import PairedSteps
from sksketch.kernel_methods.pca import doubly_stochastic
from sksketch.kernel_methods.pca.doubly_stochastic import DoublyStochasticPCA

# Means over N(0, 1) by quadrature.
POINTS, WEIGHTS = hermgauss(60)
POINTS, WEIGHTS = POINTS * math.sqrt(2.0), WEIGHTS / math.sqrt(math.pi)
# The golden ratio: x ~ N(0, 1) and k = exp(-(x - y)^2 / 2) have it in all eigenvalues.
RATIO = (3.0 - math.sqrt(5.0)) / 2.0
HERMITE_VALUES = (1.0 - RATIO) * RATIO ** np.arange(4.0)


def hermite_functions(x, count=3):
    """Return the eigenfunctions for x ~ N(0, 1), k = exp(-(x - y)^2 / 2), orthonormal in L2."""
    a, c = 0.25, math.sqrt(0.3125)
    columns = [
        (c / a) ** 0.25
        / math.sqrt(2.0**j * math.factorial(j))
        * np.exp(-(c - a) * x**2)
        * hermval(math.sqrt(2.0 * c) * x, [0] * j + [1])
        for j in range(count)
    ]
    return np.column_stack(columns)


def inner(F, G):
    """Return inner products in L2 of N(0, 1) of functions given at `POINTS`."""
    return (F * WEIGHTS[:, None]).T @ G


def sine_squared(H):
    """Return sin^2 of the largest angle to the span of the exact eigenfunctions."""
    root = np.sqrt(WEIGHTS)[:, None]
    mine, truth = (np.linalg.qr(root * Z)[0] for Z in (H, hermite_functions(POINTS)))
    return np.linalg.norm(mine - truth @ (truth.T @ mine), 2) ** 2


def cosines(H):
    """Return |cos| of each function with the exact one of the same number."""
    lengths = np.sqrt(np.diag(inner(H, H)))
    return np.abs(np.diag(inner(H, hermite_functions(POINTS))) / lengths)


def grown(seed, steps, marks=(), *, n_pilot=2000, feature_batch=16, batch_size=64, **options):
    """Return a learner that has got new features with each step, and sin^2 at marks."""
    rng = np.random.default_rng(seed)
    features = RandomFeatureMap(Kernel("gaussian", 1.0), 1, 10**6, seed, cached=True)
    learner = DoublyStochasticPCA(features, 3, feature_batch=feature_batch, center=False, **options)
    learner.begin(rng.standard_normal((n_pilot, 1)).astype(np.float32))
    errors = []
    for number in range(1, steps + 1):
        learner.learn(rng.standard_normal((batch_size, 1)).astype(np.float32))
        if number in marks:
            errors.append(sine_squared(learner.functions()[1](POINTS[:, None])))
    return learner, errors


# The Hermite problem (section 7.1)


def test_the_hermite_functions_are_eigenfunctions_of_our_gaussian_kernel():
    K = Kernel("gaussian", 1.0)(POINTS[:, None], POINTS[:, None])
    E = hermite_functions(POINTS, 4)
    np.testing.assert_allclose(inner(E, E), np.eye(4), atol=1e-10)
    np.testing.assert_allclose((K * WEIGHTS) @ E, E * HERMITE_VALUES, atol=1e-10)


def test_kernel_pca_finds_the_hermite_functions():
    X = np.random.default_rng(0).standard_normal((20_000, 1)).astype(np.float32)
    model = StreamingKernelPCA(
        3, bandwidth=1.0, n_random_features=8192, solver="sgd", center=False, polish=0
    ).fit(X)
    # They are measured on 4000 rows, so that 2% is one standard error.
    np.testing.assert_allclose(model.eigenvalues_, HERMITE_VALUES[:3], rtol=0.06)
    H = model.transform(POINTS[:, None])
    assert sine_squared(H) < 2e-3
    assert cosines(H).min() > 0.999
    # The mean square of a component is its eigenvalue.
    np.testing.assert_allclose(np.diag(inner(H, H)), HERMITE_VALUES[:3], rtol=0.05)


def test_theorem5_error_falls_like_one_over_steps(monkeypatch):
    # A small pilot: the start must be worse than what the steps can reach.
    monkeypatch.setattr(doubly_stochastic, "PILOT_COLUMNS", 32)
    marks = (50, 100, 200, 400)
    runs = [grown(seed, marks[-1], marks, n_pilot=100, batch_size=32)[1] for seed in range(16)]
    mean = np.mean(runs, axis=0)
    # About -0.9 over 40 seeds; the mean of 16 varies by 0.1.
    assert np.polyfit(np.log(marks), np.log(mean), 1)[0] <= -0.75


def test_hebbian_steps_find_each_eigenfunction_in_order():
    learner, _ = grown(0, 300, order="gha", feature_batch=32, batch_size=256)
    values, functions = learner.functions()
    assert cosines(functions(POINTS[:, None])).min() > 0.99
    np.testing.assert_allclose(values, HERMITE_VALUES[:3], rtol=0.05)


def test_kernel_ritz_values_are_right_where_lengths_of_coefficients_are_not():
    learner, _ = grown(1, 400)
    values, functions = learner.functions()
    a = functions.coefficients
    R = np.linalg.qr(a * math.sqrt(len(a)), mode="r")
    orthonormal = np.linalg.solve(R.T, functions(POINTS[:, None]).T).T
    by_lengths = np.linalg.eigvalsh(inner(orthonormal, orthonormal))[::-1]
    np.testing.assert_allclose(values, HERMITE_VALUES[:3], rtol=0.05)
    assert abs(by_lengths / HERMITE_VALUES[:3] - 1.0).max() > 0.2


# Passes over all rows, for a given set of features


@pytest.mark.parametrize("center", [True, False])
def test_polish_converges_to_the_dense_solution_of_the_features(center):
    X = load_digits().data / 16.0
    options = {"bandwidth": 3.0, "n_random_features": 256, "random_state": 0}
    F = RandomFeatures(**options).fit_transform(X)
    F = F - F.mean(axis=0) if center else F
    values, V = (part[..., ::-1][..., :5] for part in np.linalg.eigh(F.T @ F / len(X)))
    dense = np.linalg.qr(F @ V)[0]
    errors = []
    for polish in (1, 2, 3, 5):
        model = StreamingKernelPCA(
            5, solver="sgd", center=center, polish=polish, batch_size=128, **options
        ).fit(X)
        Q = np.linalg.qr(model.transform(X))[0]
        errors.append(np.linalg.norm(Q - dense @ (dense.T @ Q), 2) ** 2)
    assert errors[-1] < 1e-8
    assert max(errors) < 1e-2
    # Ritz values of the kernel and of its random features differ by the features alone.
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=0.25)


# Two views


def noisy_halves(n_rows=800):
    """Return two views, nonlinear in the same hidden numbers."""
    rng = np.random.default_rng(0)
    t = rng.uniform(-1.0, 1.0, (n_rows, 2))
    X = np.column_stack([t[:, 0], t[:, 1], rng.standard_normal(n_rows)])
    Y = np.column_stack(
        [t[:, 0] ** 2 + t[:, 1], np.sin(3.0 * t[:, 0]), rng.standard_normal(n_rows)]
    )
    return X, Y + 0.1 * rng.standard_normal(Y.shape)


def maps_of(views, n_columns):
    return [
        RandomFeatureMap(Kernel("gaussian", 1.5), Z.shape[1], n_columns, seed, cached=True)
        for seed, Z in enumerate(views)
    ]


def test_singular_functions_are_a_fixed_point_with_lengths_of_one_half():
    views = noisy_halves()
    maps = maps_of(views, 100)
    F, G = (each.transform(Z) for each, Z in zip(maps, views, strict=True))
    U, s, Vt = np.linalg.svd(F.T @ G / len(F))
    learner = PairedSteps(*maps, 3, task="svd", center=False)
    learner.begin(views[0][:200], views[1][:200])
    for _ in range(300):
        learner.learn(*views)
    u, v = (view.values(Z)[0] for view, Z in zip(learner.views, views, strict=True))
    cross = u.T @ v / len(u)
    np.testing.assert_allclose(np.linalg.eigvalsh(cross + cross.T)[::-1], s[:3], rtol=0.01)
    for view, exact in zip(learner.views, (U[:, :3], Vt[:3].T), strict=True):
        a = view.coefficients * math.sqrt(100)
        np.testing.assert_allclose(a.T @ a, 0.5 * np.eye(3), atol=0.02)
        Q = np.linalg.qr(a)[0]
        assert np.linalg.norm(Q - exact @ (exact.T @ Q), 2) ** 2 < 1e-3


def dense_cca(F, G, ridge):
    """Return the largest eigenvalues of the problem with diagonal blocks."""
    both = np.concatenate([F - F.mean(axis=0), G - G.mean(axis=0)], axis=1)
    C = both.T @ both / len(F) + ridge * np.eye(both.shape[1])
    n = F.shape[1]
    within = scipy.linalg.block_diag(C[:n, :n], C[n:, n:])
    return scipy.linalg.eigh(C, within, eigvals_only=True)[::-1]


def test_canonical_correlations_are_the_dense_eigenvalues_less_one():
    views = noisy_halves()
    model = StreamingKernelCCA(
        4, bandwidth=1.5, n_random_features=200, ridge=1e-3, solver="exact", random_state=0
    ).fit(*views)
    F, G = (each.transform(Z) for each, Z in zip(maps_of(views, 200), views, strict=True))
    values = dense_cca(F, G, 1e-3)[:4]
    np.testing.assert_allclose(1.0 + model.correlations_, values, rtol=1e-6)
    # In print it is 1 + the square.
    assert abs(1.0 + model.correlations_**2 - values).max() > 0.01


@pytest.mark.parametrize("step", ["preconditioned", "plain"])
def test_canonical_functions_are_a_fixed_point_with_variances_of_one_half(step):
    views, ridge, k = noisy_halves(), 1e-2, 2
    maps = maps_of(views, 100)
    F, G = (each.transform(Z) for each, Z in zip(maps, views, strict=True))
    learner = PairedSteps(*maps, k, task="cca", ridge=ridge, step=step, batch_size=len(F))
    learner.begin(views[0][:200], views[1][:200])
    for _ in range(400):
        learner.learn(*views)
    u, v = (view.values(Z)[0] for view, Z in zip(learner.views, views, strict=True))
    cross = u.T @ v / len(u)
    rho = dense_cca(F, G, ridge)[:k] - 1.0
    np.testing.assert_allclose(np.linalg.eigvalsh(cross + cross.T)[::-1], rho, rtol=0.01)
    for view, values in zip(learner.views, (u, v), strict=True):
        a = view.coefficients * math.sqrt(100)
        penalised = values.T @ values / len(values) + ridge * a.T @ a
        np.testing.assert_allclose(penalised, 0.5 * np.eye(k), atol=0.02)
