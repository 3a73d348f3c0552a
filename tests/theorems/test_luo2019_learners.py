"""Luo et al. (2019), JMLR 20(45): regret of the online Newton learners, as corrected.

R_T(w) is the loss of the learner less that of w, for any w with |w'x_t| <= C in every round.
The statements are checked on a plain implementation, which keeps every H_t, and what the
estimators certify from their state on themselves. m of the paper is ``size``.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from _support.paper_learners import paper_classifier, paper_regressor
from sksketch.online import reference
from sksketch.online.gradient import reference_hessians
from sksketch.online.losses import Loss

CLASSIFICATION = ("squared", "logistic", "hinge")
# Roundings of a few hundred sums, relative to the size of the terms.
RTOL = 1e-9


def gaussian(rng, n, d):
    return rng.standard_normal((n, d))


def sparse(rng, n, d):
    return rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)


def uneven(rng, n, d):
    return rng.standard_normal((n, d)) * np.geomspace(5.0, 0.05, d)


def repeated(rng, n, d):
    return rng.standard_normal((max(d // 2, 2), d))[rng.integers(0, max(d // 2, 2), n)]


def drifting(rng, n, d):
    X = 0.1 * rng.standard_normal((n, d))
    X[np.arange(n), np.arange(n) * d // n] += 2.0
    return X


ROWS = (gaussian, sparse, uneven, repeated, drifting)


@st.composite
def streams(draw, max_features: int = 8, max_rows: int = 120):
    """Draw rows and labels of +-1, some of them noise."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, n = draw(st.integers(1, max_features)), draw(st.integers(1, max_rows))
    X = draw(st.sampled_from(ROWS))(rng, n, d) * draw(st.sampled_from([0.1, 1.0, 10.0]))
    y = np.where(X @ rng.standard_normal(d) >= 0, 1.0, -1.0)
    flipped = rng.random(n) < draw(st.sampled_from([0.0, 0.2, 0.5]))
    return X, np.where(flipped, -y, y)


def total(loss, X, y, w):
    return sum(loss.value(z, target) for z, target in zip(X @ w, y, strict=True))


def feasible(w, X, C):
    """Return w scaled down until |w'x| <= C for all rows."""
    return w * min(1.0, C / max(np.abs(X @ w).max(), 1e-300))


def comparators(X, y, loss, C):
    """Return points to compare with: zero, random ones and about the best in hindsight."""
    loss = reference.LOSSES[loss] if isinstance(loss, str) else loss
    rng = np.random.default_rng(0)
    d = X.shape[1]
    points = [np.zeros(d), *rng.standard_normal((3, d)), 100.0 * rng.standard_normal(d)]
    points.append(np.linalg.lstsq(X, y, rcond=None)[0])
    points = [feasible(w, X, C) for w in points]

    def gradient(w):
        return X.T @ [loss.derivative(z, target) for z, target in zip(X @ w, y, strict=True)]

    limits = {
        "type": "ineq",
        "fun": lambda w: np.concatenate([C - X @ w, C + X @ w]),
        "jac": lambda w: np.concatenate([-X, X]),
    }
    start = min(points, key=lambda w: total(loss, X, y, w))
    found = minimize(
        lambda w: total(loss, X, y, w),
        start,
        jac=gradient,
        method="SLSQP",
        constraints=limits,
        options={"maxiter": 30},
    )
    if np.isfinite(found.x).all():
        points.append(feasible(found.x, X, C))
    return points


def regret(run, X, y, w, loss, rounds=slice(None)):
    paid = sum(r.weight * r.loss for r in run.rounds[rounds])
    return paid - total(loss, X[rounds], y[rounds], w)


def hessians(run, d):
    """Return H_0, H_1, ...; a ridge taken from the first gradient counts from the start."""
    start = run.initial_ridge * np.eye(d)
    return [start, *(r.hessian if r.ridge else start for r in run.rounds)]


def log_det(H):
    return float(np.linalg.slogdet(H)[1])


def second_order(run, loss, C, rounds, H, D, buffer_rows):
    """Return all terms of the RFD-SON bound but the first; D are distances to the comparator."""
    mu, L = loss.curvature(C), loss.slope(C)
    d, part = len(H[0]), run.rounds[rounds]
    least = mu + part[-1].step
    q = min(buffer_rows, d)
    drift = sum(r.cut / r.ridge for r in part if r.cut)
    return (
        2 * (C * L) ** 2 * sum(r.step for r in part)
        + (log_det(H[-1]) - log_det(H[0])) / (2 * least)
        + q * drift / (4 * least)
        + sum(r.cut * distance**2 for r, distance in zip(part, D, strict=True)) / 4
    )


@pytest.mark.parametrize("loss", CLASSIFICATION)
@pytest.mark.parametrize("C", [0.5, 1.0, 2.0, 5.0])
def test_assumption_2_the_curvature_constant_is_small_enough(loss, C):
    # Erratum N1: mu >= 0 (printed <=), and the squared loss needs |y| <= C.
    described = reference.LOSSES[loss]
    mu = described.curvature(C)
    grid = np.linspace(-C, C, 121)
    for y in np.linspace(-C, C, 9) if loss == "squared" else (-1.0, 1.0):
        value = np.array([described.value(z, y) for z in grid])
        slope = np.array([described.derivative(z, y) for z in grid])
        assert np.abs(slope).max() <= described.slope(C) * (1 + RTOL)
        move = slope[:, None] * (grid[None, :] - grid[:, None])
        below = value[:, None] + move + mu / 2 * move**2
        assert (below <= value[None, :] + RTOL * C**2).all()


@pytest.mark.parametrize("method", ["rfd", "fd", "pfd", "full"])
@pytest.mark.parametrize("loss", CLASSIFICATION)
@given(
    stream=streams(),
    size=st.integers(1, 6),
    C=st.sampled_from([0.5, 1.0, 3.0]),
    ridge=st.sampled_from([0.01, 1.0, 100.0, "auto"]),
)
def test_regret_lemma_for_any_positive_definite_curvature(method, loss, stream, size, C, ridge):
    X, y = stream
    y = y * min(C, 1.0)
    size = max(size, 2)
    described = reference.LOSSES[loss]
    if loss != "squared":
        y = np.sign(y)
    run = reference.learn(
        X, y, method=method, loss=loss, size=size, C=C, initial_ridge=ridge, keep=True
    )
    assert np.abs(run.scores).max() <= C
    mu, d = described.curvature(C), X.shape[1]
    H = hessians(run, d)
    for w in comparators(X, y, described, C):
        terms = [w @ H[0] @ w, *(r.quadratic for r in run.rounds)]
        for t, r in enumerate(run.rounds):
            gap = r.point - w
            terms.append(gap @ (H[t + 1] - H[t]) @ gap - mu * (r.gradient @ gap) ** 2)
        slack = RTOL * (np.abs(terms).sum() + len(X))
        assert 2 * regret(run, X, y, w, described) <= sum(terms) + slack


@pytest.mark.parametrize("loss", CLASSIFICATION)
@given(
    stream=streams(),
    size=st.integers(2, 6),
    extra=st.integers(0, 8),
    C=st.sampled_from([0.5, 1.0, 3.0]),
    ridge=st.sampled_from([0.01, 1.0, 100.0, "auto"]),
)
def test_luo2019_theorem5_rfd_son_as_corrected(loss, stream, size, extra, C, ridge):
    # Errata N2 and N4: distances to the comparator in place of 2 C, the buffer's directions
    # in place of m, and ln det H_T - d ln alpha_0.
    X, y = stream
    if loss == "squared":
        y = y * min(C, 1.0)
    described, N = reference.LOSSES[loss], size + extra
    run = reference.learn(
        X, y, loss=loss, size=size, C=C, initial_ridge=ridge, buffer_rows=N, keep=True
    )
    if run.initial_ridge == 0:
        assert not any(r.gradient.any() for r in run.rounds)
        return
    d, H = X.shape[1], hessians(run, X.shape[1])
    for w in comparators(X, y, described, C):
        D = [np.linalg.norm(r.point - w) for r in run.rounds]
        bound = run.initial_ridge / 2 * (w @ w)
        bound += second_order(run, described, C, slice(None), H, D, N)
        assert regret(run, X, y, w, described) <= bound * (1 + RTOL) + RTOL * len(X)
    # The printed bound on the determinant, with the rows of the buffer in place of m.
    k = min(max(len(run.hessian.B), 1), d)
    inside = np.sum(run.hessian.B**2) / (k * run.initial_ridge) + run.ridge / run.initial_ridge
    limit = k * np.log(inside) + (d - k) * np.log(run.ridge / run.initial_ridge)
    assert log_det(H[-1]) - log_det(H[0]) <= limit + RTOL * (1 + abs(limit))


def first_cut(run):
    cuts = [t for t, r in enumerate(run.rounds) if r.cut > 0]
    return cuts[0] if cuts else len(run.rounds)


def smallest_eigenvalue(gradients):
    """Return the least non-zero eigenvalue of all sums of g g', and the rank of the last."""
    least, rank = np.inf, 0
    for t in range(1, len(gradients) + 1):
        s = np.linalg.svd(gradients[:t], compute_uv=False)
        s = s[s > reference_hessians.RANK_RTOL * s[0]] if s[0] > 0 else s[:0]
        if len(s):
            least, rank = min(least, s[-1] ** 2), len(s)
    return least, rank


@pytest.mark.parametrize("loss", CLASSIFICATION)
@given(stream=streams(), size=st.integers(2, 8))
def test_luo2019_theorem6_before_the_first_cut_as_corrected(loss, stream, size):
    # Erratum N9: the least weight, r (r + 1) / 2 in the logarithm, a minimum over partial sums.
    X, y = stream
    described, C = reference.LOSSES[loss], 1.0
    run = reference.learn(
        X, y, loss=loss, size=size, initial_ridge=0.0, null_projection="exact", keep=True
    )
    assert np.abs(run.scores).max() <= C
    last = first_cut(run)
    part = slice(last)
    gradients = np.array([r.gradient for r in run.rounds[part]]).reshape(last, X.shape[1])
    assume(gradients.any())
    least, r = smallest_eigenvalue(gradients)
    weight = min(described.curvature(C) + each.step for each in run.rounds[part])
    pairs = r * (r + 1)
    growth = r + pairs / 2 * np.log1p(2 * np.sum(gradients**2) / (pairs * least))
    steps = sum(each.step for each in run.rounds[part])
    bound = 2 * (C * described.slope(C)) ** 2 * steps + growth / (2 * weight)
    for w in comparators(X[part], y[part], described, C):
        assert regret(run, X, y, w, described, part) <= bound * (1 + RTOL)


@pytest.mark.parametrize("loss", CLASSIFICATION)
@pytest.mark.parametrize("rule", ["exact", "range", "printed"])
@given(stream=streams(), size=st.integers(2, 4))
def test_luo2019_theorem7_after_the_first_cut_as_corrected(loss, rule, stream, size):
    # Errata N8 and N10. The first cut makes H positive definite, so what came before it only
    # enters through the point and the curvature that it left.
    X, y = stream
    described, C, N = reference.LOSSES[loss], 1.0, 2 * size
    run = reference.learn(
        X, y, loss=loss, size=size, initial_ridge=0.0, null_projection=rule, keep=True
    )
    start = first_cut(run) + 1
    assume(start < len(run.rounds))
    part = slice(start, None)
    H = [r.hessian for r in run.rounds[start - 1 :]]
    for w in comparators(X, y, described, C):
        D = [np.linalg.norm(r.point - w) for r in run.rounds[part]]
        gap = run.rounds[start].point - w
        bound = gap @ H[0] @ gap / 2 + second_order(run, described, C, part, H, D, N)
        assert regret(run, X, y, w, described, part) <= bound * (1 + RTOL) + RTOL * len(X)


@pytest.mark.parametrize("method", ["rfd", "fd", "pfd", "rp", "oja", "full", "adagrad", "ogd"])
@given(stream=streams(), C=st.sampled_from([0.2, 1.0]))
def test_assumption_1_every_prediction_is_within_the_limit(method, stream, C):
    # Erratum N5: this needs the projection on the row to be predicted, not on the last one.
    X, y = stream
    d = X.shape[1]
    rng = np.random.default_rng(0)
    start = np.linalg.qr(rng.standard_normal((d, min(3, d))))[0].T
    run = reference.learn(X, y, method=method, size=3, C=C, initial_ridge=0.1, rng=rng, start=start)
    assert np.abs(run.scores).max() <= C
    for x, r in zip(X, run.rounds, strict=True):
        np.testing.assert_allclose(r.point @ x, r.score, atol=1e-8 * C)


def test_the_printed_projection_does_not_keep_predictions_within_the_limit():
    # Erratum N5: u_(t+1) projected with the old row says nothing about the next one.
    run = reference.learn([[1.0, 0.0], [10.0, 1.0]], [1.0, 1.0], initial_ridge=1e-3)
    assert abs(run.raw[0]) <= 1.0
    assert abs(run.raw[1]) > 1.0
    assert abs(run.scores[1]) == 1.0


@pytest.mark.parametrize("loss", [*CLASSIFICATION, "absolute", "huber"])
@pytest.mark.parametrize("C", [0.5, 1.0, 2.0, 5.0])
def test_losses_of_the_library_are_those_of_the_theory(loss, C):
    # Targets within the limit.
    ours, plain = Loss(loss, C, knee=0.0 if loss == "squared" else 1.0), reference.LOSSES[loss]
    grid = np.linspace(-C, C, 121)
    for y in (-1.0, 1.0) if loss in ("logistic", "hinge") else (-C, 0.3 * C, C):
        for z in grid:
            np.testing.assert_allclose(ours.value(z, y), plain.value(z, y), rtol=1e-14)
            np.testing.assert_allclose(ours.slope(z, y), plain.derivative(z, y), rtol=1e-14)
    for t in (1, 2, 50):
        np.testing.assert_allclose(ours.weights(t), (plain.curvature(C), plain.step(t)))


@pytest.mark.parametrize("C", [0.1, 0.5, 1.0, 3.0])
def test_the_curvature_of_squares_holds_for_labels_beyond_the_limit(C):
    mu, _ = Loss("squared", C).weights(1)
    a, b = np.meshgrid(np.linspace(-C, C, 121), np.linspace(-C, C, 121))
    for y in (-1.0, 1.0):
        step = 2.0 * (a - y) * (b - a)
        assert ((b - y) ** 2 >= (a - y) ** 2 + step + mu / 2 * step**2 - 1e-12).all()


def points_on_the_way(X, y, method, size, loss, C, ridge):
    """Return the points that predicted each row."""
    run = reference.learn(X, y, method=method, size=size, loss=loss, C=C, initial_ridge=ridge)
    return np.array([r.point for r in run.rounds])


@pytest.mark.parametrize("method", ["rfd", "fd", "pfd", "full", "adagrad", "ogd"])
@pytest.mark.parametrize("loss", CLASSIFICATION)
@given(
    stream=streams(),
    size=st.integers(2, 6),
    C=st.sampled_from([1.0, 3.0]),
    ridge=st.sampled_from([0.1, 10.0, "auto"]),
)
def test_the_regret_bound_of_the_classifier_is_true(method, loss, stream, size, C, ridge):
    X, y = stream
    assume(np.abs(X).sum() > 0)
    options = {"sketch_size": size, "loss": loss, "C": C, "initial_ridge": ridge}
    model = paper_classifier(method, fit_intercept=False, **options)
    model.partial_fit(X, y, classes=[-1.0, 1.0])
    points = points_on_the_way(X, y, method, size, loss, C, ridge)
    for w in comparators(X, y, loss, C):
        worse = model.cumulative_loss_ - total(reference.LOSSES[loss], X, y, w)
        slack = RTOL * (len(X) + model.cumulative_loss_)
        norm = np.linalg.norm(w)
        assert worse <= model.regret_bound(norm) + slack
        assert worse <= model.regret_bound(norm, within=True) + slack
        assert worse <= model.regret_bound(2 * norm + 1, within=True) + slack
        radius = np.linalg.norm(points - w, axis=1).max() * (1 + 1e-6)
        assert worse <= model.regret_bound(norm, radius, within=True) + slack


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
@given(stream=streams(), size=st.integers(2, 6), weighted=st.booleans())
def test_the_regret_bound_of_the_regressor_is_true(loss, stream, size, weighted):
    X, y = stream
    assume(np.abs(X).sum() > 0)
    rng = np.random.default_rng(len(X))
    y = y * rng.random(len(y))
    weights = rng.choice([0.0, 0.3, 4.0], len(y)) if weighted else np.ones(len(y))
    model = paper_regressor(sketch_size=size, loss=loss, C=1.0, fit_intercept=False)
    model.partial_fit(X, y, sample_weight=weights)
    described = reference.LOSSES[loss]
    for w in comparators(X, y, loss, 1.0):
        pairs = zip(X @ w, y, weights, strict=True)
        theirs = sum(s * described.value(z, target) for z, target, s in pairs)
        slack = RTOL * (len(X) + model.cumulative_loss_)
        bound = model.regret_bound(np.linalg.norm(w), within=True)
        assert model.cumulative_loss_ - theirs <= bound + slack
