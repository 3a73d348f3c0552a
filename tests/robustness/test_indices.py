"""Sparse matrices with indices out of range are refused at every door, before they are read."""

from __future__ import annotations

from robustness import children


def test_indices_out_of_range_are_refused(full, tally):
    found = children.outcomes("indices", *(("1500", "60") if full else ("60", "1")))
    for (where, outcome), n in found.items():
        tally(f"sparse indices out of range, {where}", {outcome: n})
