"""Shapes and values at the edges: the answers of dense float64, or a clear refusal."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.sparse as sp

import sksketch
from _support import laws, zoo
from robustness import abuse

SHAPES = {
    "one column": (60, 1),
    "one row": (1, 7),
    "one number": (1, 1),
    "two rows": (2, 40),
    "more kept than rows": (5, 30),
    "more kept than columns": (200, 3),
}
SIZES = (1, 2, 50)
DETERMINISTIC = [
    *("fd exact uniform", "fd block uniform", "fd covariance uniform", "fd exact wide"),
    *("fd block wide", "fd exact one row", "exact covariance", "centered fd exact uniform"),
    *("centered fd block uniform", "centered exact covariance", "sfd boosted", "sfd half"),
    *("2lfd small", "centered sfd boosted", "regression", "regression uncentered"),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_bounds_are_true_for_every_shape(name, shape, tally):
    X = np.random.default_rng(3).standard_normal(SHAPES[shape]) + 1.0
    for rows in (X, sp.csr_array(X)):
        sketch = laws.SKETCHES[name]().update(rows)
        A = laws.Rows(X.shape[1]).update(X).matrix(centered=laws.is_centered(sketch))
        laws.bound_is_true(sketch, A)
        tally("extreme shapes", {"right": 1})


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("key", laws.LINEAR)
def test_projections_take_every_shape(key, shape, tally):
    X = np.random.default_rng(3).standard_normal(SHAPES[shape])
    for size in SIZES:
        sketch = sksketch.make_sketch(key, size).update(X)
        summary = sketch.summary()
        assert np.isfinite(summary.to_dense()).all()
        assert summary.squared_norm == pytest.approx(zoo.energy(X), rel=1e-12)
        tally("extreme shapes", {"right": 1})


@pytest.mark.filterwarnings("ignore:n_components=:UserWarning")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", abuse.ESTIMATORS)
def test_estimators_take_every_shape_or_say_why_not(name, shape, tally):
    make, second = abuse.ESTIMATORS[name]
    X = np.random.default_rng(4).standard_normal(SHAPES[shape])
    try:
        model = abuse.learn(make(), "fit", second, X)
    except ValueError as error:
        assert 10 < len(str(error).splitlines()[0]) < 300  # noqa: PT017
        tally("extreme shapes", {"refused with a reason": 1})
        return
    method = model.predict if hasattr(model, "predict") else model.transform
    pair = np.resize(abuse.GOOD[:, :4], (len(X), 4))
    found = method(X, pair) if second == "Y" else method(X)
    for part in found if isinstance(found, tuple) else (found,):
        part = np.asarray(part.toarray() if sp.issparse(part) else part)
        assert len(part) == len(X)
        assert part.dtype.kind in "iUb" or np.isfinite(part).all()
    tally("extreme shapes", {"answered": 1})


@pytest.mark.parametrize("key", ["fd", "rfd", "sfd", "countsketch", "2lfd"])
def test_a_million_columns_and_two_rows_kept(key, full, tally):
    n_features = 10**6 if full or key != "2lfd" else 10**5
    rng = np.random.default_rng(5)
    rows = sp.random_array((60, n_features), density=5e-5, rng=rng, format="csr") * 3.0
    options = {"rank": 1} if key == "2lfd" else {}
    sketch = sksketch.make_sketch(key, 5 if key == "2lfd" else 2, **options).update(rows)
    summary = sketch.summary()
    truth = np.linalg.eigvalsh((rows @ rows.T).toarray())[::-1]
    assert summary.components.shape[1] == n_features
    assert summary.squared_norm == pytest.approx(truth.sum(), rel=1e-9)
    largest = summary.eigenvalues[0] + summary.ridge
    assert abs(largest - truth[0]) <= sketch.error_bound() + 1e-9 * truth.sum()
    if full:
        dense = rng.standard_normal((4, n_features))
        assert np.isfinite(copy.deepcopy(sketch).update(dense).summary().eigenvalues).all()
    tally("extreme shapes", {"right": 1})


# Values

SCALES = (1e-140, 1e-100, 1e-20, 1e20, 1e100, 1e140)


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_answers_scale_with_the_rows(name, tally):
    X = np.random.default_rng(6).standard_normal((150, 12)) + 0.5
    make = laws.SKETCHES[name]
    if laws.initial_ridge(make()):
        pytest.skip("a fixed ridge does not scale with the rows")
    first = make().update(X)
    one = first.summary()
    # Subspace iteration is in single precision where that holds the rows.
    rough = "subspace iteration" in first.plan()
    digits, bound_digits = (1e-7, 1e-4) if rough else (1e-9, 1e-6)
    for scale in SCALES:
        # A power of two: the digits stay the same.
        factor = 2.0 ** np.round(np.log2(scale))
        sketch = make().update(factor * X)
        summary = sketch.summary()
        np.testing.assert_allclose(
            summary.to_dense() / factor / factor,
            one.to_dense(),
            rtol=0,
            atol=digits * one.squared_norm,
        )
        bound = summary.error_bound / factor / factor
        # Other rows have other probes, which verify a little more or less.
        luck = 0.1 if one.confidence < 1 else bound_digits
        assert bound == pytest.approx(one.error_bound, rel=luck)
        tally("extreme values", {"scaled, the same answer": 1})


@pytest.mark.parametrize("value", [1e300, -1e300, 1.7e308, 1e155])
@pytest.mark.parametrize("name", abuse.SKETCHES)
def test_values_whose_squares_overflow_are_refused(name, value, tally):
    sketch = copy.deepcopy(abuse.fitted(name))
    X = abuse.GOOD[:5].copy()
    X[2, 3] = value
    with pytest.raises(ValueError, match="overflow"):
        sketch.update(X)
    assert abuse.unchanged(sketch, name) is None
    tally("extreme values", {"refused, nothing changed": 1})


@pytest.mark.parametrize("scale", [1e-300, 5e-324, 1e-160])
@pytest.mark.parametrize("name", abuse.SKETCHES)
def test_values_whose_squares_vanish_give_numbers(name, scale, tally):
    # A'A itself is below all numbers there, so that zero is its right value.
    X = abuse.GOOD * scale
    sketch = laws.SKETCHES[name]().update(X)
    summary = sketch.summary()
    assert np.isfinite(summary.to_dense()).all()
    assert abs(summary.to_dense() - X.T @ X).max() <= sketch.error_bound() + 1e-300
    gram = np.eye(len(summary.components)) if len(summary.components) else np.zeros((0, 0))
    np.testing.assert_allclose(summary.components @ summary.components.T, gram, atol=1e-9)
    assert 0.0 <= sketch.error_bound() < 1e-300 or sketch.error_bound() == np.inf
    tally("extreme values", {"numbers that stay finite": 1})


# All rows may look alike then, or the solver may stop early and say so.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", abuse.ESTIMATORS)
@pytest.mark.parametrize("scale", [1e-300, 5e-324, 1e-140, 1e60, 1e300])
def test_estimators_give_finite_answers_or_say_why_not(name, scale, tally):
    make, second = abuse.ESTIMATORS[name]
    X = abuse.GOOD * scale
    try:
        model = abuse.learn(make(), "fit", second, X)
        method = model.predict if hasattr(model, "predict") else model.transform
        found = method(X, abuse.GOOD[:, :4]) if second == "Y" else method(X)
    except ValueError as error:
        assert 10 < len(str(error).splitlines()[0]) < 300  # noqa: PT017
        tally("extreme values", {"refused with a reason": 1})
        return
    for part in found if isinstance(found, tuple) else (found,):
        part = np.asarray(part.toarray() if sp.issparse(part) else part)
        assert part.dtype.kind in "iUb" or np.isfinite(part).all()
    tally("extreme values", {"answered": 1})


def test_tiny_numbers_beside_large_ones_do_not_disturb(tally):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((100, 8))
    mixed = np.hstack([X, X * 1e-300, np.full((100, 1), 5e-324)])
    exact = np.asarray(X, dtype=np.longdouble)
    truth = np.asarray(exact.T @ exact, dtype=np.float64)
    found = sksketch.ExactCovariance().update(mixed).summary().to_dense()
    np.testing.assert_allclose(found[:8, :8], truth, rtol=1e-12, atol=1e-12)
    assert np.abs(found[8:, 8:]).max() <= 1e-12
    tally("extreme values", {"right": 1})
