"""Xu et al. (2017), non-oblivious reduction: its Lemma 2, and the certificate after learning."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sksketch import RandomReduction, ReducedClassifier, ReducedRegressor, SubspaceReduction
from sksketch.reduction.dual_losses import DualLoss
from sksketch.sketches.projections import linear_sketch

OPERATORS = ("countsketch", "gaussian", "srht", "sample")
# Objectives are sums of a few hundred terms of order one.
ROUNDING = 1e-9


def problem(seed, n_rows=80, n_features=25):
    """Return rows of a falling spectrum and labels, drawn by a seed."""
    rng = np.random.default_rng(seed)
    scales = np.arange(1, n_features + 1) ** -rng.uniform(0.3, 2.0)
    X = rng.standard_normal((n_rows, n_features)) * scales * rng.uniform(0.3, 3.0)
    noise = 0.3 * rng.standard_normal(n_rows)
    y = np.where(X @ rng.standard_normal(n_features) + noise > 0, 1.0, -1.0)
    y[:2] = [-1.0, 1.0]
    return X, y


def losses(name, z, y):
    """Return the losses by their definition."""
    return {
        "hinge": lambda: np.maximum(0.0, 1.0 - y * z),
        "squared_hinge": lambda: np.maximum(0.0, 1.0 - y * z) ** 2,
        "logistic": lambda: np.logaddexp(0.0, -y * z),
        "squared": lambda: 0.5 * (z - y) ** 2,
        "absolute": lambda: np.abs(z - y),
    }[name]()


def conjugates(name, a, y):
    """Return the largest of -a z - l(z) over z, found on a fine grid."""
    z = np.linspace(-60.0, 60.0, 240_001)
    return np.array(
        [(-a_i * z - losses(name, z, y_i)).max() for a_i, y_i in zip(a, y, strict=True)]
    )


def least_objective(name, X, y, alpha):
    """Return bounds on the least objective over all models, from a solver of scipy."""
    n_rows, n_features = X.shape
    if name in ("hinge", "absolute"):
        # The dual is a quadratic problem in a box; its maximum is the least objective.
        low, high = (np.minimum(y, 0), np.maximum(y, 0)) if name == "hinge" else (-1.0, 1.0)

        def negative_dual(a):
            w = X.T @ a / (alpha * n_rows)
            return 0.5 * alpha * w @ w - (y * a).mean(), (X @ w - y) / n_rows

        bounds = scipy.optimize.Bounds(*np.broadcast_arrays(low, high, y)[:2])
        found = scipy.optimize.minimize(
            negative_dual,
            np.zeros(n_rows),
            jac=True,
            bounds=bounds,
            method="L-BFGS-B",
            options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 0.0, "gtol": 1e-12},
        )
        w = X.T @ found.x / (alpha * n_rows)
        primal = losses(name, X @ w, y).mean() + 0.5 * alpha * w @ w
        return -found.fun, primal
    slopes = {
        "squared_hinge": lambda z: -2 * y * np.maximum(0.0, 1.0 - y * z),
        "logistic": lambda z: -y / (1.0 + np.exp(y * z)),
        "squared": lambda z: z - y,
    }[name]

    def objective(w):
        z = X @ w
        value = losses(name, z, y).mean() + 0.5 * alpha * w @ w
        return value, X.T @ slopes(z) / n_rows + alpha * w

    found = scipy.optimize.minimize(
        objective,
        np.zeros(n_features),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 0.0, "gtol": 1e-13},
    )
    gradient = found.jac
    return found.fun - gradient @ gradient / (2 * alpha), found.fun


def objective(name, X, y, alpha, coef):
    return losses(name, X @ coef, y).mean() + 0.5 * alpha * coef @ coef


@given(
    seed=st.integers(0, 2**16),
    loss=st.sampled_from(["hinge", "squared_hinge", "logistic", "squared"]),
    method=st.sampled_from(["nor", "nor", "nordr", "rp", "rpdr", "dsrr"]),
    operator=st.sampled_from(OPERATORS),
    alpha=st.sampled_from([0.3, 1e-2, 1e-3]),
    n_components=st.sampled_from([1, 4, 12, 40]),
)
def test_the_gap_to_the_best_model_is_certified(seed, loss, method, operator, alpha, n_components):
    X, y = problem(seed)
    model = ReducedClassifier(
        n_components,
        method=method,
        loss=loss,
        alpha=alpha,
        operator=operator,
        fit_intercept=False,
        tol=1e-4,
        n_power_iter=seed % 2,
        random_state=seed,
    ).fit(X, y)
    low, high = least_objective(loss, X, y, alpha)
    value = objective(loss, X, y, alpha, model.coef_[0])
    assert model.duality_gap_ <= 1e-4
    assert value >= low - ROUNDING
    assert value <= high + model.objective_gap_bound_ + ROUNDING
    assert model.objective_gap_bound_ <= model.lemma2_bound_ * (1 + ROUNDING) + ROUNDING
    assert np.isinf(model.lemma2_bound_) == (method != "nor")


@given(
    seed=st.integers(0, 2**16),
    loss=st.sampled_from(["squared", "absolute"]),
    method=st.sampled_from(["nor", "nordr", "rp", "rpdr"]),
    n_components=st.sampled_from([2, 12, 40]),
)
def test_so_is_that_of_regression(seed, loss, method, n_components):
    X, y = problem(seed)
    y = y + X[:, 0]
    model = ReducedRegressor(
        n_components, method=method, loss=loss, alpha=1e-2, fit_intercept=False, random_state=seed
    ).fit(X, y)
    low, high = least_objective_of_regression(loss, X, y)
    value = objective(loss, X, y, 1e-2, model.coef_)
    assert low - ROUNDING <= value <= high + model.objective_gap_bound_ + ROUNDING
    assert model.objective_gap_bound_ <= model.lemma2_bound_ * (1 + ROUNDING) + ROUNDING


def least_objective_of_regression(loss, X, y):
    return least_objective(loss, X, y, 1e-2)


@given(seed=st.integers(0, 2**16), method=st.sampled_from(["nor", "nordr", "rp", "rpdr"]))
def test_so_is_that_of_the_softmax(seed, method):
    X, _ = problem(seed)
    codes = np.random.default_rng(seed).integers(0, 3, len(X))
    alpha = 0.05
    model = ReducedClassifier(
        4, method=method, loss="softmax", alpha=alpha, fit_intercept=False, random_state=seed
    ).fit(X, codes)

    def value(flat):
        W = flat.reshape(3, -1)
        scores = X @ W.T
        logs = scores - scipy.special.logsumexp(scores, axis=1, keepdims=True)
        slopes = np.exp(logs)
        slopes[np.arange(len(X)), codes] -= 1.0
        picked = -logs[np.arange(len(X)), codes].mean()
        return picked + 0.5 * alpha * flat @ flat, (slopes.T @ X / len(X) + alpha * W).ravel()

    best = scipy.optimize.minimize(value, np.zeros(75), jac=True, options={"gtol": 1e-10})
    mine = value(model.coef_.ravel())[0]
    assert best.fun - ROUNDING <= mine <= best.fun + model.objective_gap_bound_ + 1e-7
    assert model.objective_gap_bound_ <= model.lemma2_bound_ * (1 + ROUNDING) + ROUNDING


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared"])
@pytest.mark.parametrize("method", ["nor", "rp"])
def test_the_gap_is_that_of_an_independent_computation(loss, method):
    X, y = problem(7)
    alpha = 1e-2
    model = ReducedClassifier(
        8, method=method, loss=loss, alpha=alpha, fit_intercept=False, tol=1e-2
    ).fit(X, y)
    Z, v, a = model.reduction_.transform(X), model.reduced_coef_[0], model.dual_coef_[0]
    primal = losses(loss, Z @ v, y).mean() + 0.5 * alpha * v @ v
    pull = Z.T @ a / len(y)
    dual = -conjugates(loss, a, y).mean() - pull @ pull / (2 * alpha)
    # The grid of the conjugates misses their maxima by its width.
    assert model.duality_gap_ == pytest.approx(primal - dual, abs=1e-4 if loss == "hinge" else 1e-6)
    np.testing.assert_allclose(Z @ v, X @ model.coef_[0], atol=1e-12)


@given(
    seed=st.integers(0, 2**16),
    operator=st.sampled_from(OPERATORS),
    n_components=st.sampled_from([1, 5, 15]),
    n_power_iter=st.integers(0, 1),
)
def test_the_spectral_error_is_inside_its_interval(seed, operator, n_components, n_power_iter):
    X, _ = problem(seed, n_rows=120)
    weights = np.random.default_rng(seed).choice([0.0, 1.0, 2.5], len(X))
    reduction = SubspaceReduction(
        n_components, operator=operator, n_power_iter=n_power_iter, random_state=seed
    ).fit(X, sample_weight=weights)
    U = reduction.components_
    rest = np.sqrt(weights)[:, None] * (X - (X @ U.T) @ U)
    truth = np.linalg.norm(rest, 2) ** 2
    lower, upper = reduction.spectral_error_
    slack = 1e-12 * (X**2).sum()
    assert lower - slack <= truth <= upper + slack
    assert upper <= 2 * truth + slack
    assert reduction.spectral_confidence_ == 1 - 1e-6


@given(seed=st.integers(0, 2**16), operator=st.sampled_from(["countsketch", "sample"]))
def test_the_implicit_basis_is_orthonormal_and_spans_the_same(seed, operator):
    rng = np.random.default_rng(seed)
    # A spectrum over seven decades, of which a Gram matrix can just see the end.
    X = rng.standard_normal((60, 12)) * 10.0 ** -rng.uniform(0, 7, 12)
    X = sp.csr_array(X @ np.linalg.qr(rng.standard_normal((12, 12)))[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear_sketch, "DENSE_BYTES", 0)
        implicit = SubspaceReduction(20, operator=operator, random_state=seed).fit(X)
    assert sp.issparse(implicit.sketch_.compact_matrix)
    U = implicit.components_
    np.testing.assert_allclose(U @ U.T, np.eye(len(U)), atol=1e-8)
    explicit = SubspaceReduction(20, operator=operator, random_state=seed).fit(X)
    Z, W = implicit.transform(X), explicit.transform(X)
    # What one of the two leaves out is below the resolution of the other.
    np.testing.assert_allclose(Z @ Z.T, W @ W.T, atol=1e-6 * (W**2).sum() ** 0.5 + 1e-12)


@pytest.mark.parametrize("operator", OPERATORS)
def test_data_of_low_rank_are_learned_from_as_if_all_columns_were_there(operator):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 60))
    y = np.where(X @ rng.standard_normal(60) > 0, 1.0, -1.0)
    model = ReducedClassifier(30, operator=operator, alpha=1e-3, fit_intercept=False, tol=1e-7).fit(
        X, y
    )
    assert model.reduction_.n_components_ == 5
    low, _ = least_objective("hinge", X, y, 1e-3)
    assert objective("hinge", X, y, 1e-3, model.coef_[0]) <= low + 1e-6
    assert model.objective_gap_bound_ <= 1.1e-7


@pytest.mark.parametrize("operator", ["countsketch", "gaussian", "srht"])
def test_random_projections_keep_lengths(operator):
    rng = np.random.default_rng(0)
    rows = sp.random_array((20, 3000), density=0.05, format="csr", rng=rng)
    ratios = [
        (RandomReduction(400, operator=operator, random_state=seed).fit_transform(rows) ** 2).sum(1)
        / (rows.toarray() ** 2).sum(1)
        for seed in range(5)
    ]
    # Relative standard deviation sqrt(2 / 400) of each of 100 squared lengths, with a long tail.
    assert np.abs(np.array(ratios) - 1).max() < 6 * np.sqrt(2 / 400)
    assert abs(np.mean(ratios) - 1) < 4 * np.sqrt(2 / 400 / 20)


def test_a_count_sketch_keeps_rows_of_one_entry_exactly():
    Z = RandomReduction(16).fit_transform(sp.eye_array(200, format="csr"))
    np.testing.assert_array_equal((Z**2).sum(axis=1), 1.0)


@given(
    name=st.sampled_from(["hinge", "squared_hinge", "logistic", "squared", "absolute"]),
    tau=st.sampled_from([0.0, 0.25, 0.9]),
)
def test_the_loss_of_dual_sparse_recovery_is_the_least_nearby(name, tau):
    z = np.linspace(-4, 4, 41)
    y = np.where(np.arange(41) % 2, 1.0, -1.0)
    shifts = np.linspace(-tau, tau, 2001)
    nearby = np.array([losses(name, z + u, y) for u in shifts]).min(axis=0)
    np.testing.assert_allclose(DualLoss(name, tau).value(z, y), nearby, atol=tau * 1e-3)
