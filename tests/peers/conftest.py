"""Hooks that give scikit-learn's tests their tables, and count what became of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from peers.runner import PEERS

FOLDER = Path(__file__).parent


def pytest_configure(config):
    # scikit-learn's marks for runs in threads, which are not made here.
    for mark in ("thread_unsafe", "no_check_spmatrix"):
        config.addinivalue_line("markers", f"{mark}: one of scikit-learn's")


@pytest.fixture
def global_random_seed():
    """The seed that scikit-learn's tests run with by default."""
    return 42


@pytest.fixture(params=[np.float32, np.float64])
def global_dtype(request):
    """Both precisions."""
    return request.param


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    whole = not any("::" in argument for argument in config.args)
    for path, peer in PEERS.items():
        mine = [item for item in items if str(item.path) == path]
        about = [item for item in mine if peer.is_about(item)]
        if whole and about and (stale := peer.stale(about)):
            raise pytest.UsageError(f"no test of {peer.module} has the name {stale}")
        left = []
        for item in about:
            if peer.is_beside(item):
                continue
            left.append(item)
            item.add_marker(pytest.mark.filterwarnings("ignore"))
            if not peer.quick:
                item.add_marker(pytest.mark.slow)
            if (reason := peer.reason(item)) is not None:
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
        kept = set(map(id, left))
        items[:] = [item for item in items if str(item.path) != path or id(item) in kept]


def pytest_terminal_summary(terminalreporter):
    """Print for each peer how many tests pass, fail for a listed reason, or fail."""
    listed = {reason for peer in PEERS.values() for reason in peer.expected}
    counts: dict[str, Counter] = {}
    for outcome in ("passed", "xfailed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, ()):
            path = Path(report.nodeid.partition("::")[0])
            if path.parent.name == FOLDER.name and "::" in report.nodeid:
                # scikit-learn has expected failures of its own.
                theirs = outcome == "xfailed" and PEERS and report.wasxfail not in listed
                counts.setdefault(path.stem, Counter())["skipped" if theirs else outcome] += 1
    if not counts:
        return
    terminalreporter.section("scikit-learn's tests on our estimators")
    terminalreporter.write_line(f"{'peer':34}{'pass':>8}{'listed':>8}{'fail':>8}{'skipped':>9}")
    for name, found in sorted(counts.items()):
        failed = found["failed"] + found["error"]
        terminalreporter.write_line(
            f"{name:34}{found['passed']:8}{found['xfailed']:8}{failed:8}{found['skipped']:9}"
        )
