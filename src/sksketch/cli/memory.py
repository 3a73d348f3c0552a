"""A limit on memory, and the largest sketch that stays below it."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

from sksketch.sketches import planning

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
BINARY = {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}

# Where the system does not tell: what Python and the libraries take.
LIBRARIES = 250e6
# Blocks that are read ahead, parsed and checked at the same time, and what libraries take that are
# loaded with the first of them.
BLOCKS = 175e6
LARGEST_SIZE = 1024


def parse_size(text: str) -> int:
    """Return a size in bytes.

    >>> parse_size("2GB"), parse_size("1.5 MiB")
    (2000000000, 1572864)
    """
    match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]I?)?B?\s*", text.upper())
    try:
        number = float(match[1]) if match else math.nan
    except ValueError:
        number = math.nan
    if match is None or not number > 0:
        raise ValueError(f"{text!r} is no amount of memory; give one such as 500MB or 2GB")
    return int(number * (UNITS | BINARY)[match[2] or ""])


def largest_sketch(limit: int, n_features: int, *, sparse: bool, reading: float = 0.0) -> int:
    """Return the most rows a sketch can keep so that the whole run stays below ``limit`` bytes.

    ``reading`` are those that the rows take on their way, beside some blocks.
    """
    room = limit - resident() - BLOCKS - reading
    sizes = range(min(n_features, LARGEST_SIZE), 0, -1)
    for size in sizes:
        if _sketch_bytes(size, n_features, sparse) <= room:
            return size
    least = limit - room + _sketch_bytes(1, n_features, sparse)
    raise ValueError(
        f"--memory {limit / 1e6:.0f}MB is too little for {n_features:,} columns; give at least "
        f"{math.ceil(least / 1e6)}MB"
    )


def exact_fits(limit: int, n_features: int, *, reading: float = 0.0) -> bool:
    """Return whether the exact covariance and a decomposition of it stay below the limit."""
    return 5 * 8 * n_features**2 <= limit - resident() - BLOCKS - reading


def _sketch_bytes(size: int, n_features: int, sparse: bool) -> float:
    """Return the memory of a sketch at work, in bytes, and that of reading it out."""
    row = 8 * n_features
    read_out = 4.0 * row * size
    if sparse:
        _, entries = planning.sparse_limits("block", size, n_features)
        return 3 * 12.0 * entries + row * (size + 3 * (size + 16)) + read_out
    route = planning.choose("auto", n_features, size)
    if route == "covariance":
        return 5.0 * row * n_features + 2 * 512 * row
    rows = size + planning.rows_between_shrinks(route, size, row)
    return 2.5 * row * rows + read_out


def resident() -> float:
    """Return the bytes that this process holds already."""
    status = Path("/proc/self/status")
    if sys.platform != "linux" or not status.exists():
        return LIBRARIES
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return 1024.0 * int(fields["VmRSS"].split()[0])
