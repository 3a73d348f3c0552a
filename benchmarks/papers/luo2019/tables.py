"""Tables and pictures of the learners."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.papers.luo2019.methods import AUTO, AUTO_RIDGE, RFD0, SIZELESS, UNTUNED, Figures
from benchmarks.papers.luo2019.published import ACCURACY, MICROSECONDS

COLORS = {
    "AdaGrad": "#7f7f7f",
    "OGD": "#bcbd22",
    "FULL-ON": "black",
    "FD": "#1f77b4",
    "PFD": "#17becf",
    "RP": "#ff7f0e",
    "Oja": "#8c564b",
    "RFD": "#d62728",
    RFD0: "#9467bd",
    AUTO: "#2ca02c",
}


def accuracy_table(figures: Figures, data: str) -> str:
    """Return accuracies with the best initial ridge, by how much the others move, and Table 2."""

    def cell(method: str, size: int) -> str:
        best = f"{figures.accuracy(data, method, size):8.2f}"
        if method in UNTUNED:
            return best + f"{'':12}"
        moves = figures.by_ridge(data, method, size, "accuracy").values()
        return best + f"{f'from {min(moves):.1f}':>12}"

    return _table(figures, data, cell, ACCURACY, "{:8.2f}")


def error_table(figures: Figures, data: str) -> str:
    """Return the least online errors over the initial ridges."""

    def cell(method: str, size: int) -> str:
        return f"{min(figures.by_ridge(data, method, size, 'online_error').values()):8.2f}"

    return _table(figures, data, cell, {}, "")


def time_table(figures: Figures, data: str) -> str:
    """Return microseconds a row, and Table 3."""

    def cell(method: str, size: int) -> str:
        return f"{figures.microseconds(data, method, size):9.1f}"

    return _table(figures, data, cell, MICROSECONDS, "{:9.0f}")


def _table(
    figures: Figures,
    data: str,
    cell: Callable[[str, int], str],
    published: dict[str, dict[str, tuple[float, ...]]],
    style: str,
) -> str:
    sizes = figures.sizes(data)
    paper = published.get(data, {})
    width = len(cell(figures.methods(data)[-1], sizes[-1]))
    head = f"{'method':10}" + "".join(f"{f'm={size}':>{width}}" for size in sizes)
    head += "   the paper" if paper else ""
    lines = [head, "-" * len(head)]
    for method in figures.methods(data):
        once = method in SIZELESS
        line = "".join(cell(method, size) for size in (sizes[:1] if once else sizes))
        said = paper.get(method, ())[: 1 if once else None]
        line = f"{line:{width * len(sizes)}}" + "".join(style.format(value) for value in said)
        lines.append(f"{method:10}{line}".rstrip())
    return "\n".join(lines)


def draw(figures: Figures, folder: Path) -> list[Path]:
    """Draw accuracy against the initial ridge, and errors along the stream."""
    paths = []
    for data in figures.data():
        for what, picture in (("tuning", _tuning), ("curves", _curves)):
            paths.append(folder / f"luo2019_{data}_{what}.png")
            picture(figures, data).savefig(paths[-1], dpi=110)
    return paths


def _tuning(figures: Figures, data: str) -> Any:
    """Draw Figures 3 and 4: the test error at the end, by initial ridge."""
    from matplotlib.figure import Figure

    sizes = figures.sizes(data)
    figure = Figure(figsize=(4.2 * len(sizes), 4), layout="constrained")
    for axes, size in zip(figure.subplots(1, len(sizes), squeeze=False)[0], sizes, strict=True):
        for method in figures.methods(data):
            means = figures.by_ridge(data, method, size, "accuracy")
            if method in UNTUNED:
                style = {"ls": "--" if method == RFD0 else "-", "lw": 1.5}
                error = 100.0 - next(iter(means.values()))
                axes.axhline(error, color=COLORS[method], label=method, **style)
            else:
                errors = [100.0 - value for value in means.values()]
                axes.semilogx(list(means), errors, "o-", ms=3, color=COLORS[method], label=method)
        axes.set_title(f"{data}, m={size}")
        axes.set_xlabel("initial ridge")
    figure.axes[0].set_ylabel("test error, %")
    figure.axes[0].legend(fontsize=7)
    return figure


def _curves(figures: Figures, data: str) -> Any:
    """Draw Figures 5 to 11: online errors of each method at every initial ridge."""
    from matplotlib.figure import Figure

    sizes = figures.sizes(data)
    size = sizes[len(sizes) // 2]
    tuned = [method for method in figures.methods(data) if method not in UNTUNED]
    n_rows = math.ceil(len(tuned) / 4)
    figure = Figure(figsize=(15, 3.4 * n_rows), layout="constrained")
    grid = figure.subplots(n_rows, 4, squeeze=False, sharey=True).ravel()
    order = next(r.order for r in figures.records if r.data == data)
    for axes, method in zip(grid, tuned, strict=False):
        cell = [r for r in figures.cell(data, method, size) if r.order == order]
        for number, record in enumerate(sorted(cell, key=lambda r: r.ridge)):
            shade = 0.25 + 0.75 * number / max(len(cell) - 1, 1)
            axes.plot(*zip(*record.curve, strict=True), color=COLORS[method], alpha=shade, lw=1)
        for reference in UNTUNED:
            for record in figures.cell(data, reference, size)[:1]:
                name = f"{reference} (auto)" if record.ridge == AUTO_RIDGE else reference
                line = zip(*record.curve, strict=True)
                axes.plot(*line, color=COLORS[reference], ls="--", label=name)
        axes.set_title(f"{method}, darker: larger ridge", fontsize=9)
        axes.set_xlabel("rows")
    for axes in grid[len(tuned) :]:
        axes.axis("off")
    grid[0].set_ylabel("online error, %")
    grid[0].legend(fontsize=7)
    figure.suptitle(f"{data}, m={size}")
    return figure
