"""Tables and pictures of the figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from benchmarks.papers.shi2021.methods import NUMPY, PRINTED, RANDOM, RR, Figures

EXACT = (RR, NUMPY)
# What is below this is an exact answer; it is shown as 0 and not drawn.
ROUNDING = 1e-9
COLORS = {
    "FDRR": "#1f77b4",
    "RFDRR": "#d62728",
    "iSVDRR": "#2ca02c",
    "energy": "#9467bd",
    "2LFDRR": "#8c564b",
    "RPRR": "#7f7f7f",
    "CSRR": "#bcbd22",
}


def error_table(figures: Figures, data: str) -> str:
    def cell(method: str, size: int) -> str:
        bound = figures.certificate(data, method, size)
        shown = _digits(bound) if math.isfinite(bound) else "none"
        return f"{_digits(figures.error(data, method, size)):>10} <{shown:>7}"

    return _table(figures, cell, 19, tuple(m for m in _solved_once(figures) if m not in EXACT))


def _digits(value: float) -> str:
    return "0" if value < ROUNDING else f"{value:.3g}"


def prediction_table(figures: Figures, data: str) -> str:
    def cell(method: str, size: int) -> str:
        return f"{figures.prediction(data, method, size):10.4g}"

    return _table(figures, cell, 10, _solved_once(figures))


def _solved_once(figures: Figures) -> tuple[str, ...]:
    """Return the methods without those that only solve for the same coefficients otherwise."""
    again = [method + PRINTED for method in RANDOM]
    return tuple(method for method in figures.methods() if method not in again)


def time_table(figures: Figures, data: str) -> str:
    def once(method: str, size: int) -> float:
        return sum(figures.seconds(data, method, size, what) for what in ("train", "query"))

    def cell(method: str, size: int) -> str:
        parts = [figures.seconds(data, method, size, w) for w in ("train", "query", "new_alpha")]
        ratio = once(RR, size) / once(method, size)
        return f"{parts[0]:7.3f}{parts[1]:7.3f}{parts[2]:8.4f}{ratio:6.1f}x"

    return _table(figures, cell, 30, tuple(figures.methods()))


def total_table(figures: Figures, data: str, n_rows: int) -> str:
    """Return the times of training and of a query after every l rows."""

    def cell(method: str, size: int) -> str:
        queries = n_rows / size * figures.seconds(data, method, size, "query")
        return f"{figures.seconds(data, method, size, 'train') + queries:10.2f}"

    sketched = tuple(method for method in figures.methods() if method not in EXACT)
    return _table(figures, cell, 10, sketched)


def _table(
    figures: Figures, cell: Callable[[str, int], str], width: int, methods: tuple[str, ...]
) -> str:
    head = f"{'method':16}" + "".join(f"{f'l = {size}':>{width}}" for size in figures.sizes())
    lines = [head, "-" * len(head)]
    for method in methods:
        sizes = [0] if method in EXACT else figures.sizes()
        lines.append(f"{method:16}" + "".join(cell(method, size) for size in sizes))
    return "\n".join(lines)


def draw(figures: Figures, folder: Path) -> list[Path]:
    """Draw errors against sketch size, one file for each data set."""
    from matplotlib.figure import Figure

    paths = []
    sizes = figures.sizes()
    for data in figures.labels():
        figure = Figure(figsize=(11, 4.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        for method in _solved_once(figures):
            if method in EXACT:
                continue
            base = method.removesuffix(PRINTED)
            style = {"color": COLORS[base], "ls": "--" if method != base else "-", "marker": "o"}
            errors = [figures.error(data, method, size) for size in sizes]
            errors = [error if error > ROUNDING else math.nan for error in errors]
            left.loglog(sizes, errors, label=method, ms=4, **style)
            tests = [figures.prediction(data, method, size) for size in sizes]
            right.loglog(sizes, tests, ms=4, **style)
        right.axhline(figures.prediction(data, RR, 0), color="black", lw=1, label="exact ridge")
        left.set_ylabel("coefficient error")
        right.set_ylabel("mean squared error on test rows")
        for axes in (left, right):
            axes.set_xlabel("sketch size")
            axes.set_xticks(sizes, [str(size) for size in sizes])
            axes.minorticks_off()
        left.legend(fontsize=8)
        right.legend(fontsize=8)
        figure.suptitle(data)
        paths.append(folder / f"shi2021_{data.replace(' ', '_')}.png")
        figure.savefig(paths[-1], dpi=120)
    return paths
