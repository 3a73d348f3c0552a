"""Tables, claims and pictures of Xu et al. (2017)."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from pathlib import Path

from benchmarks.papers.xu2017.methods import FULL, OPERATORS, TAUS, Leads, Record

# An independent implementation on its own draw of the data: test error by data and penalty.
REFERENCE = {
    ("exp-1", 1e-3): {"full": 0.0536, "nor rs": 0.0536, "nor rg": 0.0536, "nor rh": 0.0536},
    ("exp-1", 1e-4): {"full": 0.0343, "nor rs": 0.0343, "nor rg": 0.0343, "nor rh": 0.0343},
    ("poly-1", 1e-3): {"full": 0.0683, "nor rs": 0.0718, "nor rg": 0.0715, "nor rh": 0.0706},
    ("poly-1", 1e-4): {"full": 0.0454, "nor rs": 0.0487, "nor rg": 0.0525, "nor rh": 0.0518},
    ("poly-0.5", 1e-3): {"full": 0.0866, "nor rs": 0.2235, "nor rg": 0.2326, "nor rh": 0.2198},
    ("poly-0.5", 1e-4): {"full": 0.0304, "nor rs": 0.2224, "nor rg": 0.2291, "nor rh": 0.2209},
}
POWER = {
    ("exp-1", 1e-3): 0.0536,
    ("exp-1", 1e-4): 0.0343,
    ("poly-1", 1e-3): 0.0687,
    ("poly-1", 1e-4): 0.0475,
    ("poly-0.5", 1e-3): 0.2167,
    ("poly-0.5", 1e-4): 0.2160,
}
CLOSE = 0.006


class Figures:
    """Records, by what they are of."""

    def __init__(self, records: list[Record]) -> None:
        self.records = records

    def sets(self) -> list[tuple[str, float]]:
        """Return data and penalties, in the order of the runs."""
        return list(dict.fromkeys((r.data, r.alpha) for r in self.records))

    def of(self, data: str, alpha: float) -> list[Record]:
        """Return the records of one data set and penalty, means over the draws."""
        return means([r for r in self.records if (r.data, r.alpha) == (data, alpha)])


def means(records: list[Record]) -> list[Record]:
    """Return one record for all draws of a method and size: the mean of every figure."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for record in records:
        key = record.data, record.alpha, record.method, record.size
        groups.setdefault(key, []).append(record)
    found = []
    for group in groups.values():
        names = [name for name, kind in Record.__annotations__.items() if kind == "float"]
        mean = {name: statistics.fmean(getattr(r, name) for r in group) for name in names}
        found.append(replace(group[0], **mean))
    return found


def noise(first: float, second: float, n_rows: int) -> float:
    """Return the standard error of a difference of two errors on so many test rows."""
    return math.sqrt((first * (1.0 - first) + second * (1.0 - second)) / n_rows)


def table(records: list[Record]) -> str:
    """Return one line for each method and size, with means over the draws."""
    records = means(records)
    head = (
        f"{'method':14}{'m':>6}{'test error':>12}{'reduce s':>10}{'solve s':>9}{'gap':>10}"
        f"{'true gap':>10}{'bound':>10}{'Lemma 2':>10}"
    )
    lines = (
        f"{r.method:14}{r.size or '':>6}{r.error:12.4f}{r.reduction_seconds:10.2f}"
        f"{r.solve_seconds:9.2f}{r.duality_gap:10.1e}{r.true_gap:10.2g}{r.certificate:10.2g}"
        f"{r.lemma2:10.2g}"
        for r in records
    )
    return "\n".join([head, "-" * len(head), *lines])


def claims(figures: Figures, *, n_test: int, full_size: bool) -> list[tuple[str, str]]:
    """Return claims on the synthetic sets, each with what was found and a verdict.

    Errors are means over the draws. A lead that is lost by less than two standard errors of a
    difference on ``n_test`` rows decides nothing.
    """
    found: list[tuple[str, str]] = []

    def say(claim: str, facts: str, holds: bool) -> None:
        found.append((claim, f"{facts}: {'holds' if holds else 'does not hold'}"))

    for data, alpha in figures.sets():
        where = f"{data}, lambda {alpha:g}"
        records = {r.method: r.error for r in figures.of(data, alpha)}
        wanted = dict(REFERENCE[data, alpha]) | {"nor rh +1": POWER[data, alpha]}
        far = {name: records[name] - value for name, value in wanted.items()}
        worst = max(far, key=lambda name: abs(far[name]))
        claim = f"{where}: errors within {CLOSE} of the reference"
        if full_size:
            say(claim, f"farthest {worst}, {far[worst]:+.4f}", abs(far[worst]) <= CLOSE)
        else:
            found.append((claim, "sizes are not those of the reference: not testable"))
        for other in ("rp", "rpdr", *(f"dsrr{tau}" for tau in TAUS)):
            gaps = {k: records[f"{other} {k}"] - records[f"nor {k}"] for k in OPERATORS}
            least = min(gaps, key=lambda k: gaps[k])
            facts = f"least lead {gaps[least]:+.4f} with {least}"
            claim = f"{where}: NOR below {other.upper()} with every operator"
            slack = 2.0 * noise(records[f"{other} {least}"], records[f"nor {least}"], n_test)
            if -slack < gaps[least] <= 0.0:
                facts += f", which {n_test} test rows do not tell from 0 (+-{slack:.4f})"
                found.append((claim, f"{facts}: not testable"))
            else:
                say(claim, facts, gaps[least] > 0.0)
        if data == "exp-1":
            apart = max(abs(records[f"nor {k}"] - records[FULL]) for k in OPERATORS)
            say(f"{where}: NOR is as good as all columns", f"{apart:.4f} apart", apart <= 0.001)
            least_error = min(records[f"rpdr {k}"] for k in OPERATORS)
            say(f"{where}: RPDR errs above 0.35", f"least {least_error:.3f}", least_error > 0.35)
    nor = [r for r in figures.records if r.method.startswith("nor ")]
    wrong = [r for r in figures.records if r.true_gap > r.certificate + 1e-9]
    say(
        "F(w) - F(full) is within the certificate of every method",
        f"{len(wrong)} of {len(figures.records)} are not",
        not wrong,
    )
    loose = [r for r in nor if r.certificate > r.lemma2 * (1 + 1e-9)]
    say("the certificate is below Lemma 2 for NOR", f"{len(loose)} are not", not loose)
    return found


def draws_claims(leads: list[Leads]) -> list[tuple[str, str]]:
    """Return the claims on NOR and RP by sampling over many draws of a synthetic set."""
    found = []
    for alpha in leads[0]:
        mine = [lead[alpha] for lead in leads]
        error = statistics.stdev(mine) / math.sqrt(len(mine))
        above = sum(lead > 0.0 for lead in mine)
        facts = f"on {above} of {len(mine)}, mean lead {statistics.fmean(mine):+.4f} +- {error:.4f}"
        verdict = "holds" if above == len(mine) else "does not hold"
        claim = f"exp-1, lambda {alpha:g}: NOR below RP on every draw of the data, row sampling"
        found.append((claim, f"{facts}: {verdict}"))
    return found


def draw(figures: Figures, folder: Path, name: str) -> Path:
    """Draw test errors against sizes, one panel for each real data set."""
    from matplotlib.figure import Figure

    sets = figures.sets()
    figure = Figure(figsize=(4.2 * len(sets), 3.8), layout="constrained")
    for axes, (data, alpha) in zip(
        figure.subplots(1, len(sets), squeeze=False)[0], sets, strict=True
    ):
        records = figures.of(data, alpha)
        for method in dict.fromkeys(r.method for r in records):
            mine = [r for r in records if r.method == method]
            if method == FULL:
                axes.axhline(mine[0].error, color="black", lw=1, label="all columns")
                continue
            axes.plot([r.size for r in mine], [r.error for r in mine], marker="o", label=method)
        axes.set_xscale("log")
        axes.set_xlabel("coordinates")
        axes.set_title(data)
        axes.set_ylabel("test error")
        axes.legend(fontsize=7)
    path = folder / name
    figure.savefig(path, dpi=120)
    return path


def bars(figures: Figures, folder: Path) -> Path:
    """Draw the test errors of all methods on the synthetic sets."""
    from matplotlib.figure import Figure

    sets = figures.sets()
    figure = Figure(figsize=(9, 2.6 * len(sets)), layout="constrained")
    for axes, (data, alpha) in zip(
        figure.subplots(len(sets), 1, squeeze=False)[:, 0], sets, strict=True
    ):
        records = figures.of(data, alpha)
        axes.bar([r.method for r in records], [r.error for r in records], color="#4878a8")
        axes.set_title(f"{data}, lambda {alpha:g}")
        axes.set_ylabel("test error")
        axes.tick_params(axis="x", rotation=70, labelsize=7)
    path = folder / "xu2017_synthetic.png"
    figure.savefig(path, dpi=120)
    return path
