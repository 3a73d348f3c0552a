"""From `partial_fit` to the line of the paper: few calls, in few files, as CONTRIBUTING shows."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import sksketch
from sksketch import StreamingPCA
from sksketch.sketches.directions.shrink import rules

ROOT = Path(sksketch.__file__).parent
MOST_CALLS, MOST_FILES = 20, 12


def journey():
    """Return the open calls of the package when the first shrink reaches its rule."""
    found = []

    def watch(frame, event, _):
        if event != "call" or found or frame.f_code is not rules.shrink_half.__code__:
            return
        while frame is not None:
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(ROOT):
                found.append((file.relative_to(ROOT).as_posix(), frame.f_code.co_qualname))
            frame = frame.f_back

    X = np.random.default_rng(0).standard_normal((2000, 600))
    pca = StreamingPCA(8).partial_fit(X[:10])
    sys.setprofile(watch)
    try:
        pca.partial_fit(X[10:])
    finally:
        sys.setprofile(None)
    return found[::-1]


def test_the_way_to_the_rule_is_short_and_is_the_one_that_is_shown(monkeypatch):
    monkeypatch.setenv("SKSKETCH_NUM_THREADS", "1")
    calls = journey()
    assert calls[-1] == ("sketches/directions/shrink/rules.py", "shrink_half")
    assert len(calls) <= MOST_CALLS
    assert len({file for file, _ in calls}) <= MOST_FILES
    shown = "\n".join(f"{file:44}{name}" for file, name in calls)
    guide = Path(__file__).parents[2] / "CONTRIBUTING.md"
    if guide.exists():
        assert shown in guide.read_text(), shown
