"""Sums of products without any rounding, against rational numbers."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sksketch.arrays.double_double import Doubled, sweep
from sksketch.sketches.wrappers.exact_products import ExactProducts


def rational(rows, weights):
    """Return the sums of w z z' with z = (1, row), as fractions."""
    Z = [[Fraction(1), *map(Fraction, row)] for row in rows.tolist()]
    W = [Fraction(w) for w in weights.tolist()]
    k = len(Z[0])
    pairs = list(zip(W, Z, strict=True))
    return [[sum(w * z[i] * z[j] for w, z in pairs) for j in range(k)] for i in range(k)]


def learned(rows, weights, parts):
    found = ExactProducts(rows.shape[1])
    for part in parts:
        other = ExactProducts(rows.shape[1])
        X = rows[part, :-1]
        X = sp.csr_array(X) if len(part) % 2 else X
        other.update(X, rows[part, -1:], weights[part])
        found.merge(ExactProducts.from_state(other.state()))
    return found


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    spread=st.sampled_from([0, 3, 30, 140]),
    weighted=st.sampled_from(["ones", "halves", "any"]),
)
def test_sums_are_exact_in_any_order(seed, spread, weighted):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 40)), int(rng.integers(2, 5))
    rows = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-spread, spread, (n, d))
    rows[rng.random((n, d)) < 0.2] = 0.0
    weights = {
        "ones": np.ones(n),
        "halves": rng.integers(0, 5, n) / 2.0,
        "any": rng.random(n) * 10.0 ** rng.uniform(-5, 5),
    }[weighted]
    order = rng.permutation(n)
    parts = np.split(order, np.sort(rng.integers(0, n + 1, 3)))
    found, place = learned(rows, weights, [part for part in parts if len(part)]).whole()
    scale = Fraction(2) ** place
    expected = rational(rows, weights)
    for row, wanted in zip(found, expected, strict=True):
        assert [scale * total for total in row] == wanted


def test_many_tiles_carry(monkeypatch):
    from sksketch.sketches.wrappers import exact_products

    monkeypatch.setattr(exact_products, "CARRY_AFTER", 3)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((9000, 2)) * [1.0, -1e-9] + [1e6, 0.0]
    one = ExactProducts(2).update(rows[:, :1], rows[:, 1:])
    many = learned(rows, np.ones(9000), np.array_split(rng.permutation(9000), 40))
    (a, p), (b, q) = one.whole(), many.whole()
    low = min(p, q)
    assert [[x << (p - low) for x in row] for row in a] == [
        [x << (q - low) for x in row] for row in b
    ]


def test_around_means_nothing_cancels():
    rows = np.array([[1e15, 1.0], [1e15 + 1.0, 2.0], [1e15 + 2.0, 4.0]])
    found = ExactProducts(2).update(rows[:, :1], rows[:, 1:]).centered(True)
    expected = np.cov((rows - rows[0]).T) * 2.0
    np.testing.assert_allclose(found.products.rounded(), expected, rtol=1e-15)
    assert found.weight == 3.0


@pytest.mark.parametrize("d", [1, 5, 12])
def test_sweeping_solves_what_floats_cannot(d):
    # Hilbert's matrix: its condition grows like 30^d.
    H = [[Fraction(1, i + j + 1) for j in range(d + 1)] for i in range(d + 1)]
    high = np.array([[float(x) for x in row] for row in H])
    low = np.array([[float(x - Fraction(float(x))) for x in row] for row in H])
    found = sweep(Doubled(high, low), d, np.zeros(d))
    assert list(found.pivots) == list(range(d))
    M = [[*row[:d], row[d]] for row in H[:d]]
    for i in range(d):
        M[i] = [x / M[i][i] for x in M[i]]
        for j in range(d):
            if j != i:
                M[j] = [a - M[j][i] * b for a, b in zip(M[j], M[i], strict=True)]
    expected = np.array([float(row[-1]) for row in M])
    np.testing.assert_allclose(found.solution.rounded()[:, 0], expected, rtol=1e-12)
