"""The oracle against exact rational arithmetic, on numbers small enough for it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from _support import extended, oracle
from _support.extended import LD

pytestmark = pytest.mark.skipif(not extended.EXTENDED, reason="long double is no finer than double")


def fractions(X):
    return [[Fraction(float(x)) for x in row] for row in X]


def rational_gram(X, weights, centered):
    """Return the weighted sum of products around the mean, exactly."""
    rows, w = fractions(X), [Fraction(float(x)) for x in weights]
    total = sum(w)
    d = len(rows[0])
    mean = [Fraction(0)] * d
    if centered:
        mean = [sum(a * row[j] for a, row in zip(w, rows, strict=True)) / total for j in range(d)]
    return [
        [
            sum(a * (r[i] - mean[i]) * (r[j] - mean[j]) for a, r in zip(w, rows, strict=True))
            for j in range(d)
        ]
        for i in range(d)
    ]


def exactly(value):
    """Return a long double as a fraction."""
    mantissa, exponent = np.frexp(LD(value))
    high = float(mantissa)
    low = float(mantissa - LD(high))
    return (Fraction(high) + Fraction(low)) * Fraction(2) ** int(exponent)


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6, 1.7e9, 1e12])
@pytest.mark.parametrize("centered", [False, True])
def test_gram_matrix_is_right_to_its_stated_error(offset, centered):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 3)) + offset
    weights = rng.choice([0.3, 1.0, 7.0], 40)
    found = oracle.truth(oracle.Rows(3).update(X, weights), centered=centered)
    exact = rational_gram(X, weights, centered)
    for i in range(3):
        for j in range(3):
            assert abs(exactly(found.gram[i, j]) - exact[i][j]) <= exactly(found.error)
    # It is finer than what float64 could do with the centered rows themselves.
    assert found.error < 1e-16 * found.trace


def test_weights_after_forgetting_and_merging():
    one = oracle.Rows(2).update(np.eye(2), decay=0.9).update(np.ones((1, 2)), decay=0.9)
    other = oracle.Rows(2).update(np.ones((1, 2)), [2.0], decay=0.9)
    one.merge(other).update(np.zeros((1, 2)), decay=0.9)
    exact = [Fraction(0.9) ** age for age in (3, 2, 1)] + [2 * Fraction(0.9), Fraction(1)]
    for weight, wanted in zip(one.weights, exact, strict=True):
        assert abs(exactly(weight) - wanted) <= wanted * exactly(8 * extended.ROUNDOFF)


def test_constant_rows_have_no_scatter_at_all():
    rows = oracle.Rows(3).update(np.tile([0.1, 1 / 3, 1e12], (50, 1)))
    found = oracle.truth(rows, centered=True)
    assert not found.gram.any()
    assert found.error == 0


@pytest.mark.parametrize("n", [1, 2, 3, 7, 12, 24])
@pytest.mark.parametrize("kind", ["random", "graded", "multiple"])
def test_eigenvalues_of_a_matrix_that_is_built_from_them(n, kind):
    rng = np.random.default_rng(n)
    wanted = {
        "random": np.sort(rng.random(n))[::-1],
        "graded": 0.25 ** np.arange(n),
        "multiple": np.where(np.arange(n) < n / 2, 1.0, 2.0**-40),
    }[kind].astype(LD)
    Q = extended.orthonormal(rng.standard_normal((n, n)))
    values, error = extended.eigenvalues((Q.T * wanted) @ Q)
    assert np.abs(values - wanted).max() <= error + 8 * n * extended.ROUNDOFF
    assert error < 1e-15


def test_eigenvalues_of_integers_satisfy_their_characteristic_polynomial():
    G = np.array([[2, 1, 0], [1, 3, 1], [0, 1, 4]])
    values, error = extended.eigenvalues(G.astype(LD))
    for value in values:
        x = exactly(value)
        assert abs((2 - x) * ((3 - x) * (4 - x) - 1) - (4 - x)) <= 20 * exactly(error)


def test_captured_energy_is_of_the_span_and_not_of_the_rows_given():
    G = np.diag([4.0, 2.0, 1.0]).astype(LD)
    skew = np.array([[2.0, 0.0, 0.0], [5.0, 0.1, 0.0]])
    assert extended.captured(G, skew).astype(float).tolist() == [4.0, 6.0]


def test_solve_is_exact_to_rounding_on_an_ill_conditioned_matrix():
    n = 7
    H = np.array([[Fraction(1, i + j + 1) for j in range(n)] for i in range(n)])
    H = np.array([[float(x) for x in row] for row in H])
    x = extended.solve(H, H.astype(LD).sum(axis=1))
    assert np.abs(x - 1).max() < 1e-9
    assert np.abs(H.astype(LD) @ x - H.astype(LD).sum(axis=1)).max() < 1e-18


def test_ridge_equals_a_rational_solution():
    X, y = (
        np.array([[1.0, 2.0], [3.0, 5.0], [7.0, 1.0], [2.0, 2.0]]),
        np.array([1.0, 0.0, 4.0, 2.0]),
    )
    found = oracle.truth(oracle.Rows(2).update(X), targets=y)
    exact = oracle.ridge(found, 0.5)
    # (63.5, 33; 33, 34.5) x = (33, 10), by Cramer's rule.
    G = rational_gram(X, np.ones(4), centered=False)
    a, b, c = G[0][0] + Fraction(1, 2), G[0][1], G[1][1] + Fraction(1, 2)
    r, s = Fraction(1 + 28 + 4), Fraction(2 + 4 + 4)
    det = a * c - b * b
    x = [(r * c - b * s) / det, (a * s - b * r) / det]
    assert all(
        abs(exactly(v) - w) <= exactly(exact.error)
        for v, w in zip(exact.coefficients, x, strict=True)
    )
    squares = sum(
        (Fraction(t) - sum(Fraction(p) * q for p, q in zip(row, x, strict=True))) ** 2
        for row, t in zip(X.tolist(), y.tolist(), strict=True)
    )
    assert abs(exactly(exact.squares) - squares) <= exactly(exact.squares_error)
    inverse = (c + a) / det
    assert abs(exactly(exact.free) - (2 - Fraction(1, 2) * inverse)) <= exactly(
        exact.free_error
    ) + Fraction(1, 10**17)
    assert exact.error < 1e-15
    assert exact.squares_error < 1e-14
