"""The command ``sksketch``: parses, calls, prints."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from sksketch import plotting
from sksketch.estimators import SketchEstimator
from sksketch.exceptions import NotMergeableError, StateFormatError
from sksketch.loading import load
from sksketch.sketches import Sketch
from sksketch.tour import Pass, Progress, TourReport, run_tour

try:
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as ProgressBar
    from rich.table import Table
except ImportError as error:
    _MISSING: str | None = error.name
else:
    _MISSING = None

USER_MISTAKE = 2
PICTURE = Path("sksketch-tour.png")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, or 2 and one line for a user's mistake.

    Examples
    --------
    >>> main(["info", "no-such-file.sks"])
    2
    """
    if _MISSING is not None:
        return _fail(f"the commands need {_MISSING}: pip install 'scikit-sketch[cli]'")
    try:
        code = _build_app()(args=arguments, prog_name="sksketch", standalone_mode=False)
    except typer.TyperException as error:
        return _fail(error.format_message())
    except OSError as error:
        return _fail(f"{error.strerror or error}: {error.filename}")
    except (StateFormatError, NotMergeableError) as error:
        return _fail(str(error))
    return code if isinstance(code, int) else 0


def _build_app() -> typer.Typer:
    """Return the commands as one application."""
    app = typer.Typer(
        help="Learn from matrices that do not fit: one pass, flat memory, certified error.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.command()(tour)
    app.command()(info)
    app.command()(merge)
    return app


def tour(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    picture: Annotated[Path, typer.Option(help="Where to write the picture.")] = PICTURE,
    rows: Annotated[int, typer.Option(hidden=True, min=1_000)] = 200_000,
    columns: Annotated[int, typer.Option(hidden=True, min=20)] = 1_000,
) -> None:
    """Stream a matrix that is never in memory through PCA, and check the answer."""
    with _progress_bar(rows) as progress:
        report = run_tour(rows, columns, progress=progress)
    if as_json:
        _print_json(asdict(report))
    else:
        _print_tour(report)
    try:
        _draw_tour(report, picture)
    except ImportError as error:
        typer.echo(f"no picture: {error}", err=True)
    else:
        typer.echo(f"picture: {picture}", err=as_json)


def info(
    file: Annotated[Path, typer.Argument(help="A saved sketch (.sks).")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what a saved sketch has seen and what it certifies."""
    _print_model(load(file), file, as_json)


def merge(
    files: Annotated[list[Path], typer.Argument(help="Saved sketches of the same columns.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the result.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Merge saved sketches of different rows into one."""
    if len(files) < 2:
        raise typer.BadParameter("give at least two files to merge")
    merged = reduce(_merge_file, files[1:], load(files[0]))
    merged.save(output)
    typer.echo(f"merged {len(files)} files into {output}", err=True)
    _print_model(merged, output, as_json)


def _merge_file(model: Any, file: Path) -> Any:
    """Merge the sketch or estimator in ``file`` into ``model``."""
    return model.merge(load(file))


def _fail(message: str) -> int:
    """Put one line on stderr and return the code for a user's mistake."""
    line = " ".join(message.split())
    sys.stderr.write(f"sksketch: {line}\n")
    return USER_MISTAKE


@contextmanager
def _progress_bar(n_rows: int) -> Iterator[Progress]:
    """Show one bar per stage on stderr, with its rows per second."""
    with ProgressBar(
        TextColumn("{task.description:>10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[rate]}"),
        console=Console(stderr=True),
    ) as bars:
        tasks: dict[str, Any] = {}

        def advance(stage: str, n_done: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=n_rows, rate="")
            bars.advance(tasks[stage], n_done)
            speed = bars.tasks[tasks[stage]].speed
            bars.update(tasks[stage], rate=f"{speed:,.0f} rows/s" if speed else "")

        yield advance


def _print_model(model: Sketch | SketchEstimator, file: Path, as_json: bool) -> None:
    """Print what a saved sketch or estimator is, has seen and certifies."""
    sketch = model if isinstance(model, Sketch) else model.sketch_
    facts: dict[str, Any] = {
        "file": str(file),
        "kind": model.kind,
        "rows seen": sketch.n_rows_seen,
        "columns": sketch.n_features,
        "plan": sketch.plan(),
    }
    certificate = None if sketch.n_features is None else sketch.certificate()
    if as_json:
        record = {name.replace(" ", "_"): value for name, value in facts.items()}
        record["certificate"] = None if certificate is None else asdict(certificate)
        _print_json(record)
        return
    for name, value in facts.items():
        text = f"{value:,}" if isinstance(value, int) else str(value or "unknown")
        typer.echo(f"{name:<12} {text}")
    typer.echo(f"\n{certificate or 'nothing to certify: no rows yet'}")


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
    plotting.plot_spectrum(
        report.variances,
        report.variance_bounds,
        true_eigenvalues=report.true_variances,
        quantity="variance",
        title=f"{report.n_rows:,} x {report.n_features:,} in one pass: certified error "
        f"{report.error_bound:.1e}, true error {report.true_error:.1e} of the total variance",
        path=path,
    )


def _probability(confidence: float) -> str:
    """Say how sure a bound is."""
    return "certain" if confidence == 1.0 else f"at least {confidence:g}"


def _rate(done: Pass, seconds: Callable[[Pass], float]) -> str:
    """Return rows per second as text."""
    return f"{done.n_rows / max(seconds(done), 1e-9):,.0f}"


def _megabytes(n_bytes: float) -> str:
    """Return bytes as text in megabytes."""
    return "not told by this system" if math.isnan(n_bytes) else f"{n_bytes / 1e6:,.0f} MB"


def _print_json(record: dict[str, Any]) -> None:
    """Print one JSON object; an infinite bound is the text "inf"."""
    typer.echo(json.dumps(_plain(record), allow_nan=False))


def _plain(value: Any) -> Any:
    """Return ``value`` with arrays as lists and numbers that JSON knows."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
