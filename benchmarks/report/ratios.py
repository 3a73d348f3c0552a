"""Ratios of speed between our methods and their peers, found in the JSON of any script."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

OURS = re.compile(
    r"(Streaming|FrequentDirections|SparseFrequentDirections|ReducedClassifier|OnlineNewton"
    r"|open_rows|fit_stream|ours\b)"
)
# Lines that are indented are variants of ours, neither the default nor a peer.
VARIANT = "  "
# Seconds of ours and of a peer in one record.
PAIRS = (("ours", "peer"), ("seconds", "liblinear"))
RATE = re.compile(r"(^|_)(ratio|rate|speedup|per_second)(_|$)")


@dataclass(frozen=True)
class Ratio:
    """The time of a peer over ours: median, and least and most over the repeats.

    Below two runs, or where a script keeps its medians only, there is no spread.
    """

    where: str
    ours: str
    peer: str
    ratio: float
    low: float
    high: float
    runs: int


def seconds(line: Any) -> list[float]:
    """Return the times of one method, or nothing where it was skipped or has none.

    Where a method says how many rows it had they are those of a row: slow ones get fewer.
    """
    if not isinstance(line, dict) or line.get("skipped"):
        return []
    found = line.get("seconds") or line.get("time")
    values = found if isinstance(found, list) else [found]
    good = [v for v in values if isinstance(v, int | float) and math.isfinite(v) and v > 0]
    n_rows = line.get("n_rows") or 1
    return [v / n_rows for v in good] if len(good) == len(values) else []


def named(item: Any) -> dict[str, Any]:
    """Return the parts of a JSON value by name; those of a list by what they say of themselves."""
    if isinstance(item, dict):
        return item
    if not isinstance(item, list):
        return {}
    found: dict[str, Any] = {}
    for i, part in enumerate(item):
        if not isinstance(part, dict):
            continue
        if "method" in part:
            # Only methods that had the same rows are compared.
            rows = f"{part['n_rows']} rows" if "n_rows" in part else "methods"
            found.setdefault(rows, {})[part["method"]] = part
            continue
        words = [part[k] for k in ("name", "stream", "loss", "dtype") if k in part]
        words += [f"{k}={part[k]}" for k in ("d", "k", "alpha", "rows", "size") if k in part]
        name = " ".join(map(str, words))
        found[name if name and name not in found else f"{name} {i}".strip()] = part
    return found


def ratios(item: Any, where: str = "") -> Iterator[Ratio]:
    """Yield the ratio of each of our methods to each of its peers, wherever both were timed."""
    parts = named(item)
    for mine, peer in PAIRS:
        if all(isinstance(parts.get(key), int | float) for key in (mine, peer)):
            ratio = parts[peer] / parts[mine]
            yield Ratio(where, "ours", peer, ratio, ratio, ratio, 1)
    timed = {name: times for name, part in parts.items() if (times := seconds(part))}
    for mine in timed:
        if not OURS.match(mine):
            continue
        for peer in timed:
            if not OURS.match(peer) and not peer.startswith(VARIANT) and alike(mine, peer):
                yield Ratio(where, mine, peer, *compared(timed[mine], timed[peer]))
    for name, part in parts.items():
        if isinstance(part, dict | list):
            yield from ratios(part, where if name == "lines" else f"{where} {name}".strip())


def alike(mine: str, peer: str) -> bool:
    """Say whether two methods have the same sketch size, if both name one.

    >>> alike("ours m=10", "peer m=20"), alike("ours m=10", "peer")
    (False, True)
    """
    sizes = [re.search(r"\bm=\d+", name) for name in (mine, peer)]
    return None in sizes or sizes[0][0] == sizes[1][0]


def compared(ours: list[float], peer: list[float]) -> tuple[float, float, float, int]:
    """Return the ratio of the medians, its least and its most, and the number of repeats."""
    if len(ours) == len(peer):
        # Repeats take turns, so those of one turn saw the same machine.
        each = [p / o for o, p in zip(ours, peer, strict=True)]
    else:
        each = [min(peer) / max(ours), max(peer) / min(ours)]
    middle = statistics.median(peer) / statistics.median(ours)
    return middle, min(each), max(each), min(len(ours), len(peer))


def rates(item: Any, where: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number whose name says that it is a ratio or a rate."""
    for name, part in named(item).items():
        path = f"{where} / {name.strip()}" if where else name.strip()
        if isinstance(part, dict | list):
            yield from rates(part, path)
        elif isinstance(part, int | float) and RATE.search(name) and math.isfinite(part):
            yield path, float(part)
