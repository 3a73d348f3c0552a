"""The output of commands: bars on stderr, facts on stdout."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as ProgressBar

from sksketch.cli.options import Run
from sksketch.cli.printing import echo
from sksketch.cli.saving import Saved
from sksketch.cli.tables.table_facts import print_table, table_facts
from sksketch.models.base import Estimator
from sksketch.models.inference import Inference
from sksketch.present.findings import (
    ONLINE,
    PLAIN,
    Findings,
    OnlineFindings,
    named,
    plain_findings,
    quality_of,
    quality_text,
    record_of,
)
from sksketch.ridge import StreamingRidge, StreamingRidgeCV
from sksketch.run import Progress
from sksketch.sketches import Sketch
from sksketch.tables import TableEncoder
from sksketch.time import StreamingOutlierDetector

# Components or coefficients that are printed; --json has all of them.
MOST_LINES = 10
# Components whose loadings are printed.
MOST_LOADINGS = 3


@contextmanager
def stage_bars(shown: bool = True) -> Iterator[Any]:
    """Yield a function of a stage, its rows done and its rows in all, which shows one bar each."""
    with ProgressBar(
        TextColumn("{task.description:>10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not shown,
    ) as bars:
        tasks: dict[str, Any] = {}

        def show(stage: str, n_done: int, n_rows: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=n_rows, completed=n_done, rate="")
                return
            speed = bars.tasks[tasks[stage]].speed
            rate = f"{speed:,.0f} rows/s" if speed else ""
            bars.update(tasks[stage], completed=n_done, rate=rate)

        yield show


@contextmanager
def progress_bar(shown: bool, what: str = "rows") -> Iterator[Progress]:
    """Show one bar on stderr: rows, rows per second and the time left."""
    with stage_bars(shown) as show:
        yield lambda n_done, n_rows: show(what, n_done, n_rows)


def say(run: Run, message: str) -> None:
    """Put a note on stderr unless the user wants silence."""
    if not run.quiet:
        echo(message, err=True)


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Let warnings of the library be lines on stderr, without the code that gave them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        echo(f"sksketch: warning: {warning.message}", err=True)


def print_model(saved: Saved, file: str, as_json: bool, inference: bool = False) -> None:
    """Print what a saved sketch or estimator is, has seen, certifies and has found."""
    model = saved.model
    if isinstance(model, ONLINE):
        _print_online(saved, file, as_json)
        return
    if isinstance(model, PLAIN):
        _print_plain(saved, file, as_json)
        return
    if isinstance(model, TableEncoder):
        _print_encoder(model, file, as_json)
        return
    sketch = model if isinstance(model, Sketch) else model.sketch_
    facts: dict[str, Any] = {
        "file": file,
        "kind": model.kind,
        "rows seen": sketch.n_rows_seen,
        "columns": sketch.n_features,
        "plan": sketch.plan() if model is sketch else model.plan_,
    }
    certificate = None
    if sketch.n_features is not None:
        certificate = sketch.certificate() if model is sketch else model.certificate_
    with warnings_in_one_line():
        found = {} if model is sketch else _findings(saved)
        if inference:
            errors = named(model.inference(), saved.names)
            found["inference"] = record_of(errors)
    if as_json:
        record = {name.replace(" ", "_"): value for name, value in facts.items()}
        record["certificate"] = None if certificate is None else asdict(certificate)
        if saved.names is not None:
            record["feature_names"] = saved.names
        print_json(record | found | table_facts(saved))
        return
    print_facts(facts, as_json=False)
    echo()
    for line in str(certificate or "nothing to certify: no rows yet").splitlines():
        echo(line)
    if isinstance(model, StreamingRidge | StreamingRidgeCV):
        if inference:
            _print_errors(errors)
        else:
            _print_coefficients(found, saved.names)
        echo()
        _print_quality(model)
    elif isinstance(model, StreamingOutlierDetector):
        echo()
        print_facts(found, as_json=False)
    elif found:
        _print_components(found)
    print_table(saved)


def _print_errors(found: Inference) -> None:
    """Print the table of standard errors."""
    echo()
    for line in str(found).splitlines():
        echo(line)


def _print_encoder(model: TableEncoder, file: str, as_json: bool) -> None:
    """Print what an encoder has seen, and what becomes of every column."""
    facts: dict[str, Any] = {
        "file": file,
        "kind": model.kind,
        "rows seen": model.n_samples_seen_,
        "columns": model.n_features_in_,
        "features": model.n_features_out_,
    }
    saved = Saved(model, None, encoder=model)
    print_facts(facts | table_facts(saved) if as_json else facts, as_json)
    if not as_json:
        print_table(saved)


def _findings(saved: Saved) -> dict[str, Any]:
    model: Any = saved.model
    if isinstance(model, StreamingRidge | StreamingRidgeCV):
        return {
            "quality": quality_of(model) | {"training_r2_interval": model.r2_interval_},
            "alpha": model.alpha if isinstance(model, StreamingRidge) else model.alpha_,
            "intercept": model.intercept_,
            "coef": model.coef_,
            "coef_error_bound": model.coef_error_bound_,
        }
    if isinstance(model, StreamingOutlierDetector):
        return {
            "offset": model.offset_,
            "offset_rank_error": model.offset_rank_error_,
            "contamination": model.contamination,
            "flagged": model.n_flagged_,
        }
    return {
        "explained_variance": model.explained_variance_,
        "explained_variance_ratio": model.explained_variance_ratio_,
        "singular_values": model.singular_values_,
        "target_met": model.target_met_,
        "loadings": _loadings(saved),
    }


def _loadings(saved: Saved) -> list[dict[str, float]]:
    """Return the largest loadings of each component, by name; of standard columns if asked for."""
    found = Findings(saved.model, saved.names)
    return [dict(found.largest(component, MOST_LINES)) for component in found.components]


def _print_quality(model: Estimator) -> None:
    for name, numbers in quality_of(model).items():
        echo(f"{name:<12} {quality_text(name, numbers)}")


def online_facts(saved: Saved, file: str) -> dict[str, Any]:
    """Return what an online model is, how it has predicted and its largest coefficients."""
    model, found = saved.model, OnlineFindings(saved.model, saved.names)
    facts: dict[str, Any] = {
        "file": file,
        "kind": model.kind,
        "method": model.method,
        "loss": model.loss,
        "rows_seen": model.n_samples_seen_,
        "columns": model.n_features_in_,
        "online_error": found.error,
        "baseline_error": found.baseline,
        "mean_loss": found.mean_loss,
        "ridge": found.ridges if len(found.ridges) > 1 else found.ridges[0],
        "coefficients": found.n_coefficients,
        "intercept": model.intercept_,
    }
    if found.baseline is None:
        del facts["baseline_error"]
    if quality := quality_of(model):
        facts["quality"] = quality
    largest = {
        outcome: dict(found.largest(i, MOST_LINES)) for i, outcome in enumerate(found.outcomes)
    }
    return facts | {"largest": largest} | table_facts(saved)


def _print_online(saved: Saved, file: str, as_json: bool) -> None:
    facts = online_facts(saved, file)
    if as_json:
        print_json(facts)
        return
    largest, intercepts = facts.pop("largest"), np.atleast_1d(facts.pop("intercept"))
    for name in table_facts(saved):
        del facts[name]
    shown = "{:.2%}" if OnlineFindings(saved.model).classifies else "{:.6g}"
    facts["online_error"] = shown.format(facts["online_error"])
    if "baseline_error" in facts:
        facts["baseline_error"] = shown.format(facts["baseline_error"])
    facts["mean_loss"] = f"{facts['mean_loss']:.6g}"
    ends = {f"{end:.6g}" for end in (np.min(facts["ridge"]), np.max(facts["ridge"]))}
    facts["ridge"] = " to ".join(sorted(ends, key=float))
    short = {"baseline_error": "baseline"}
    facts.pop("quality", None)
    shortened = {short.get(name, name.replace("_", " ")): facts[name] for name in facts}
    print_facts(shortened, as_json=False)
    _print_quality(saved.model)
    _print_largest(largest, intercepts)
    print_table(saved)


def _print_plain(saved: Saved, file: str, as_json: bool) -> None:
    """Print what a kernel model, a reduction or a model learned on one is and has found."""
    found = plain_findings(saved.model, saved.names)
    facts = {"file": file, "kind": saved.model.kind, **found.facts}
    if as_json:
        record: dict[str, Any] = {name.replace(" ", "_"): value for name, value in facts.items()}
        if found.values is not None:
            record[f"{found.values[0].replace(' ', '_')}s"] = found.values[1]
        record |= {"largest": found.largest} if found.largest else {}
        if found.intervals is not None:
            record["intervals"] = found.intervals
        if found.inference is not None:
            record["inference"] = record_of(found.inference)
        quality = quality_of(saved.model)
        print_json(record | ({"quality": quality} if quality else {}) | table_facts(saved))
        return
    intercepts = facts.pop("intercept", [])
    for name, value in facts.items():
        text = _shown(value)
        echo(f"{name:<20} {text}")
    if found.values is not None:
        quantity, values = found.values
        echo()
        echo(f"{'number':<8} {quantity}")
        for i, value in enumerate(values[:MOST_LINES]):
            ends = ""
            if found.intervals is not None:
                ends = "  from {:.6g} to {:.6g}".format(*found.intervals[i])
            echo(f"{i + 1:<8} {value:.6g}{ends}")
        if len(values) > MOST_LINES:
            echo(f"... {len(values) - MOST_LINES} more")
    if found.inference is not None:
        _print_errors(found.inference)
    _print_quality(saved.model)
    _print_largest(found.largest, intercepts)
    print_table(saved)


def _print_largest(largest: dict[str, dict[str, float]], intercepts: Any) -> None:
    """Print the intercept and the coefficients of largest size for each outcome."""
    for (outcome, entries), intercept in zip(largest.items(), intercepts, strict=False):
        width = max(map(len, ["intercept   ", *entries]))
        echo()
        echo(f"{'for':<{width}} {outcome}")
        for name, value in {"intercept": intercept, **entries}.items():
            echo(f"{name:<{width}} {value:.6g}")


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _print_components(found: dict[str, Any]) -> None:
    echo()
    echo("component     variance   share")
    pairs = zip(found["explained_variance"], found["explained_variance_ratio"], strict=True)
    for number, (variance, share) in enumerate(pairs, start=1):
        if number > MOST_LINES:
            echo(f"... {len(found['explained_variance']) - MOST_LINES} more")
            break
        echo(f"{number:<9} {variance:>12.5g}  {share:>6.1%}")
    # Ten numbers say what a component is made of; --json has those of all components.
    for number, loadings in enumerate(found["loadings"][:MOST_LOADINGS], start=1):
        echo()
        echo(f"largest loadings of component {number}")
        width = max(map(len, loadings), default=0)
        for name, value in loadings.items():
            echo(f"{name:<{width}} {value:>9.4f}")


def _print_coefficients(found: dict[str, Any], names: list[str] | None) -> None:
    for coef, intercept in zip(
        np.atleast_2d(found["coef"]), np.atleast_1d(found["intercept"]), strict=True
    ):
        echo()
        echo(f"intercept    {intercept:.6g}")
        largest = np.argsort(-np.abs(coef), kind="stable")[:MOST_LINES]
        for i in largest:
            echo(f"{names[i] if names else f'column {i}':<12} {coef[i]:.6g}")
        if len(coef) > MOST_LINES:
            echo(f"... {len(coef) - MOST_LINES} smaller ones")
    echo()
    echo(f"coefficient error at most {found['coef_error_bound']:.3g} of their length")


def print_facts(facts: dict[str, Any], as_json: bool) -> None:
    """Print names and values, one per line or as JSON."""
    if as_json:
        print_json({name.replace(" ", "_"): value for name, value in facts.items()})
        return
    for name, value in facts.items():
        text = f"{value:,}" if isinstance(value, int) else str(value or "unknown")
        echo(f"{name:<12} {text}")


def print_json(record: dict[str, Any]) -> None:
    """Print one JSON object; an infinite bound is the text "inf"."""
    echo(json.dumps(_plain(record), allow_nan=False))


def _plain(value: object) -> Any:
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
