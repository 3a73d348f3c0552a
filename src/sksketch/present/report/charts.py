"""The charts of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sksketch._typing import Array
from sksketch.present.findings import CoefficientPath, Estimates
from sksketch.present.findings.plain import Points
from sksketch.present.report import svg
from sksketch.present.report.formatting import interval, number, percent
from sksketch.time import Comparison

# Letters of wide charts are larger on a phone; see the style sheet.
WIDE, SMALL = svg.Canvas(440, 262, letters=15), svg.Canvas(300, 176, letters=12)

# Beyond this many factors of ten a logarithmic axis shows rounding errors.
MOST_DECADES = 8


def spectrum(estimates: Estimates, quantity: str, penalty: float | None = None) -> str:
    """Return the chart of a spectrum: estimates inside their certified intervals.

    Parameters
    ----------
    estimates : Estimates
        At least one.
    quantity : str
        What they are.
    penalty : float, optional
        That of a ridge regression, to be compared with the eigenvalues.
    """
    values, intervals = estimates.values, estimates.intervals
    n = len(values)
    shown = [values] if intervals is None else [values, intervals.ravel()]
    if penalty:
        shown.append(np.array([penalty]))
    vertical = _spectrum_scale(np.concatenate(shown))
    canvas = WIDE.beside(vertical)
    across = canvas.across(0.5, n + 0.5)
    width = min(26.0, 0.62 * (across(2.0) - across(1.0))) if n > 1 else 26.0
    marks = [canvas.vertical_axis(vertical)]
    for i, value in enumerate(values):
        x, tip = across(i + 1), f"{quantity} {i + 1}: {number(value)}"
        mark = ""
        if intervals is not None:
            low, high = intervals[i]
            mark = svg.bar(x, vertical(low), vertical(high), width, "interval")
            tip += f", certified {interval((low, high))}"
        y = vertical(value)
        mark += svg.line(x - 0.6 * width, y, x + 0.6 * width, y, "estimate")
        marks.append(svg.told(mark, tip))
    if penalty:
        y = vertical(penalty)
        mark = svg.line(canvas.left, y, canvas.width - svg.RIGHT, y, "marker")
        marks.append(svg.told(mark, f"penalty {number(penalty)}"))
    marks.append(canvas.horizontal_axis(across, _whole_ticks(n)))
    band = " with certified intervals" if intervals is not None else ""
    description = (
        f"{n} values{band}, from {number(values[0])} down to {number(values[-1])}; the numbers "
        "are in the table below."
    )
    return canvas.drawing("spectrum", "Spectrum", description, "".join(marks), "wide")


def _spectrum_scale(values: Array) -> svg.Scale:
    positive = values[(values > 0) & np.isfinite(values)]
    if not len(positive):
        return WIDE.upward(0.0, 1.0)
    high = float(positive.max())
    low = max(float(positive.min()), high / 10.0**MOST_DECADES)
    if high < 3 * low:
        return WIDE.upward(0.0, 1.1 * high)
    return WIDE.upward(low / 1.25, high * 1.25, logarithmic=True)


def explained_variance(shares: Estimates, captured: Estimates) -> str:
    """Return the chart of shares, each and together."""
    n = len(shares.values)
    vertical = WIDE.upward(0.0, 1.0)
    canvas = WIDE.beside(vertical, percent)
    across = canvas.across(0.5, n + 0.5)
    width = min(26.0, 0.62 * (across(2.0) - across(1.0))) if n > 1 else 26.0
    marks = [canvas.vertical_axis(vertical, percent)]
    for i, share in enumerate(shares.values):
        x, tip = across(i + 1), f"component {i + 1}: {percent(share)}"
        mark = svg.bar(x, vertical(0.0), vertical(share), width, "share")
        if shares.intervals is not None:
            low, high = shares.intervals[i]
            mark += svg.whisker(x, low, high, vertical, min(8.0, width))
            tip += f", certified {interval((low, high), percent)}"
        marks.append(svg.told(mark, tip))
    if captured.intervals is not None:
        lower, upper = (
            [(across(i + 1), vertical(end)) for i, end in enumerate(ends)]
            for ends in captured.intervals.T
        )
        marks.append(svg.area(upper, lower, "band"))
    points = [(across(i + 1), vertical(value)) for i, value in enumerate(captured.values)]
    marks.append(svg.curve(points, "path"))
    for i, (x, y) in enumerate(points):
        tip = f"first {i + 1} together: {percent(captured.values[i])}"
        if captured.intervals is not None:
            tip += f", certified {interval(captured.intervals[i], percent)}"
        marks.append(svg.told(svg.dot(x, y, "dot"), tip))
    marks.append(canvas.horizontal_axis(across, _whole_ticks(n)))
    description = (
        f"The first component has {percent(shares.values[0])} of the total, the first {n} "
        f"together {percent(captured.values[-1])}; the numbers are in the table below."
    )
    return canvas.drawing("explained", "Explained variance", description, "".join(marks), "wide")


def scatter(points: Points) -> str:
    """Return the chart of rows at two numbers each."""
    ends = []
    for values in (points.x, points.y):
        low, high = float(values.min()), float(values.max())
        room = 0.05 * (high - low) or 1.0
        ends.append((low - room, high + room))
    vertical = WIDE.upward(*ends[1])
    canvas = WIDE.beside(vertical)
    across = canvas.across(*ends[0])
    dots = [
        svg.dot(across(float(x)), vertical(float(y)), "dot", 2.0)
        for x, y in zip(points.x, points.y, strict=True)
    ]
    marks = [canvas.vertical_axis(vertical), *dots]
    marks.append(canvas.horizontal_axis(across, across.ticks(5)))
    description = f"{len(dots)} rows: {points.across} to the right, {points.upward} upward."
    return canvas.drawing("scatter", "Some rows", description, "".join(marks), "wide")


def progress(marks: Array, title: str) -> str:
    """Return the chart of mean errors so far, of a learner and of a constant, against rows.

    Parameters
    ----------
    marks : array of shape (n_marks, 3)
        Rows, the learner's error and the constant's.
    title : str
        Name of the error.
    """
    rows, errors = marks[:, 0], marks[:, 1:]
    vertical = _spectrum_scale(errors.ravel())
    low = float(errors[errors > 0].min(initial=1.0))
    canvas = WIDE.beside(vertical)
    across = canvas.across(1.0, max(float(rows[-1]), 2.0), logarithmic=True)
    drawn = [canvas.vertical_axis(vertical)]
    constant, learner = (
        [(across(n), vertical(max(e, low))) for n, e in zip(rows, values, strict=True)]
        for values in (errors[:, 1], errors[:, 0])
    )
    drawn += [svg.curve(constant, "path marker"), svg.curve(learner, "path")]
    for point, n, (mine, theirs) in zip(learner, rows, errors, strict=True):
        tip = f"{int(n):,} rows: {number(mine)}, a constant {number(theirs)}"
        drawn.append(svg.told(svg.dot(*point, "dot"), tip))
    drawn.append(canvas.horizontal_axis(across, across.ticks()))
    description = (
        f"{title} after {len(rows)} numbers of rows, at the end {number(errors[-1, 0])}, that of "
        f"a constant {number(errors[-1, 1])}; the numbers are in the table below."
    )
    return canvas.drawing("progress", title, description, "".join(drawn), "wide")


def drift(changes: Sequence[tuple[str, Comparison]]) -> str:
    """Return the chart of changes of later and later periods since one state.

    Parameters
    ----------
    changes : sequence of (str, Comparison)
        At least one; with each the start of its period.
    """
    n = len(changes)
    ends = np.array([found.largest_change for _, found in changes])
    allowed = np.array([found.error + found.allowance for _, found in changes])
    highest = float(ends[np.isfinite(ends)].max(initial=0.0))
    shown = allowed[np.isfinite(allowed) & (allowed < 20.0 * highest)]
    vertical = WIDE.upward(0.0, 1.08 * max(highest, float(shown.max(initial=0.0))) or 1.0)
    canvas = WIDE.beside(vertical)
    across = canvas.across(0.5, n + 0.5)
    marks = [canvas.vertical_axis(vertical)]
    limits = [(across(i + 1), vertical(min(a, vertical.high))) for i, a in enumerate(allowed)]
    marks.append(svg.curve(limits, "path marker"))
    for i, (start, found) in enumerate(changes):
        low, high = found.largest_change
        x, tip = across(i + 1), f"{start}: {interval((low, high))}"
        mark = svg.whisker(x, low, high, vertical)
        if found.n_changed:
            mark += svg.dot(x, vertical(0.5 * (low + high)), "dot")
            tip += f", {found.n_changed} directions certainly changed"
        marks.append(svg.told(mark, tip))
    marks.append(canvas.horizontal_axis(across, _whole_ticks(n)))
    n_certain = sum(found.n_changed > 0 for _, found in changes)
    description = (
        f"{n_certain} of {n} periods certainly changed; the numbers are in the table below."
    )
    return canvas.drawing("drift-chart", "Change by period", description, "".join(marks), "wide")


def _whole_ticks(n: int) -> list[float]:
    """Return the components to label: 1, and as many others as there is room for."""
    step = max(1, math.ceil(n / 10))
    if step == 1:
        return [float(i) for i in range(1, n + 1)]
    return [1.0, *(float(i) for i in range(step, n + 1, step) if i > 1)]


def path_range(path: CoefficientPath, columns: Sequence[int]) -> tuple[float, float]:
    """Return the heights that all panels of one path share."""
    values = path.coef[:, columns]
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    # Bars that say nothing may leave the picture, so that the coefficients stay readable.
    room = max(0.5 * (high - low), 1e-12 * max(abs(low), abs(high))) or 1.0
    errors = path.errors[np.isfinite(path.errors)]
    needed = float(errors.max(initial=0.0)) + 0.06 * (high - low)
    room = min(room, needed) or room
    return low - room, high + room


def path_panel(
    name: str,
    title: str,
    path: CoefficientPath,
    column: int,
    alpha: float,
    ends: tuple[float, float],
) -> str:
    """Return the chart of one coefficient against the penalty, with its error bars."""
    vertical = SMALL.upward(*ends)
    canvas = SMALL.beside(vertical)
    across = canvas.across(path.alphas[0], path.alphas[-1], logarithmic=True)
    marks = [canvas.vertical_axis(vertical)]
    zero = vertical(0.0)
    marks.append(svg.line(canvas.left, zero, canvas.width - svg.RIGHT, zero, "zero"))
    if path.alphas[0] <= alpha <= path.alphas[-1]:
        marks.append(svg.line(across(alpha), svg.TOP, across(alpha), vertical(ends[0]), "marker"))
    points = []
    for penalty, values, error in zip(path.alphas, path.coef, path.errors, strict=True):
        value = float(values[column])
        x, y = across(penalty), vertical(value)
        points.append((x, y))
        mark, tip = svg.dot(x, y, "dot", 2.2), f"alpha {number(penalty)}: {number(value)}"
        if math.isfinite(error):
            tip += f", off by at most {number(error)}"
            mark = svg.whisker(x, value - error, value + error, vertical) + mark
        marks.append(svg.told(mark, tip))
    marks.insert(-len(points), svg.curve(points, "path"))
    marks.append(canvas.horizontal_axis(across, across.ticks(4)))
    first, last = float(path.coef[0, column]), float(path.coef[-1, column])
    description = (
        f"Coefficient from {number(first)} at alpha {number(path.alphas[0])} to {number(last)} at "
        f"alpha {number(path.alphas[-1])}, with certified error bars."
    )
    return canvas.drawing(name, title, description, "".join(marks), "small")


def scores(alphas: Array, values: Array, intervals: Array, best: float) -> str:
    """Return the chart of the scores that a penalty was chosen by."""
    order = np.argsort(alphas)
    alphas, values, intervals = alphas[order], values[order], intervals[order]
    finite = np.where(np.isfinite(intervals), intervals, values[:, None])
    low, high = float(min(values.min(), finite.min())), float(max(values.max(), finite.max()))
    if low > 0 and high > 20 * low:
        vertical = WIDE.upward(low / 1.25, high * 1.25, logarithmic=True)
    else:
        room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
        vertical = WIDE.upward(max(low - room, 0.0), high + room)
    first = float(alphas[alphas > 0].min(initial=np.inf)) if (alphas > 0).any() else 0.1
    canvas = WIDE.beside(vertical)
    across = canvas.across(first / 2, max(float(alphas[-1]), first) * 2, logarithmic=True)
    marks = [canvas.vertical_axis(vertical)]
    marks.append(svg.line(across(best), vertical.end, across(best), vertical.start, "marker"))
    points = [(across(a), vertical(v)) for a, v in zip(alphas, values, strict=True)]
    marks.append(svg.curve(points, "path"))
    for (x, y), a, v, (lower, upper) in zip(points, alphas, values, finite, strict=True):
        mark = svg.whisker(x, lower, upper, vertical) + svg.dot(x, y, "dot")
        tip = f"alpha {number(a)}: {number(v)}, certified {interval((lower, upper))}"
        marks.append(svg.told(mark, tip))
    marks.append(canvas.horizontal_axis(across, across.ticks(5)))
    description = f"The least score is at alpha {number(best)}; the numbers are in the table below."
    return canvas.drawing("scores", "Scores of the penalties", description, "".join(marks), "wide")
