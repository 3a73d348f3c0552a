"""The certificate torture: case number -> one stream, its checks, and tables over many of them."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from _support import (
    estimator_themes,
    learner_themes,
    moment_themes,
    sketch_themes,
    time_themes,
    unit_themes,
)
from _support.checks import check

# Every so many cases one of those that take longer; the others are drawn by these weights.
MANY_SHRINKS, VERY_MANY_ROWS = 80, 2500
THEMES = {
    sketch_themes.any_sketch: 0.36,
    time_themes.window: 0.06,
    sketch_themes.block_solver: 0.04,
    sketch_themes.linear_sketch: 0.02,
    sketch_themes.against_the_seed: 0.01,
    sketch_themes.two_rules: 0.06,
    estimator_themes.decomposition: 0.09,
    unit_themes.standardized: 0.05,
    unit_themes.standardized_ridge: 0.04,
    estimator_themes.ridge: 0.05,
    estimator_themes.gcv: 0.04,
    learner_themes.reduction: 0.03,
    learner_themes.reduced_model: 0.01,
    learner_themes.regret: 0.05,
    learner_themes.curvature_regret: 0.03,
    moment_themes.two_views: 0.04,
    moment_themes.inference: 0.02,
}


# What a stream may be refused for: numbers that overflow, drawn, squared or learned from.
REFUSALS = ("overflow", "input contains", "no longer be finite")

NO_ANSWER = check("an answer at all", 1, 0)


class Case(NamedTuple):
    """One stream: what it was, its checks, and why it was refused, if it was."""

    number: int
    theme: str
    name: str
    checks: list
    comparisons: list
    refused: str = ""


def run(number):
    """Return the case of a number: the same stream everywhere."""
    rng = np.random.default_rng(number)
    themes = list(THEMES)
    theme = themes[int(rng.choice(len(themes), p=list(THEMES.values())))]
    if number % VERY_MANY_ROWS == VERY_MANY_ROWS // 2:
        theme = sketch_themes.very_many_rows
    elif number % MANY_SHRINKS == MANY_SHRINKS // 2:
        theme = sketch_themes.many_shrinks
    label = theme.__name__.replace("_", " ")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = theme(rng)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is counted and shown)
            if isinstance(error, ValueError) and any(word in str(error) for word in REFUSALS):
                return Case(number, label, "", [], [], str(error))
            # A ValueError of numpy's, scipy's or math's is nothing that was said on purpose.
            return Case(number, label, repr(error), [NO_ANSWER], [])
    return Case(number, label, result.name, result.checks, result.comparisons)


class Row(NamedTuple):
    """One kind of bound in the table."""

    kind: str
    probabilistic: bool
    checks: int
    violations: int
    stated: float
    median: float
    high: float

    @property
    def broken(self):
        """Say whether the bound failed more often than it says it may."""
        return self.violations > self.stated * self.checks


class Tally:
    """Counts over many cases; tallies of parts add up."""

    def __init__(self):
        self.n_streams = 0
        self.refused = defaultdict(int)
        self.themes = defaultdict(int)
        self.found = defaultdict(lambda: [0, 0, 0.0, []])
        self.comparisons = defaultdict(list)
        self.violations = []

    def add(self, case):
        """Count one case."""
        self.n_streams += 1
        self.themes[case.theme] += 1
        if case.refused:
            self.refused[case.refused[:60]] += 1
        for one in case.checks:
            entry = self.found[one.kind, one.failure > 0]
            entry[0] += 1
            entry[1] += one.broken
            entry[2] += one.failure
            if math.isfinite(one.ratio):
                entry[3].append(one.ratio)
            if one.broken:
                self.violations.append((one.kind, one.worst, case.number, case.name))
        for family, solver, bound, share in case.comparisons:
            self.comparisons[family, solver].append((bound, share))

    def plain(self):
        """Return everything as plain data, to travel between processes."""
        return (
            self.n_streams,
            dict(self.refused),
            dict(self.themes),
            {key: tuple(value) for key, value in self.found.items()},
            dict(self.comparisons),
            self.violations,
        )

    def merge(self, plain):
        """Add what another process has counted."""
        n_streams, refused, themes, found, comparisons, violations = plain
        self.n_streams += n_streams
        for mine, theirs in ((self.refused, refused), (self.themes, themes)):
            for key, count in theirs.items():
                mine[key] += count
        for key, (n, broken, failure, ratios) in found.items():
            entry = self.found[key]
            entry[0] += n
            entry[1] += broken
            entry[2] += failure
            entry[3] += ratios
        for key, values in comparisons.items():
            self.comparisons[key] += values
        self.violations += violations

    def rows(self):
        """Return one row for every kind of bound."""
        made = []
        for (kind, probabilistic), (n, broken, failure, ratios) in sorted(self.found.items()):
            quantiles = np.quantile(ratios, [0.5, 0.9]) if ratios else (math.nan, math.nan)
            made.append(Row(kind, probabilistic, n, broken, failure / n, *map(float, quantiles)))
        return made

    @property
    def holds(self):
        """Say whether every bound held as often as it says."""
        return not any(row.broken for row in self.rows())


def table(tally):
    """Return the table of all kinds of bounds, as reStructuredText."""
    rows = [("kind of bound", "", "checks", "violations", "stated", "median", "90th")]
    for row in tally.rows():
        how = "probabilistic" if row.probabilistic else "deterministic"
        stated = f"{row.stated:.2g}" if row.probabilistic else "0"
        counts = f"{row.checks:,}", f"{row.violations:,}" + "!" * row.broken
        rows.append((row.kind, how, *counts, stated, f"{row.median:.4g}", f"{row.high:.4g}"))
    return _simple_table(rows)


def rules(tally):
    """Return the table of rule="half" beside rule="uniform", as reStructuredText.

    Bounds are those of "half" divided by those of "uniform"; shares are the certified part of the
    energy in the first half of the components, "half" less "uniform".
    """
    rows = [("family", "solver", "streams", "bound: median", "best", "worst", "share: median")]
    for (family, solver), values in sorted(tally.comparisons.items()):
        bounds, shares = np.array(values).T
        numbers = f"{np.median(bounds):.3f}", f"{bounds.min():.3f}", f"{bounds.max():.3f}"
        rows.append((family, solver, f"{len(bounds):,}", *numbers, f"{np.median(shares):+.4f}"))
    return _simple_table(rows)


def _simple_table(rows):
    """Return rows of text, the first of them a heading, in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])
