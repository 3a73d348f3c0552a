"""Certificates under torture: a reduced form of ``make torture``."""

from __future__ import annotations

import pytest

from _support import extended, torture

STREAMS = 400


@pytest.fixture(scope="module")
def tally():
    """Return the counts of all streams."""
    counted = torture.Tally()
    for number in range(STREAMS):
        counted.add(torture.run(number))
    return counted


@pytest.mark.skipif(not extended.EXTENDED, reason="long double is no finer than double")
def test_every_kind_of_bound_holds_as_often_as_it_says(tally):
    broken = [f"{row.kind}: {row.violations} of {row.checks}" for row in tally.rows() if row.broken]
    shown = [f"{kind} in case {number}: {name}" for kind, _, number, name in tally.violations[:20]]
    assert not broken, "\n".join([*broken, *shown])


def test_hardly_any_stream_is_refused(tally):
    assert sum(tally.refused.values()) < STREAMS / 50
    assert len(tally.themes) > 10
