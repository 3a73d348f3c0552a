"""Draw what benchmarks/gpu/kcca.py has measured: total correlation against time.

Run ``python -m benchmarks.gpu.draw benchmarks/results/gpu/kcca.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

PAPER_SECONDS, PAPER_TOTAL = 183.2 * 60, 43.5


def main() -> None:
    """Draw one picture beside each file."""
    for name in sys.argv[1:]:
        path = Path(name)
        found = json.loads(path.read_text())
        figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
        for run in found["results"]:
            seconds = [row["seconds"] for row in run["rows"]]
            axes.plot(seconds, [row["paired"] for row in run["rows"]], "o-", label=run["name"])
            for row in run["rows"]:
                axes.annotate(f"{row['steps']}", (row["seconds"], row["paired"]), fontsize=8)
        axes.plot(PAPER_SECONDS, PAPER_TOTAL, "s", color="grey", label="paper, its own digits")
        axes.set(
            xscale="log",
            xlabel="seconds of the steps, labelled by their number",
            ylabel="total correlation of 50 pairs, held out",
            title=f"{found['facts']['processor']}, {found['facts']['features']} features a view",
        )
        axes.legend()
        figure.savefig(path.with_suffix(".png"), dpi=150)


if __name__ == "__main__":
    main()
