"""Coordinate ascent: compiled as written, and no step goes down or out of bounds."""

import numpy as np
import pytest

from sksketch.reduction.dual import solve
from sksketch.reduction.dual_losses import DualLoss
from sksketch.reduction.kernels import dual

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 7))
X[5] = 0.0
Y = np.where(X @ RNG.standard_normal(7) + RNG.standard_normal(60) > 0, 1.0, -1.0)
SHARES = RNG.uniform(0.0, 2.0, 60) / 60
RIDGE = 0.05
each_loss = pytest.mark.parametrize(
    "loss",
    [
        DualLoss(name, tau)
        for name in ("hinge", "squared_hinge", "squared", "absolute", "logistic")
        for tau in (0.0, 0.4)
    ],
    ids=lambda loss: f"{loss.name} {loss.tolerance}",
)


def arguments(loss, a):
    scales = SHARES / RIDGE
    curvatures = scales * (X**2).sum(axis=1)
    rows = dual.DualRows(X, Y, scales, curvatures)
    w, order = X.T @ (scales * a), np.random.default_rng(1).permutation(60)
    if loss.name == "logistic":
        return w, a, order, rows, loss.tolerance
    form = dual.Piecewise(*loss.bounds(Y), loss.curvature, loss.tolerance)
    return w, a, order, rows, form, np.inf


def kernel(loss):
    return dual.ascend_logistic if loss.name == "logistic" else dual.ascend_piecewise


def dual_value(loss, a):
    w = X.T @ (SHARES * a) / RIDGE
    return -SHARES @ loss.conjugate(a, Y) - 0.5 * RIDGE * w @ w


@each_loss
def test_the_compiled_pass_is_the_one_written_down(loss):
    results = []
    for run in (kernel(loss), kernel(loss).py_func):
        given = arguments(loss, np.zeros(60))
        found = run(*given)
        results.append((np.atleast_1d(found), *given[:3]))
    for left, right in zip(*results, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12)


@each_loss
def test_every_pass_goes_up_and_stays_within_bounds(loss):
    a = np.zeros(60)
    low, high = loss.bounds(Y)
    values = [dual_value(loss, a)]
    for _ in range(6):
        w = arguments(loss, a)[0]
        given = (w, *arguments(loss, a)[1:])
        kernel(loss)(*given)
        np.testing.assert_allclose(w, X.T @ (SHARES * a) / RIDGE, atol=1e-10)
        assert (a >= low).all()
        assert (a <= high).all()
        values.append(dual_value(loss, a))
    assert (np.diff(values) >= -1e-12).all()
    assert values[-1] > values[0]


@each_loss
@pytest.mark.parametrize("ridge", [1.0, 1e-2, 1e-5])
def test_the_gap_is_reached_and_true(loss, ridge):
    options = {"tol": 1e-7, "max_passes": 1000}
    found = solve(loss, X, Y, SHARES, ridge, **options)
    primal = SHARES @ loss.value(X @ found.model, Y) + 0.5 * ridge * found.model @ found.model
    pull = X.T @ (SHARES * found.dual)
    dual = -SHARES @ loss.conjugate(found.dual, Y) - pull @ pull / (2 * ridge)
    assert found.gap <= 1e-7
    assert primal - dual == pytest.approx(found.gap, abs=1e-9)
    again = solve(loss, X, Y, SHARES, ridge, start=found.dual, **options)
    # Roundings, which differ between processors, decide on which of the last steps it ends.
    assert again.n_passes <= max(found.n_passes + 5, 45)
