"""Run a benchmark in a process of its own; versions and Markdown for what it left."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "scikit-learn",
    "numba": "numba",
    "sksketch": "scikit-sketch",
}
# Lines of the end of stderr that a failure shows.
TAIL = 12


@dataclass(frozen=True)
class Done:
    """What a script printed, its exit code and its time."""

    command: str
    code: int
    printed: str
    complaint: str
    seconds: float

    @property
    def failure(self) -> str:
        """Return the last line of stderr where the script failed, or nothing."""
        if self.code == 0:
            return ""
        lines = [line for line in self.complaint.splitlines() if line.strip()]
        return f"exit code {self.code}: {lines[-1].strip() if lines else 'no message'}"

    def tail(self) -> str:
        """Return the end of stderr."""
        return "\n".join(self.complaint.splitlines()[-TAIL:])


def run(module: str, arguments: Sequence[str]) -> Done:
    """Run one module as a program, with one BLAS thread, and wait for it."""
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"},
    )
    # Only what the script is called with, not where the folders are.
    shown = [Path(a).name if os.sep in a else a for a in arguments]
    command = " ".join(["python -m", module, *shown])
    return Done(command, done.returncode, done.stdout, done.stderr, time.perf_counter() - begun)


def versions() -> dict[str, str]:
    """Return what the figures depend on."""
    found = {"python": platform.python_version()}
    found |= {name: version(package) for name, package in PACKAGES.items()}
    return found | {"processor": processor(), "cores": str(os.cpu_count())}


def version(package: str) -> str:
    """Return the version of a package, or that it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def processor() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def tables(path: Path, facts: dict[str, str]) -> dict[str, Any]:
    """Return the tables of a file for the site, if it was written under the same versions.

    Git keeps these files and not what they were made of, and not every script is run each time.
    """
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return {} if found.pop("facts", None) != facts else found


def markdown(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", r"\|") for cell in line) + " |" for line in lines
    )


def fenced(text: str) -> str:
    """Return text as it was printed, for Markdown."""
    return f"```text\n{text.rstrip()}\n```"
