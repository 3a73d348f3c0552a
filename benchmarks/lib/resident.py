"""Resident memory of this process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def memory_mb(name: str) -> float:
    """Return resident memory now (VmRSS) or its peak (VmHWM); elsewhere than Linux the peak."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        unit = 1.0 if sys.platform == "darwin" else 1024.0
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    fields = dict(line.split(":", 1) for line in lines)
    return 1024.0 * int(fields[name].split()[0]) / 1e6
