"""The few things that charts are made of, as SVG that takes its colors from the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from html import escape

from sksketch.present.report.formatting import tick

RIGHT, TOP, BOTTOM = 22.0, 12.0, 34.0
# Widths of characters, in letter sizes, with some room for other fonts.
NARROW, USUAL = 0.46, 0.7
SMALL = set("⁻⁰¹²³⁴⁵⁶⁷⁸⁹.,")


@dataclass(frozen=True)
class Scale:
    """From values to places on an axis; what lies outside is put on its ends."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        if self.logarithmic:
            value = math.log(max(value, self.low) / self.low)
            span = math.log(self.high / self.low)
        else:
            value, span = value - self.low, self.high - self.low
        place = min(max(value / span, 0.0), 1.0)
        return round(self.start + place * (self.end - self.start), 2)

    def ticks(self, most: int = 5) -> list[float]:
        """Return round values to label.

        >>> Scale(0.0, 1.0, 0.0, 100.0).ticks(), Scale(1.0, 1e4, 0.0, 1.0, True).ticks()
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [1.0, 10.0, 100.0, 1000.0, 10000.0])
        """
        if not self.logarithmic:
            return _round_values(self.low, self.high, most)
        first, last = math.log10(self.low), math.log10(self.high)
        step = max(1, math.ceil((last - first) / most))
        tens = range(math.ceil(first - 1e-9), math.floor(last + 1e-9) + 1, step)
        if len(tens) > 2:
            return [10.0**power for power in tens]
        powers = range(math.floor(first), math.ceil(last) + 1)
        round_values = [float(f"{factor}e{power}") for power in powers for factor in (1, 2, 5)]
        return [value for value in round_values if self.low <= value <= self.high]


def _round_values(low: float, high: float, most: int) -> list[float]:
    rough = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first + 1
    # Multiples of a power of ten are not exact; twelve digits hide it.
    return [float(f"{(first + i) * step:.12g}") for i in range(count)]


@dataclass(frozen=True)
class Canvas:
    """A chart of a size, in which axes leave room for labels of a letter size."""

    width: float
    height: float
    letters: float
    left: float = 0.0

    def beside(self, scale: Scale, show: Callable[[float], str] = tick) -> Canvas:
        """Return the canvas with as much room at the left as the labels of a scale need."""
        widths = [_width(show(value)) for value in scale.ticks()]
        return replace(self, left=round(max(widths, default=0.0) * self.letters + 12.0))

    def across(self, low: float, high: float, *, logarithmic: bool = False) -> Scale:
        """Return the horizontal scale."""
        return Scale(low, high, self.left, self.width - RIGHT, logarithmic)

    def upward(self, low: float, high: float, *, logarithmic: bool = False) -> Scale:
        """Return the vertical scale."""
        return Scale(low, high, self.height - BOTTOM, TOP, logarithmic)

    def vertical_axis(self, scale: Scale, show: Callable[[float], str] = tick) -> str:
        """Return lines and labels for the values of a vertical scale."""
        parts = []
        for value in scale.ticks():
            y = scale(value)
            parts.append(line(self.left, y, self.width - RIGHT, y, "grid"))
            parts.append(text(self.left - 8, y + 4, show(value), "end"))
        return "".join(parts)

    def horizontal_axis(
        self, scale: Scale, ticks: Iterable[float], show: Callable[[float], str] = tick
    ) -> str:
        """Return the base line, with labels under it."""
        base = self.height - BOTTOM
        parts = [line(self.left, base, self.width - RIGHT, base, "base")]
        parts += [text(scale(value), base + 20, show(value), "middle") for value in ticks]
        return "".join(parts)

    def drawing(self, name: str, title: str, description: str, content: str, kind: str) -> str:
        """Return the whole chart; its title and description are read aloud."""
        return (
            f'<svg class="chart {kind}" viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-labelledby="{name}-title {name}-text"><title id="{name}-title">{escape(title)}'
            f'</title><desc id="{name}-text">{escape(description)}</desc>{content}</svg>'
        )


def _width(label: str) -> float:
    """Return the width of a label, in letter sizes, or a little more."""
    return sum(NARROW if letter in SMALL else USUAL for letter in label)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a straight line."""
    return f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'


def text(x: float, y: float, content: str, anchor: str) -> str:
    """Return a label."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(content)}</text>'


def bar(x: float, y1: float, y2: float, width: float, kind: str) -> str:
    """Return a bar around ``x`` between two heights; it is seen however short it is."""
    top, height = min(y1, y2), abs(y1 - y2)
    if height < 1.5:
        top, height = top - (1.5 - height) / 2, 1.5
    return (
        f'<rect class="{kind}" x="{x - width / 2:.2f}" y="{top:.2f}" width="{width:.2f}" '
        f'height="{height:.2f}" rx="{min(2.0, width / 4, height / 2):.2f}"/>'
    )


def whisker(x: float, low: float, high: float, scale: Scale, width: float = 6.0) -> str:
    """Return an error bar between two values; an end outside the scale is cut and has no cap."""
    path = f"M{x:g} {scale(low):g}V{scale(high):g}"
    inside = [end for end in (low, high) if scale.low <= end <= scale.high]
    for end in inside:
        path += f"M{x - width / 2:g} {scale(end):g}h{width:g}"
    kind = "whisker" if inside else "whisker cut"
    return f'<path class="{kind}" d="{path}"/>'


def curve(points: list[tuple[float, float]], kind: str) -> str:
    """Return a line through points."""
    return f'<polyline class="{kind}" points="{" ".join(f"{x:g},{y:g}" for x, y in points)}"/>'


def area(upper: list[tuple[float, float]], lower: list[tuple[float, float]], kind: str) -> str:
    """Return what lies between two lines."""
    points = " ".join(f"{x:g},{y:g}" for x, y in [*upper, *reversed(lower)])
    return f'<polygon class="{kind}" points="{points}"/>'


def dot(x: float, y: float, kind: str, radius: float = 2.6) -> str:
    """Return a point."""
    return f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="{radius:g}"/>'


def told(content: str, tip: str) -> str:
    """Return marks that say what they are when pointed at."""
    return f"<g><title>{escape(tip)}</title>{content}</g>"
