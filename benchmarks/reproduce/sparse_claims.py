"""Claims of Ghashami, Liberty and Phillips (2016), and of the theory of linear sketches."""

from __future__ import annotations

import re

from benchmarks.reproduce.verdicts import OURS_ONLY, Row, Run, decided, missing

FD, SFD, BOOSTED = "FD, LAPACK SVD", "SFD paper q=4ln plain", "SFD paper q=4ln boosted"
OURS = "SparseFrequentDirections"
METHODS = {SFD: "the paper's SFD", OURS: f"our {OURS}"}
# Case, what the paper says of the speed of SFD over that of FD, the least and largest ratio.
SPEEDS = {
    "default": ("1.5 to 2 times as fast", 1.5, None),
    "sparse": ("10 times as fast or more", 10.0, None),
    "dense": ("slower", None, 1.0),
    "news": ("faster", 1.0, None),
}
# Errors this close count as equal; a time is linear if it grows at most this much faster.
EQUAL, LINEAR = 1.05, 1.5
GROWTH = 6.0
# A mean over random sketches may be so far from the exact one.
STANDARD_ERRORS = 4
COMPARED = ("default", "rows", "columns", "small", "large", "dense", "news")


def sparse(run: Run) -> list[Row]:
    """Return the claims of the Sparse Frequent Directions paper, of its algorithm and of ours."""
    cases = run.results.get("sparse", {}).get("results", {})
    cases = {
        name: {method: line for method, line in lines.items() if not line["skipped"]}
        for name, lines in cases.items()
    }
    rows = []
    for method in METHODS:
        for name, (published, least, most) in SPEEDS.items():
            rows.append(_speed(run, cases.get(name, {}), name, method, published, least, most))
        rows += [_linear(run, cases, method), _errors(run, cases, method)]
        rows.append(_very_sparse(run, cases.get("sparse", {}), method))
    return [*rows, _certified(run, cases)]


def _speed(run, lines, name, method, published, least, most) -> Row:
    claim = f"{name}: speed of {METHODS[method]} over FD with LAPACK's SVD"
    if not {FD, method} <= set(lines):
        return missing(claim, published, run, name)
    ratio = lines[FD]["time"] / lines[method]["time"]
    holds = (least is None or ratio >= least) and (most is None or ratio < most)
    return decided(claim, published, f"{ratio:.2f}x", None if run.quick else holds)


def _linear(run: Run, cases: dict, method: str) -> Row:
    claim = f"the time of {METHODS[method]} is linear in the rows"
    published = f"{GROWTH:g} times the rows, {GROWTH:g} times the time"
    if not all(method in cases.get(name, {}) for name in ("default", "rows")):
        return missing(claim, published, run, "rows")
    growth = cases["rows"][method]["time"] / cases["default"][method]["time"]
    return decided(claim, published, f"{growth:.2f} times", growth <= LINEAR * GROWTH)


def _errors(run: Run, cases: dict, method: str) -> Row:
    claim = f"the covariance error of {METHODS[method]} matches or improves that of FD"
    published = "in all cases but the sparsest"
    ratios = {
        name: lines[method]["without_ridge"] / lines[FD]["without_ridge"]
        for name, lines in cases.items()
        if name in COMPARED and {FD, method} <= set(lines)
    }
    if not ratios:
        return missing(claim, published, run)
    good = sum(ratio <= EQUAL for ratio in ratios.values())
    worst = max(ratios, key=ratios.__getitem__)
    ours = f"in {good} of {len(ratios)} cases, at most {ratios[worst]:.2f} times ({worst})"
    return decided(claim, published, ours, None if run.quick else good == len(ratios))


def _very_sparse(run: Run, lines: dict, method: str) -> Row:
    claim = f"very sparse rows: the covariance error of {METHODS[method]} is above that of FD"
    if not {FD, method} <= set(lines):
        return missing(claim, "above", run, "sparse")
    ratio = lines[method]["without_ridge"] / lines[FD]["without_ridge"]
    return decided(claim, "above", f"{ratio:.2f} times", None if run.quick else ratio > 1.0)


def _certified(run: Run, cases: dict) -> Row:
    claim, published = (
        "errors are within the bound that a boosted sketch gives",
        "with probability 1 - delta",
    )
    found = [lines[m] for lines in cases.values() for m in (BOOSTED, OURS) if m in lines]
    if not found:
        return missing(claim, published, run)
    good = sum(line["covariance_error"] <= line["certificate"] * (1 + 1e-3) for line in found)
    return decided(claim, published, f"in {good} of {len(found)} runs", good == len(found))


def embedding_figures(printed: str) -> dict:
    """Return the table that papers/embedding.py prints, which writes no JSON, as plain data."""
    head = re.match(r".* for (\d+) columns of (\d+) rows, (\d+) seeds", printed)
    spectral = ("spectral", "theory", "spectral_ratio")
    names = (*spectral, "frobenius", "exact", "frobenius_ratio", "standard_errors")
    records = []
    for line in printed.splitlines()[3:]:
        sketch, basis, size, *values = line.split()
        figures = dict(zip(names, map(float, values), strict=True))
        records.append({"sketch": sketch, "basis": basis, "size": int(size), **figures})
    if not head or not records:
        raise ValueError("embedding.py printed no table")
    return {"seeds": list(range(int(head[3]))), "records": records}


def embedding(run: Run) -> list[Row]:
    """Return what theory says of linear sketches, beside the norms that were measured."""
    spectral = "median spectral norm of U'S'SU - I is below its limit or bound"
    frobenius = "rms Frobenius norm of U'S'SU - I is the exact one"
    records = run.results.get("embedding", {}).get("records", [])
    if not records:
        return [missing(claim, OURS_ONLY, run) for claim in (spectral, frobenius)]
    below = [r["spectral_ratio"] for r in records]
    off = max(abs(r["standard_errors"]) for r in records)
    return [
        decided(spectral, "ratio at most 1", f"at most {max(below):.2f}", max(below) <= 1.0),
        decided(
            frobenius,
            f"mean of squares within {STANDARD_ERRORS} standard errors",
            f"within {off:.1f}",
            off <= STANDARD_ERRORS,
        ),
    ]
