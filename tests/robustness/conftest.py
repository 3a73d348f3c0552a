"""How much is tried, and what came of it: counts of every outcome, printed at the end.

``SKSKETCH_SOAK=1`` runs the full form, ``SKSKETCH_COUNTS=file.json`` keeps the counts.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

FULL = os.environ.get("SKSKETCH_SOAK", "") not in ("", "0")
NAME = "robustness count"
COUNTS: dict[str, Counter[str]] = {}


@pytest.fixture(scope="session")
def full():
    """Say whether this is the full form."""
    return FULL


@pytest.fixture
def tally(record_property):
    """Return a function that counts outcomes; what one worker counts, all see at the end."""

    def count(theme, outcomes):
        record_property(NAME, json.dumps([theme, dict(outcomes)]))

    return count


def pytest_runtest_logreport(report):
    if report.when == "teardown":
        for name, value in report.user_properties:
            if name == NAME:
                theme, outcomes = json.loads(value)
                COUNTS.setdefault(theme, Counter()).update(outcomes)


def pytest_terminal_summary(terminalreporter):
    if not COUNTS:
        return
    terminalreporter.section(f"robustness, {'full' if FULL else 'reduced'} form")
    width = max(map(len, COUNTS))
    for theme, outcomes in sorted(COUNTS.items()):
        text = ", ".join(f"{n:,} {name}" for name, n in sorted(outcomes.items()))
        terminalreporter.write_line(f"{theme:<{width}}  {text}")
    if path := os.environ.get("SKSKETCH_COUNTS"):
        form = {"form": "full" if FULL else "reduced"}
        Path(path).write_text(json.dumps(form | COUNTS, indent=2, sort_keys=True) + "\n")
