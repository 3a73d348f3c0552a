import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sksketch.sketches.directions.shrink.ledger import Ledger

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
        if field.name == "mass_error":
            # The sum of the squared norms is rounded as well.
            assert x + y <= z <= x + y + 1e-15 * total.squared_norm
        else:
            assert z == x + y
    assert a + b == b + a


@given(ledgers, st.floats(0, 1))
def test_forgetting_scales_energies_but_not_counts_and_probabilities(a, factor):
    scaled = a.scaled(factor)
    for field in dataclasses.fields(Ledger):
        kept = field.name in ("failure_probability", "n_shrinks")
        expected = getattr(a, field.name) * (1 if kept else factor)
        # The squared norm's own error grows by the roundings of the product.
        slack = 1e-15 * a.squared_norm if field.name == "mass_error" else 0.0
        assert getattr(scaled, field.name) == pytest.approx(expected, abs=slack + 1e-12)


def test_ledgers_of_earlier_releases_are_read_with_more_allowed():
    old = {"squared_norm": 4.0, "shrinkage": 1.0, "allowance": 1e-12, "n_shrinks": 9}
    old |= dict.fromkeys(("kept_loss", "largest_loss", "floor", "failure_probability"), 0.0)
    ledger = Ledger.from_dict(old)
    assert ledger.allowance >= 3e-12
    assert ledger.mass_error > 0
    assert Ledger.from_dict(ledger.as_dict()) == ledger
