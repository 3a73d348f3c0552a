"""Draw the picture of the README: how the kept times of peers compare with ours.

``python tools/picture.py`` writes docs/_static/beside.svg from benchmarks/results/peers.json. A
bar reaches from the least to the greatest of the medians, on a scale of powers of ten.
"""

from __future__ import annotations

import json
import math
import re
import sys
from html import escape
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
SCALE = 0.03, 30.0
LEFT, WIDTH, ROW, TOP = 225, 370, 30, 52


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
    return drawn([(name, *extremes(figures, *choice)) for name, *choice in BARS], SCALE)


def drawn(bars: list[tuple[str, float, float]], scale: tuple[float, float] | None = None) -> str:
    """Return bars from the least to the greatest ratio, each with its name, as SVG.

    Without a scale it reaches beyond all of them.
    """
    low, high = scale or (
        0.5 * min(0.5, *(bar[1] for bar in bars)),
        2.0 * max(2.0, *(bar[2] for bar in bars)),
    )
    marks = [10.0**k for k in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]

    def across(value: float) -> float:
        return LEFT + WIDTH * math.log(value / low) / math.log(high / low)

    height = TOP + ROW * len(bars) + 34
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="14" fill="#1b2a30">',
        "<title>Time of peers over ours; above 1 ours is faster</title>",
        f'<rect width="680" height="{height}" rx="8" fill="#fff"/>',
        '<text x="16" y="28" font-weight="600">Time of a peer over ours: to the right of 1 we'
        " are faster, to the left the peer is</text>",
    ]
    for mark in marks:
        color, bottom = ("#1b2a30" if mark == 1.0 else "#ccd6d9"), height - 30
        place = f"{across(mark):.1f}"
        lines += [
            f'<line x1="{place}" y1="{TOP - 8}" x2="{place}" y2="{bottom}" stroke="{color}"/>',
            f'<text x="{place}" y="{height - 10}" text-anchor="middle">{mark:g}</text>',
        ]
    for i, (name, least, most) in enumerate(bars):
        y = TOP + ROW * i
        color = "#0a7d91" if least >= 1.0 else "#b5541c" if most < 1.0 else "#6b7b80"
        start, end = across(least), across(most)
        said = f"{least:.3g}" if least == most else f"{least:.3g} to {most:.3g}"
        lines += [
            f'<text x="{LEFT - 12}" y="{y + 15}" text-anchor="end">{escape(name)}</text>',
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
