import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sksketch.sketches.directions.shrink.rules import RULES, n_reduced

eigenvalues = st.lists(st.floats(0, 1e6), min_size=1, max_size=20).map(
    lambda values: np.sort(np.array(values))[::-1]
)


@pytest.mark.parametrize("rule", RULES)
@given(e=eigenvalues, size=st.integers(1, 25), fraction=st.floats(0.01, 1.0))
def test_no_direction_loses_more_than_the_cut(rule, e, size, fraction):
    before = e.copy()
    kept, cut = RULES[rule](e, size, fraction)
    np.testing.assert_array_equal(e, before)
    assert len(kept) == min(size, len(e))
    assert cut == (e[size] if size < len(e) else 0.0)
    padded = np.concatenate([kept, np.zeros(len(e) - len(kept))])
    lost = e - padded
    assert (lost >= 0).all()
    assert (lost <= cut + 1e-9 * e[0]).all()
    assert (np.diff(kept) <= 0).all()


@given(e=eigenvalues, size=st.integers(1, 10), fraction=st.floats(0.01, 1.0))
def test_a_shrink_loses_q_cuts_in_all(e, size, fraction):
    halves = size / 2 + 1
    for rule, q in (
        ("uniform", size + 1),
        ("half", halves),
        ("parameterized", n_reduced(size, fraction)),
    ):
        kept, cut = RULES[rule](e, size, fraction)
        lost = e.sum() - kept.sum()
        assert lost >= q * cut - 1e-9 * e.sum()


def test_fraction_one_is_the_uniform_rule_and_a_tiny_one_truncates():
    e = np.array([9.0, 5.0, 4.0, 2.0, 1.0])
    for fraction, rule in ((1.0, "uniform"), (1e-3, "truncate")):
        left, right = RULES["parameterized"](e, 3, fraction), RULES[rule](e, 3, fraction)
        np.testing.assert_array_equal(left[0], right[0])
        assert left[1] == right[1]


def test_negative_rounding_noise_is_clipped():
    for rule in RULES.values():
        kept, cut = rule(np.array([1.0, -1e-17, -2e-17]), 1, 0.5)
        assert cut == 0.0
        np.testing.assert_array_equal(kept, [1.0])
