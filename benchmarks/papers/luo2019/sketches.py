"""Figures 1 and 2 of Luo et al. (2019): spectral errors of the sketches, over that of FD."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.papers.luo2019.claims import Verdict
from benchmarks.papers.luo2019.data import Data
from sksketch import FrequentDirections, metrics

# Kept rows as shares of the columns, and the fractions of PFD that the paper tries.
SHARES = (0.1, 0.2, 0.4)
FRACTIONS = (0.2, 0.4, 0.6, 0.8)
# "nearly half"
HALF = (0.45, 0.55)
# Rows of a wide, dense set that the errors are measured on.
MOST_ROWS = 5000
BLOCK_ROWS = 1000


def sketch_errors(data: Data) -> dict[str, dict[str, float]]:
    """Return for each size the spectral error of every sketch over the trace of A'A."""
    X = data.make()[0]
    X = X.toarray() if sp.issparse(X) else X
    X = X[:MOST_ROWS] if X.shape[1] > 500 else X
    total = float(np.vdot(X, X))
    options = {
        "FD": {"correction": "none"},
        "RFD": {"correction": "half"},
        "CFD": {"correction": "full"},
        **{
            f"PFD-{fraction:g}": {
                "correction": "none",
                "rule": "parameterized",
                "fraction": fraction,
            }
            for fraction in FRACTIONS
        },
    }
    found: dict[str, dict[str, float]] = {}
    for share in SHARES:
        size = max(int(share * X.shape[1]), 2)
        found[str(size)] = {}
        for name, how in options.items():
            sketch = FrequentDirections(size, solver="exact", buffer_rows=2 * size + 2, **how)
            for start in range(0, len(X), BLOCK_ROWS):
                sketch.update(X[start : start + BLOCK_ROWS])
            found[str(size)][name] = metrics.spectral_error(X, sketch.summary()) / total
    return found


def sketch_table(errors: dict[str, dict[str, float]]) -> str:
    names = list(next(iter(errors.values())))
    lines = [f"{'rows kept':10}{'FD':>10}" + "".join(f"{name:>9}" for name in names[1:])]
    for size, found in errors.items():
        ratios = "".join(f"{found[name] / found['FD']:9.3f}" for name in names[1:])
        lines.append(f"{size:10}{found['FD']:10.2e}{ratios}")
    return "\n".join(lines)


def sketch_claims(errors: dict[str, Any]) -> list[tuple[str, Verdict]]:
    """Return the claims on Figures 1 and 2."""
    cells = [cell for found in errors.values() for cell in found.values()]
    if not cells:
        nothing = Verdict("no data with few columns was run", None)
        return [("Figures 1 and 2: RFD errs less than FD, CFD and mostly PFD", nothing)]
    n = len(cells)
    less = sum(c["RFD"] < min(c["FD"], c["CFD"]) for c in cells)
    half = sum(HALF[0] <= c["RFD"] / c["FD"] <= HALF[1] for c in cells)
    pairs = [c["RFD"] < c[f"PFD-{fraction:g}"] for c in cells for fraction in FRACTIONS]
    return [
        ("Figure 1: RFD errs less than FD and CFD, always", _counted(less, n, less == n)),
        ("Figure 1: about half of FD in most cases", _counted(half, n, half > n / 2)),
        (
            "Figure 2: RFD errs less than PFD in most cases",
            _counted(sum(pairs), len(pairs), sum(pairs) > len(pairs) / 2),
        ),
    ]


def _counted(good: int, n: int, holds: bool) -> Verdict:
    return Verdict(f"in {good} of {n} cases", holds)
