"""Draw the picture of the README: how the kept times of peers compare with ours.

``python tools/picture.py`` writes docs/_static/beside.svg from benchmarks/results/peers.json. A
bar reaches from the least to the greatest of the medians, on a scale of powers of ten.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "peers.json"
PICTURE = ROOT / "docs" / "_static" / "beside.svg"

# What it says, then the script, the peer, ours and the case to choose.
BARS = (
    ("IncrementalPCA, dense rows", "dense", "IncrementalPCA good", "StreamingPCA", ""),
    ("TruncatedSVD, sparse", "sparse", "TruncatedSVD randomized", "FrequentDirections", ""),
    ("KernelPCA, 32,000 rows", "kernel", "KernelPCA randomized", "", "pca 32000"),
    ("KernelPCA, 2,000 rows", "kernel", "KernelPCA randomized", "", "pca 2000"),
    ("dask-ml", "dask", "dask-ml .*", "", ""),
    ("River, logistic", "online", "River LogisticRegression", "OnlineNewtonClassifier", ""),
    ("Vowpal Wabbit", "online", "VW", "OnlineNewtonClassifier", ""),
    ("Vowpal Wabbit, OjaNewton", "online", r"VW OjaNewton m=\d+", "OnlineNewtonClassifier", ""),
)
LOW, HIGH = 0.03, 30.0
LEFT, WIDTH, ROW, TOP = 225, 370, 30, 52
MARKS = (0.1, 1.0, 10.0)


def across(value: float) -> float:
    """Return the place of a ratio on the scale."""
    return LEFT + WIDTH * math.log(value / LOW) / math.log(HIGH / LOW)


def extremes(figures: dict, script: str, peer: str, ours: str, case: str) -> tuple[float, float]:
    """Return the least and the greatest of the medians that are chosen."""
    (rows,) = (rows for name, rows in figures.items() if name.startswith(f"{script}:"))
    found = [
        float(row["peer's time over ours"])
        for row in rows
        if re.fullmatch(peer, row["peer"]) and row["ours"].startswith(ours) and case in row["case"]
    ]
    return min(found), max(found)


def picture(figures: dict) -> str:
    """Return the picture as SVG, for light and dark pages alike."""
    height = TOP + ROW * len(BARS) + 34
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="14" fill="#1b2a30">',
        "<title>Time of peers over ours; above 1 ours is faster</title>",
        f'<rect width="680" height="{height}" rx="8" fill="#fff"/>',
        '<text x="16" y="28" font-weight="600">Time of a peer over ours: to the right of 1 we'
        " are faster, to the left the peer is</text>",
    ]
    for mark in MARKS:
        color, bottom = ("#1b2a30" if mark == 1.0 else "#ccd6d9"), height - 30
        place = f"{across(mark):.1f}"
        lines += [
            f'<line x1="{place}" y1="{TOP - 8}" x2="{place}" y2="{bottom}" stroke="{color}"/>',
            f'<text x="{place}" y="{height - 10}" text-anchor="middle">{mark:g}</text>',
        ]
    for i, (name, *choice) in enumerate(BARS):
        low, high = extremes(figures, *choice)
        y = TOP + ROW * i
        color = "#0a7d91" if low >= 1.0 else "#b5541c" if high < 1.0 else "#6b7b80"
        start, end = across(low), across(high)
        said = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        lines += [
            f'<text x="{LEFT - 12}" y="{y + 15}" text-anchor="end">{name}</text>',
            f'<rect x="{start - 3:.1f}" y="{y + 4}" width="{end - start + 6:.1f}" height="14"'
            f' rx="4" fill="{color}"/>',
            f'<text x="{end + 10:.1f}" y="{y + 16}" font-size="12" paint-order="stroke"'
            f' stroke="#fff" stroke-width="4">{said}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def main() -> int:
    """Write the picture."""
    PICTURE.write_text(picture(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
