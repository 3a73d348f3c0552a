"""Hostile arrays through the public API: refused with nothing changed, or the right answer."""

from __future__ import annotations

import numpy as np
import pytest

import sksketch
from _support import hostile
from robustness import abuse, children


def test_hostile_arrays_are_refused_or_answered_rightly(full, tally):
    found = children.outcomes("abuse", str(20_000 if full else 200))
    for (_, outcome), n in found.items():
        tally("hostile arrays", {outcome: n})


def test_every_public_estimator_and_sketch_is_abused():
    public = {getattr(sksketch, name) for name in sksketch.__all__}
    sketches = {c for c in public if isinstance(c, type) and issubclass(c, sksketch.Sketch)}
    wrappers = {sksketch.Sketch, sksketch.Regression}
    abused = {type(abuse.laws.SKETCHES[name]()) for name in abuse.SKETCHES}
    assert sketches - wrappers <= abused
    estimators = {c for c in public if hasattr(c, "fit")}
    # One takes three views, the other tables, which tests/tables abuses.
    estimators -= {sksketch.MultiviewMixture, sksketch.TableEncoder}
    assert estimators <= {type(make()) for make, _ in abuse.ESTIMATORS.values()}


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_three_views_are_refused_as_well():
    rng = np.random.default_rng(0)
    views = [rng.standard_normal((40, hostile.WIDTH)) for _ in range(3)]
    mixture = sksketch.MultiviewMixture(2, landmarks=6, lift_rows=10)
    taken = []
    for kind, make in hostile.REFUSED.items():
        bad = make(rng)
        for place in range(3):
            try:
                mixture.fit(*(bad if i == place else view for i, view in enumerate(views)))
            except (ValueError, TypeError):
                continue
            taken.append((kind, place))
    assert taken == []
    assert not hasattr(mixture, "weights_")
