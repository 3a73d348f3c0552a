"""The main job on made-up data, and how far from the truth it was."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sksketch.cli.printing import echo
from sksketch.cli.show import print_json, stage_bars
from sksketch.present import plotting
from sksketch.present.tour import Pass, TourReport, run_tour
from sksketch.sketches.certificate import rounded_down
from sksketch.state.disk import replacing


def take_tour(n_rows: int, n_columns: int, picture: Path, *, as_json: bool) -> None:
    """Make rows, learn from them and check the answer; print what was found and draw it."""
    done: Counter[str] = Counter()
    with stage_bars() as show:

        def advance(stage: str, n: int) -> None:
            if stage not in done:
                show(stage, 0, n_rows)
            done[stage] += n
            show(stage, done[stage], n_rows)

        report = run_tour(n_rows, n_columns, progress=advance)
    if as_json:
        print_json(asdict(report))
    else:
        _print_tour(report)
    try:
        _draw_tour(report, picture)
    except ImportError as error:
        echo(f"no picture: {error}", err=True)
    else:
        echo(f"picture: {picture}", err=as_json)


def _print_tour(report: TourReport) -> None:
    """Print the tour's findings as text and two tables."""
    console = Console(highlight=False)
    console.print(
        f"\nA matrix of {report.n_rows:,} x {report.n_features:,} passed by once, "
        f"block by block.\nplan: {report.plan}\n"
    )
    console.print(report.certificate, markup=False)
    console.print()

    found = Table("component", "variance found", "certified between", "true variance")
    rows = zip(report.variances, report.variance_bounds, report.true_variances, strict=True)
    for number, (variance, (low, high), true) in enumerate(rows, start=1):
        found.add_row(str(number), f"{variance:.4g}", f"{low:.4g} and {high:.4g}", f"{true:.4g}")
    console.print(found)

    facts = Table("measured", "here")
    facts.add_row("certified error / total variance", f"{report.error_bound:.2e}")
    facts.add_row("true error / total variance", f"{report.true_error:.2e}")
    facts.add_row("probability that the bound holds", _probability(report.confidence))
    facts.add_row("angle to the true components", f"{report.largest_angle:.2g} degrees")
    facts.add_row("rows made per second", _rate(report.sketching, lambda p: p.reading))
    facts.add_row("rows sketched per second", _rate(report.sketching, lambda p: p.using))
    facts.add_row("peak memory of the sketching pass", _megabytes(report.extra_memory))
    facts.add_row("memory the matrix would need", _megabytes(report.matrix_memory))
    console.print(facts)
    console.print(
        "The true values come from a second pass that makes the rows again and keeps\n"
        "their exact covariance, only to check the answer; your data need only the first."
    )


def _draw_tour(report: TourReport, path: Path) -> None:
    """Write the picture of the tour."""
    axes = plotting.new_axes()
    axes.set_title(
        f"{report.n_rows:,} x {report.n_features:,} in one pass: certified error "
        f"{report.error_bound:.1e}, true error {report.true_error:.1e} of the total variance",
        loc="left",
        fontsize=10,
    )
    display = plotting.SpectrumDisplay(
        report.variances,
        report.variance_bounds,
        true_eigenvalues=report.true_variances,
        quantity="variance",
    )
    figure = display.plot(axes).figure_
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix.lstrip(".") or "png")


def _probability(confidence: float) -> str:
    """Return the confidence of a bound in words."""
    return "certain" if confidence == 1.0 else f"at least {rounded_down(confidence, 6)}"


def _rate(done: Pass, seconds: Callable[[Pass], float]) -> str:
    """Return rows per second as text."""
    return f"{done.n_rows / max(seconds(done), 1e-9):,.0f}"


def _megabytes(n_bytes: float) -> str:
    """Return bytes as text in megabytes."""
    return "not reported by this system" if math.isnan(n_bytes) else f"{n_bytes / 1e6:,.0f} MB"
