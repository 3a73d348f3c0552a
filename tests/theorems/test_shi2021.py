"""Shi and Phillips (2021), A deterministic streaming sketch for ridge regression."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _support import zoo
from sksketch import LowRankPlusRidge, Regression, make_sketch
from sksketch.ridge.solution import effective_dimension, solve_summary, squared_error_interval


@st.composite
def problems(draw):
    X = draw(zoo.matrices())
    scale = np.abs(X).max()
    X = X / scale if scale > 0 else X
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    y = X @ rng.standard_normal((X.shape[1], 2)) + rng.standard_normal((len(X), 2))
    ridge = float(draw(st.sampled_from([1e-3, 0.1, 1.0, 30.0]))) * max(zoo.energy(X), 1e-6)
    return X, y, ridge


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("key", ["fd", "rfd", "isvd", "2lfd", "sfd", "exact"])
@given(problem=problems(), size=st.integers(4, 8))
@settings(max_examples=20)
def test_lemma1_the_coefficient_certificate_holds(key, centered, problem, size):
    X, y, ridge = problem
    sketch = Regression(make_sketch(key, size), centered=centered).update(X, targets=y)
    summary, moments = sketch.summary(), sketch.moments()
    A, b = (X - X.mean(axis=0), y - y.mean(axis=0)) if centered else (X, y)
    exact = np.linalg.solve(zoo.gram(A) + ridge * np.eye(A.shape[1]), A.T @ b)
    solution = solve_summary(summary, moments.cross, ridge)
    errors = np.linalg.norm(solution.coefficients - exact, axis=0)
    lengths = np.linalg.norm(exact, axis=0)
    rounding = 1e-8 * (lengths + np.linalg.norm(moments.cross, axis=0) / ridge)
    assert (errors <= solution.absolute_bounds + rounding).all()
    assert (errors <= solution.relative_bound * lengths + rounding).all()
    # The sum of squared residuals of the answer, from the sketch alone.
    low, high = squared_error_interval(summary, moments, solution.coefficients)
    truth = ((A @ solution.coefficients - b) ** 2).sum(axis=0)
    slack = 1e-8 * (truth + (b**2).sum(axis=0))
    assert (low <= truth + slack).all()
    assert (truth <= high + slack).all()


@given(problem=problems(), size=st.integers(1, 8))
@settings(max_examples=40)
def test_theorem2_the_bounds_in_advance(problem, size):
    # With sketch_size + 1 in the place of the paper's l, see docs.
    X, y, ridge = problem
    exact = np.linalg.solve(zoo.gram(X) + ridge * np.eye(X.shape[1]), X.T @ y)
    lengths = np.linalg.norm(exact, axis=0)
    for correction, share in (("none", 1.0), ("half", 0.5)):
        inner = make_sketch("fd", size, solver="exact", correction=correction)
        sketch = Regression(inner, centered=False).update(X, targets=y)
        found = solve_summary(sketch.summary(), sketch.moments().cross, ridge).coefficients
        errors = np.linalg.norm(found - exact, axis=0)
        for rank in range(size + 1):
            bound = share * zoo.tail(X, rank) / (ridge * (size + 1 - rank))
            assert (errors <= bound * lengths + 1e-8 * (1 + lengths)).all()


def test_robust_fd_is_never_vacuous():
    X = np.random.default_rng(0).standard_normal((500, 60))
    y = X[:, :1]
    for ridge in (1e-9, 1.0, 1e6):
        sketch = Regression(make_sketch("rfd", 5, solver="exact"), centered=False)
        sketch.update(X, targets=y)
        assert solve_summary(sketch.summary(), sketch.moments().cross, ridge).relative_bound < 1


def test_effective_dimension_of_known_spectra():
    K = LowRankPlusRidge(np.eye(4)[:2], np.array([3.0, 1.0]), ridge=1.0)
    dense = K.to_dense()
    expected = np.trace(dense @ np.linalg.inv(dense + 2.0 * np.eye(4)))
    assert effective_dimension(K, 2.0) == pytest.approx(expected)
