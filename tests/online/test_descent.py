"""Further passes: the optimum of other solvers, few passes, an objective that only falls."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import scale

from sksketch.online.descent import Descent, PassSums, SmoothLoss, descend
from sksketch.online.descent.line_search import STEPS, Known, is_good, next_length
from sksketch.online.descent.smooth_losses import BEYOND

RNG = np.random.default_rng(5)
X = RNG.standard_normal((300, 5)) * np.array([1.0, 3.0, 0.3, 1.0, 0.1])
SCORE = X @ np.array([1.0, -0.5, 2.0, 0.0, 3.0]) + 0.5
SIGNS = np.where(SCORE + RNG.standard_normal(300) > 0, 1.0, -1.0)
CLASSES = np.digitize(SCORE + RNG.standard_normal(300), [-1.0, 1.0])
NUMBERS = SCORE + RNG.standard_t(2, size=300)
WEIGHTS = RNG.uniform(0.0, 2.0, 300)
ALPHA = 0.7
RIDGE = np.array([*[ALPHA] * 5, 0.0])

# Loss, knee, targets, outputs.
CASES = {
    "squared": (1.0, NUMBERS, 1),
    "logistic": (1.0, SIGNS, 1),
    "softmax": (1.0, CLASSES, 3),
    "hinge": (0.5, SIGNS, 1),
    "huber": (1.5, NUMBERS, 1),
    "absolute": (0.2, NUMBERS, 1),
}


def by_quadratic_slopes(loss, knee):
    """Minimize a loss with corners, written out here a second time."""

    def objective(w):
        z = X @ w[:5] + w[5]
        if loss == "hinge":
            short = 1.0 - SIGNS * z
            value = np.where(short > knee, short - knee / 2, np.maximum(short, 0) ** 2 / 2 / knee)
            slope = -SIGNS * np.minimum(np.maximum(short, 0.0) / knee, 1.0)
        else:
            far, r = np.abs(z - NUMBERS) > knee, z - NUMBERS
            value = np.where(far, knee * np.abs(r) - knee**2 / 2, r**2 / 2)
            slope = np.where(far, knee * np.sign(r), r)
            if loss == "absolute":
                value, slope = value / knee, slope / knee
        slope = WEIGHTS * slope
        gradient = np.append(slope @ X, slope.sum()) + RIDGE * w
        return WEIGHTS @ value + 0.5 * RIDGE @ w**2, gradient

    options = {"gtol": 1e-11, "maxiter": 10_000, "ftol": 1e-16, "maxcor": 30}
    return minimize(objective, np.zeros(6), jac=True, method="L-BFGS-B", options=options).x


def other_solver(loss, knee):
    if loss == "squared":
        model = Ridge(ALPHA, solver="cholesky").fit(X, NUMBERS, WEIGHTS)
    elif loss in ("logistic", "softmax"):
        target = SIGNS if loss == "logistic" else CLASSES
        model = LogisticRegression(C=1 / ALPHA, solver="newton-cholesky", tol=1e-12)
        model.fit(X, target, WEIGHTS)
    else:
        return by_quadratic_slopes(loss, knee)[None]
    return np.column_stack([np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)])


def inverses():
    A = np.column_stack([X, np.ones(300)])
    H = 0.25 * A.T @ A + np.diag(RIDGE)
    values, vectors = np.linalg.eigh(H)
    low = (vectors[:, -2:] * values[-2:]) @ vectors[:, -2:].T + np.eye(6)
    return {
        "exact": lambda g: np.linalg.solve(H, g.T).T,
        "low rank": lambda g: np.linalg.solve(low, g.T).T,
        "identity": lambda g: g,
        "far too small": lambda g: 1e-7 * g,
    }


def whole(*block):
    return lambda: [block]


@pytest.mark.parametrize("sample_rows", [0, 300])
@pytest.mark.parametrize("name", inverses())
@pytest.mark.parametrize("loss", CASES)
def test_optimum_is_that_of_another_solver(loss, name, sample_rows):
    knee, target, n_outputs = CASES[loss]
    found = descend(
        whole(X, target, WEIGHTS),
        np.zeros((n_outputs, 6)),
        loss=loss,
        ridge=RIDGE,
        precondition=inverses()[name],
        knee=knee,
        tol=1e-15,
        max_passes=400,
        sample_rows=sample_rows,
    )
    wanted = other_solver(loss, knee)
    if loss == "softmax":
        # A constant added to all intercepts changes nothing.
        for weights in (found.weights, wanted):
            weights[:, -1] -= weights[:, -1].mean()
    assert found.converged
    np.testing.assert_allclose(found.weights, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("loss", CASES)
def test_slopes_and_bends_are_derivatives(loss):
    knee, target, n_outputs = CASES[loss]
    function = SmoothLoss(loss, knee)
    Z, U = np.random.default_rng(0).standard_normal((2, 300, n_outputs))
    Y, step = function.targets(target, n_outputs), 1e-6
    rise = (function.values(Z + step * U, Y) - function.values(Z - step * U, Y)) / (2 * step)
    np.testing.assert_allclose((function.slopes(Z, Y) * U).sum(axis=1), rise, atol=1e-7)
    change = (function.slopes(Z + step * U, Y) - function.slopes(Z - step * U, Y)) / (2 * step)
    bent = function.bends(Z, Y)(U)
    # A loss that is straight has a share of what a touching parabola would have.
    straight = (change == 0.0) & function.has_corners
    np.testing.assert_allclose(bent[~straight], change[~straight], atol=1e-6)
    shares = bent[straight] / U[straight]
    assert (shares > 0).all()
    assert (shares <= BEYOND * function.bends(Y, Y)(np.ones_like(Y)).max() + 1e-15).all()


@pytest.mark.parametrize("loss", ["huber", "hinge", "absolute"])
def test_touching_parabolas_are_nowhere_below_the_loss(loss):
    knee, _, _ = CASES[loss]
    function, z = SmoothLoss(loss, knee), np.linspace(-4, 4, 401)
    for at in np.linspace(-3.87, 3.91, 40):
        point, one = np.array([[at]]), np.ones((1, 1))
        bent = function.bends(point, one)(one)[0, 0]
        flat = function.slopes(point + 1e-9, one) == function.slopes(point - 1e-9, one)
        bent = bent / BEYOND if flat else bent
        parabola = function.values(point, one) + function.slopes(point, one)[0] * (z - at)
        parabola = parabola + bent / 2 * (z - at) ** 2
        assert (parabola - function.values(z[:, None], np.ones((401, 1)))).min() > -1e-9


@pytest.mark.parametrize("loss", CASES)
def test_far_scores_do_not_overflow(loss):
    knee, target, n_outputs = CASES[loss]
    function = SmoothLoss(loss, knee)
    Z = 1e5 * RNG.standard_normal((300, n_outputs))
    Y = function.targets(target, n_outputs)
    assert np.isfinite(function.values(Z, Y)).all()
    assert np.isfinite(function.slopes(Z, Y)).all()


def test_hinge_and_absolute_are_within_half_a_knee():
    z = np.linspace(-3, 3, 1001)[:, None]
    for loss, plain in (("hinge", np.maximum(0, 1 - z)), ("absolute", np.abs(z - 1))):
        less = plain[:, 0] - SmoothLoss(loss, 0.3).values(z, np.ones_like(z))
        assert less.min() >= -1e-15
        assert less.max() <= 0.15 + 1e-15


@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(sorted(CASES)),
    spread=st.floats(-3, 3),
    wild=st.floats(-6, 6),
    separable=st.booleans(),
    sample_rows=st.sampled_from([0, 7, 1000]),
)
def test_objective_never_rises(seed, loss, spread, wild, separable, sample_rows):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((60, 4)) * 10.0 ** (spread * rng.random(4))
    score = rows @ rng.standard_normal(4)
    noisy = score if separable else score + np.abs(score).max() * rng.standard_normal(60)
    target = {"softmax": np.digitize(noisy, np.quantile(noisy, [0.3, 0.6]))}.get(loss, noisy)
    target = np.where(noisy > 0, 1.0, -1.0) if loss in ("hinge", "logistic") else target
    n_outputs = CASES[loss][2]
    start = rng.standard_normal((n_outputs, 5))
    ridge = np.array([1e-3, 1.0, 0.1, 0.0, 0.0])
    descent = Descent(
        start,
        SmoothLoss(loss, 0.1),
        ridge,
        lambda g: g * 10.0**wild,
        tol=1e-12,
        sample_rows=sample_rows,
    )
    objectives = []
    while not descent.converged and descent.n_passes < 30:
        descent.take(descent.new_pass().add(rows, target))
        result = descent.result()
        objectives.append(result.objective)
        again = PassSums(descent.loss, result.weights).add(rows, target).totals().losses[0]
        penalty = 0.5 * float((ridge * result.weights**2).sum())
        assert result.objective == pytest.approx(again + penalty, rel=1e-9)
    assert np.isfinite(objectives).all()
    assert (np.diff(objectives) <= 0.0).all()


def problem(name):
    rows, target = (load_digits if name == "digits" else load_breast_cancer)(return_X_y=True)
    return scale(rows), target if name == "digits" else 2.0 * target - 1.0


@pytest.mark.parametrize(("name", "most"), [("digits", 10), ("cancer", 11)])
def test_few_passes_reach_the_optimum_of_separable_classes(name, most):
    rows, target = problem(name)
    n_outputs, n_columns = (10 if name == "digits" else 1), rows.shape[1] + 1
    found = descend(
        whole(rows, target, None),
        np.zeros((n_outputs, n_columns)),
        loss="softmax" if name == "digits" else "logistic",
        ridge=np.append(np.ones(n_columns - 1), 0.0),
        precondition=lambda g: g,
    )
    model = LogisticRegression(solver="newton-cholesky", tol=1e-8).fit(rows, target)
    weights = np.column_stack([model.coef_, model.intercept_])
    sums = PassSums(SmoothLoss("softmax" if name == "digits" else "logistic"), weights)
    lowest = sums.add(rows, target).totals().losses[0] + 0.5 * (model.coef_**2).sum()
    assert found.converged
    assert found.n_passes <= most
    assert found.objective == pytest.approx(lowest, rel=1e-6)


def test_sample_of_some_rows_saves_passes():
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((6000, 20)) * np.geomspace(1.0, 30.0, 20)
    target = np.where(
        rows @ (1 / np.geomspace(1.0, 30.0, 20)) + rng.standard_normal(6000) > 0, 1, -1
    )
    n_passes = {}
    for sample_rows in (0, 1000):
        found = descend(
            whole(rows, target, None),
            np.zeros((1, 20)),
            loss="logistic",
            ridge=np.ones(20),
            precondition=lambda g: g,
            max_passes=200,
            sample_rows=sample_rows,
        )
        assert found.converged
        n_passes[sample_rows] = found.n_passes
    assert n_passes[1000] <= 12 < n_passes[0]


def test_max_passes_ends_with_the_best_that_is_known():
    rows, target = X, NUMBERS
    start = np.zeros((1, 6))
    objectives = [
        descend(
            whole(rows, target, None),
            start,
            loss="squared",
            ridge=RIDGE,
            precondition=lambda g: g / 700,
            max_passes=n,
            sample_rows=0,
        )
        for n in range(1, 8)
    ]
    assert [found.n_passes for found in objectives] == list(range(1, 8))
    assert (np.diff([found.objective for found in objectives]) <= 0).all()
    assert not objectives[0].converged


def test_rescaled_step_is_accepted_at_the_same_weights():
    tried = (STEPS - 0.1) ** 2
    step, known = next_length(0.1**2, tried, 0.1, Known())
    assert known.step * step == 0.125
    assert is_good(0.1**2, np.full(6, known.objective), -1e-3, known)


def test_perfect_fit_and_zero_gradient_end():
    target = X @ np.arange(5.0)
    found = descend(
        whole(X, target, None),
        np.zeros((1, 5)),
        loss="squared",
        ridge=np.zeros(5),
        precondition=lambda g: g,
        max_passes=100,
    )
    assert found.converged
    np.testing.assert_allclose(found.weights, [np.arange(5.0)], atol=1e-6)
    again = descend(
        whole(X, np.zeros(300), None),
        np.zeros((1, 5)),
        loss="squared",
        ridge=np.zeros(5),
        precondition=lambda g: g,
    )
    assert again.converged
    assert again.n_passes == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SmoothLoss("cubic"), "not known; give one of"),
        (lambda: SmoothLoss("huber", 0.0), "knee is 0.0; give a positive"),
        (lambda: PassSums(SmoothLoss("squared"), np.zeros((1, 9))).add(X, NUMBERS), "5 features"),
        (lambda: PassSums(SmoothLoss("squared"), np.zeros((1, 5))).add(X, SIGNS[1:]), "299 target"),
        (
            lambda: (
                PassSums(SmoothLoss("squared"), np.zeros((1, 5))).add(X, np.ones((300, 2))).totals()
            ),
            "2 targets a row",
        ),
        (lambda: Descent(np.zeros((1, 3)), SmoothLoss("squared"), np.ones(2), abs), "shape"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_numbers_that_are_not_finite_are_refused():
    descent = Descent(np.full((1, 1), 1e200), SmoothLoss("squared"), np.ones(1), lambda g: g)
    with pytest.raises(ValueError, match="not finite"):
        descent.take(descent.new_pass().add(np.full((2, 1), 1e200), np.ones(2)))
