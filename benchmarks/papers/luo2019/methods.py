"""The learners of Luo et al. (2019), section 6.2, run once over each split."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from benchmarks.papers.luo2019.data import Data, Split, split
from sksketch import OnlineNewtonClassifier

GRID = tuple(10.0**power for power in range(-3, 7))
QUICK_GRID = (1e-3, 1e-1, 10.0, 1e4)
# Names of the paper, and OGD beside them.
TUNED = {
    "AdaGrad": "adagrad",
    "OGD": "ogd",
    "FULL-ON": "full",
    "FD": "fd",
    "PFD": "pfd",
    "RP": "rp",
    "Oja": "oja",
    "RFD": "rfd",
}
# One size fits these; a matrix of d x d is not for all data.
SIZELESS, FULL = ("AdaGrad", "OGD", "FULL-ON"), "FULL-ON"
SON = ("FD", "PFD", "RP", "Oja", "RFD")
BASELINES = ("AdaGrad", "FD", "PFD", "RP", "Oja")
RFD, RFD0, AUTO = "RFD", "RFD0", "default"
UNTUNED = (RFD0, AUTO)
N_POINTS = 40
# Stands for a ridge that the first gradient sets.
AUTO_RIDGE = -1.0


@dataclass
class Record:
    """One pass of one learner: accuracies in percent, errors along the way, time for a row."""

    data: str
    method: str
    size: int
    ridge: float
    order: str
    accuracy: float
    online_error: float
    microseconds: float
    curve: list[tuple[int, float]] = field(repr=False)


class Figures:
    """Records, averaged over the orders of a data set."""

    def __init__(self, records: list[Record]) -> None:
        self.records = records
        self._cells: dict[tuple[str, str, int], list[Record]] = {}
        for record in records:
            cell = (record.data, record.method, record.size)
            self._cells.setdefault(cell, []).append(record)

    def data(self) -> list[str]:
        return list(dict.fromkeys(record.data for record in self.records))

    def sizes(self, data: str) -> list[int]:
        return sorted({r.size for r in self.records if r.data == data and r.size})

    def methods(self, data: str) -> list[str]:
        return list(dict.fromkeys(r.method for r in self.records if r.data == data))

    def cell(self, data: str, method: str, size: int) -> list[Record]:
        return self._cells.get((data, method, 0 if method in SIZELESS else size), [])

    def by_ridge(self, data: str, method: str, size: int, what: str) -> dict[float, float]:
        """Return the mean over the orders for each initial ridge."""
        found: dict[float, list[float]] = {}
        for record in self.cell(data, method, size):
            found.setdefault(record.ridge, []).append(getattr(record, what))
        return {ridge: float(np.mean(values)) for ridge, values in sorted(found.items())}

    def accuracy(self, data: str, method: str, size: int) -> float:
        """Return the accuracy with the best initial ridge of each order, or NaN."""
        best: dict[str, float] = {}
        for record in self.cell(data, method, size):
            best[record.order] = max(best.get(record.order, 0.0), record.accuracy)
        return float(np.mean(list(best.values()))) if best else float("nan")

    def spread(self, data: str, method: str, size: int, up_to: float = np.inf) -> float:
        """Return by how many points the accuracy moves over the initial ridges."""
        means = self.by_ridge(data, method, size, "accuracy")
        values = [value for ridge, value in means.items() if ridge <= up_to]
        return max(values) - min(values) if values else float("nan")

    def spreads(self, data: str, method: str, size: int, up_to: float) -> dict[str, float]:
        """Return the same for each order alone."""
        found: dict[str, list[float]] = {}
        for record in self.cell(data, method, size):
            if record.ridge <= up_to:
                found.setdefault(record.order, []).append(record.accuracy)
        return {order: max(values) - min(values) for order, values in found.items()}

    def microseconds(self, data: str, method: str, size: int) -> float:
        cell = self.cell(data, method, size)
        return float(np.median([r.microseconds for r in cell])) if cell else float("nan")


def passes(name: str, data: Data, grid: tuple[float, ...]) -> Iterator[Record]:
    """Run every method of the paper at every size, initial ridge and order."""
    rows = data.make()
    for order in data.orders:
        parts = split(rows, order)
        for method, key in TUNED.items():
            if method == FULL and not data.small:
                continue
            for size in (0,) if method in SIZELESS else data.sizes:
                for ridge in grid:
                    yield one_pass(name, method, key, size, ridge, order, parts)
        for size in data.sizes:
            yield one_pass(name, RFD0, "rfd", size, 0.0, order, parts)
            yield one_pass(name, AUTO, "rfd", size, "auto", order, parts)


def one_pass(
    data: str, method: str, key: str, size: int, ridge: float | str, order: str, parts: Split
) -> Record:
    """Learn the rows of a split once and test on the others."""
    options = {"null_projection": "printed"} if method == RFD0 else {}
    model = OnlineNewtonClassifier(
        key,
        sketch_size=size or 2,
        loss="squared",
        curvature="gradient",
        normalize=False,
        C=1.0,
        initial_ridge=ridge,
        fit_intercept=False,
        random_state=0,
        **options,
    )
    begun = time.process_time()
    with warnings.catch_warnings():
        # RFD0 warns that it depends on the order of the rows.
        warnings.simplefilter("ignore", UserWarning)
        said = model.partial_fit_predict(parts.X, parts.y, classes=[-1.0, 1.0])
    seconds = time.process_time() - begun
    errors = 100.0 * np.cumsum(said != parts.y) / np.arange(1, len(parts.y) + 1)
    points = np.unique(np.linspace(0, len(parts.y), N_POINTS + 1).astype(int)[1:])
    curve = [(int(n), float(errors[n - 1])) for n in points]
    return Record(
        data=data,
        method=method,
        size=size,
        ridge=AUTO_RIDGE if ridge == "auto" else float(ridge),
        order=order,
        accuracy=100.0 * float(np.mean(model.predict(parts.X_test) == parts.y_test)),
        online_error=100.0 * model.online_error_,
        microseconds=1e6 * seconds / len(parts.y),
        curve=curve,
    )
