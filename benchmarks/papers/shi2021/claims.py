"""What the paper says, decided on the measured figures, and the reference errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.papers.shi2021.data import GRID, NOISE
from benchmarks.papers.shi2021.methods import (
    FAMILY,
    KEYS,
    NUMPY,
    PAPERS,
    PRINTED,
    RANDOM,
    RR,
    SHRINKING,
    Figures,
)

Pick = Callable[[list[float]], float]

# Errors or times this close count as equal, and "much faster" is half the time.
TIE, MUCH = 1.05, 2.0
VERY_SMALL, PREDICTS_FROM, FASTEST_TO = 32, 64, 256
PUBLISHED = {"LR": 4096.0, "HR": 32768.0, "TEMP": 32768.0}

# Relative coefficient errors of independent implementations: sketch 64, seed 0, noise sd 2.
REFERENCE_SIZE, REFERENCE_SLACK = 64, 1.05
REFERENCES = {
    ("LR", "FDRR"): 1.44,
    ("LR", "RFDRR"): 0.23,
    ("LR", "energy"): 0.23,
    ("HR", "FDRR"): 0.23,
    ("HR", "RFDRR"): 0.34,
    ("HR", "energy"): 0.08,
}


@dataclass(frozen=True)
class Verdict:
    """What was measured of a claim, and whether it holds; None where it was not measured."""

    found: str
    holds: bool | None

    def __str__(self) -> str:
        words = {True: "holds", False: "does not hold", None: "not testable here"}
        return f"{self.found}: {words[self.holds]}"


class Claims:
    """The paper's claims on its own algorithms (printed) or on our defaults."""

    def __init__(self, figures: Figures, n_rows: int, *, printed: bool) -> None:
        self.figures, self.n_rows, self.printed = figures, n_rows, printed
        self.cells = list(itertools.product(figures.labels(), figures.sizes()))

    def name(self, method: str) -> str:
        return method + PRINTED if self.printed and KEYS[method][1] is not None else method

    def errors(self, methods: tuple[str, ...], data: str, size: int) -> dict[str, float]:
        return {m: self.figures.error(data, self.name(m), size) for m in methods}

    def seconds(self, method: str, size: int, what: str) -> float:
        """Return a time on HR, as in the paper's Figure 3."""
        data = "HR" if "HR" in self.figures.labels() else self.figures.labels()[0]
        return self.figures.seconds(
            data, self.name(method) if method in KEYS else method, size, what
        )

    def total(self, method: str, size: int) -> float:
        """Return the time of training and of a query after every batch of ``size`` rows."""
        queries = self.n_rows / size
        return self.seconds(method, size, "train") + queries * self.seconds(method, size, "query")

    def of(self, *names: str) -> list[tuple[str, int]]:
        return [(data, size) for data, size in self.cells if data.split()[0] in names]

    def counted(self, good: int, cells: list[tuple[str, int]], what: str) -> Verdict:
        holds = good == len(cells) if cells else None
        return Verdict(f"{what} in {good} of {len(cells)} cells", holds)

    def family_beats_random(self) -> Verdict:
        good = 0
        ratios = []
        for data, size in self.cells:
            random = min(self.errors(RANDOM, data, size).values())
            family = self.errors(FAMILY, data, size)
            good += max(family.values()) < random
            ratios.append(max(family["RFDRR"], 1e-12) / random)
        what = f"all four below both (RFDRR/best of both: median {np.median(ratios):.2g})"
        return self.counted(good, self.cells, what)

    def robust_beats_random(self) -> Verdict:
        good = sum(
            self.errors(("RFDRR",), *cell)["RFDRR"] < min(self.errors(RANDOM, *cell).values())
            for cell in self.cells
        )
        return self.counted(good, self.cells, "RFDRR below both")

    def robust_is_worse_when_tiny(self) -> Verdict:
        cells = [(data, size) for data, size in self.of("HR") if size <= VERY_SMALL]
        good = sum(
            e["RFDRR"] > max(e[m] for m in FAMILY if m != "RFDRR")
            for e in (self.errors(FAMILY, *cell) for cell in cells)
        )
        return self.counted(good, cells, f"RFDRR worst of the FD family for l <= {VERY_SMALL}")

    def robust_is_best(self) -> Verdict:
        cells, good, winners = self.of("LR", "TEMP"), 0, set()
        for cell in cells:
            errors = self.errors(PAPERS, *cell)
            better = {m for m in PAPERS if errors[m] * TIE < errors["RFDRR"]}
            winners |= better
            good += better <= {"iSVDRR"}
        beaten = f" (beaten by {', '.join(sorted(winners))})" if winners else ""
        return self.counted(good, cells, f"RFDRR least or beaten by iSVDRR only{beaten}")

    def robust_reaches_least(self) -> Verdict:
        labels, sizes = self.figures.labels(), self.figures.sizes()
        good = []
        for data in labels:
            least = {m: min(self.errors((m,), data, size)[m] for size in sizes) for m in PAPERS}
            good.append(least["RFDRR"] <= TIE * min(least.values()) + 1e-9)
        return Verdict(f"on {sum(good)} of {len(labels)} data sets", all(good))

    def slower_training_faster_queries(self) -> Verdict:
        sizes = self.figures.sizes()
        train = [self._ratio(size, "train", min, max) for size in sizes]
        query = [self._ratio(size, "query", max, min) for size in sizes]
        found = (
            f"training {min(train):.2g} to {max(train):.2g} times, "
            f"queries {min(query):.2g} to {max(query):.2g} times those of RPRR, CSRR"
        )
        return Verdict(found, min(train) > 1 and max(query) * MUCH < 1)

    def _ratio(self, size: int, what: str, ours: Pick, theirs: Pick) -> float:
        mine = ours([self.seconds(m, size, what) for m in SHRINKING])
        return mine / theirs([self.seconds(m, size, what) for m in RANDOM])

    def fastest_with_queries(self) -> Verdict:
        sizes = [size for size in self.figures.sizes() if size <= FASTEST_TO]
        good = 0
        for size in sizes:
            totals = {m: self.total(m, size) for m in PAPERS}
            good += max(totals[m] for m in SHRINKING) < min(
                totals[m] for m in PAPERS if m not in SHRINKING
            )
        return Verdict(f"at {good} of {len(sizes)} sizes", good == len(sizes))

    def faster_than_exact(self) -> Verdict:
        sizes = self.figures.sizes()

        def once(method: str, size: int) -> float:
            return self.seconds(method, size, "train") + self.seconds(method, size, "query")

        slow = {m for m in PAPERS for size in sizes if once(m, size) >= once(NUMPY, size)}
        ratios = [once(m, size) / once(NUMPY, size) for m in PAPERS for size in sizes]
        found = f"{min(ratios):.2g} to {max(ratios):.2g} times RR by Cholesky"
        slower = f", slower at some size: {', '.join(sorted(slow))}" if slow else ""
        return Verdict(found + slower, not slow)

    def predicts_like_exact(self) -> Verdict:
        cells = [(data, size) for data, size in self.cells if size >= PREDICTS_FROM]
        ratios = {
            (m, *cell): self.figures.prediction(cell[0], self.name(m), cell[1])
            / self.figures.prediction(cell[0], RR, 0)
            for cell in cells
            for m in SHRINKING
        }
        if not ratios:
            return Verdict("no such size was run", None)
        worst = max(ratios, key=ratios.__getitem__)
        found = f"at most {ratios[worst]:.3g} times RR's ({' '.join(map(str, worst))})"
        return Verdict(found, ratios[worst] <= TIE)

    def theorem(self, method: str, share: float) -> Verdict:
        name = self.name(method)
        found = [r for r in self.figures.records if r.method == name]
        good = sum(r.coefficient_error <= share * r.bound_in_advance + 1e-9 for r in found)
        return Verdict(f"in {good} of {len(found)} runs", good == len(found))

    def lines(self) -> list[tuple[str, Verdict]]:
        """Return the claims that depend on how the sketch is fed."""
        return [
            ("(a) FD family far below RPRR and CSRR, all data", self.family_beats_random()),
            ("(a) of it RFDRR alone", self.robust_beats_random()),
            ("(b) HR, very small l: RFDRR worse", self.robust_is_worse_when_tiny()),
            ("(c) LR, TEMP: RFDRR least or tied", self.robust_is_best()),
            ("(c) RFDRR can reach the least error", self.robust_reaches_least()),
            ("(c) prediction near RR's above l = 32", self.predicts_like_exact()),
            ("(d) slower training, faster queries", self.slower_training_faster_queries()),
            ("(e) fastest with n/l queries", self.fastest_with_queries()),
            ("(e) all faster than RR, one query", self.faster_than_exact()),
            ("Theorem 4, FDRR: error <= epsilon", self.theorem("FDRR", 1.0)),
            ("Theorem 5, RFDRR: error <= epsilon", self.theorem("RFDRR", 0.5)),
        ]


def penalties(best: dict[str, float], scale: float) -> list[tuple[str, Verdict]]:
    """Hold the penalty of least test error against the published one, to a factor of two."""
    found = []
    for data, alpha in best.items():
        published = PUBLISHED[data.split()[0]]
        near = published / 2 <= alpha / scale <= published * 2
        text = f"{alpha / scale:g} on the grid {GRID[0]:g} ... {GRID[-1]:g}"
        label = f"{data} sd {NOISE[0]:g}" if data in ("LR", "HR") else data
        found.append((f"best penalty of {label} is {published:g}", Verdict(text, near)))
    return found


def robust_line(figures: Figures, expected: tuple[str, ...]) -> str:
    """Say whether RFDRR is below RPRR and CSRR in every single run, not on average only."""
    random: dict[tuple[str, int, int], float] = {}
    for r in figures.records:
        if r.method in RANDOM:
            key = r.data, r.sketch_size, r.seed
            random[key] = min(r.coefficient_error, random.get(key, np.inf))
    above = [
        f"{r.data} {r.sketch_size}"
        for r in figures.records
        if r.method in ("RFDRR", "RFDRR" + PRINTED)
        and r.coefficient_error >= random[r.data, r.sketch_size, r.seed]
    ]
    ran = {label.split()[0] for label in figures.labels()}
    absent = f"; not run: {', '.join(sorted(set(expected) - ran))}" if set(expected) - ran else ""
    verdict = f"not met: {', '.join(sorted(set(above)))}" if above else "met"
    return f"RFDRR below RPRR and CSRR at every size, in every run: {verdict}{absent}"


def reference_lines(figures: Figures, full_size: bool) -> list[str]:
    """Return the reference errors beside ours at seed 0, and whether each is met."""
    if not full_size or REFERENCE_SIZE not in figures.sizes():
        return [f"not run: needs the full size and sketch size {REFERENCE_SIZE}"]
    found = []
    seed_0 = Figures([r for r in figures.records if r.seed == 0])
    for (data, method), reference in REFERENCES.items():
        if data not in seed_0.labels():
            found.append(f"{data:5}{method:8}not run")
            continue
        limit = REFERENCE_SLACK * reference
        errors = [seed_0.error(data, m, REFERENCE_SIZE) for m in (method, method + PRINTED)]
        words = [f"{e:7.3f} {'met' if e <= limit else 'not met':8}" for e in errors]
        found.append(f"{data:5}{method:8}{reference:10.2f}{limit:8.3f}  {words[0]}{words[1]}")
    return found
