import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sksketch.sketches.ledger import Ledger, rounding_allowance

amounts = st.floats(0, 1e6)
ledgers = st.builds(
    Ledger,
    **{f.name: amounts for f in dataclasses.fields(Ledger) if f.name != "n_shrinks"},
    n_shrinks=st.integers(0, 100),
)


@given(ledgers, ledgers)
def test_ledgers_add_field_by_field(a, b):
    total = a + b
    for field in dataclasses.fields(Ledger):
        x, y, z = (getattr(ledger, field.name) for ledger in (a, b, total))
        if field.name == "allowance":
            assert max(x, y) <= z * (1 + 1e-12)
            assert z <= (x + y) * (1 + 1e-12)
        else:
            assert z == x + y
    assert a + b == b + a


@given(ledgers, st.floats(0, 1))
def test_forgetting_scales_energies_but_not_counts_and_probabilities(a, factor):
    scaled = a.scaled(factor)
    for field in dataclasses.fields(Ledger):
        kept = field.name in ("failure_probability", "n_shrinks")
        expected = getattr(a, field.name) * (1 if kept else factor)
        assert getattr(scaled, field.name) == pytest.approx(expected)


def test_rounding_is_relative_to_the_largest_eigenvalue():
    assert rounding_allowance(1e-16, 2e10) == 2 * rounding_allowance(1e-16, 1e10)
    assert 1e-16 <= rounding_allowance(1e-16, 1.0) <= 1e-13
