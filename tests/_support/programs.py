"""The benchmarks of a clone, run as a user runs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The sdist carries the tests, and its users may have taken them alone.
needs_benchmarks = pytest.mark.skipif(
    not (ROOT / "benchmarks").exists(), reason="needs the benchmarks of a clone"
)


def start(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m benchmarks.module`` to its end."""
    return subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


def quick(module: str, *arguments: str) -> str:
    """Run the quick form of a benchmark and return what it printed."""
    done = start(module, "--quick", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout
