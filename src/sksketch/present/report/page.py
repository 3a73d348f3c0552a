"""The page: what a file is, what it has seen, what is certain and what it has found."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import Any, NamedTuple

from sksketch.decomposition import StreamingPCA, StreamingSVD
from sksketch.models.base import Estimator
from sksketch.online import OnlineNewtonClassifier, OnlineNewtonRegressor
from sksketch.present.findings import (
    ONLINE,
    PLAIN,
    Findings,
    OnlineFindings,
    inference_of,
    plain_findings,
)
from sksketch.present.report import (
    changes,
    formatting,
    html,
    kernel_and_reduction,
    online,
    sections,
)
from sksketch.present.report.formatting import ROUNDING, number, percent, plural
from sksketch.ridge import StreamingRidge, StreamingRidgeCV
from sksketch.sketches import Centered, Regression, Sketch
from sksketch.tables import TableEncoder
from sksketch.tables.encodings import ColumnPlan
from sksketch.time import Comparison, StreamingOutlierDetector, compare

TITLES: dict[Any, str] = {
    StreamingPCA: "Principal components",
    StreamingSVD: "Singular value decomposition",
    StreamingRidge: "Ridge regression",
    StreamingRidgeCV: "Ridge regression",
    OnlineNewtonClassifier: "Online classifier",
    OnlineNewtonRegressor: "Online regression",
    StreamingOutlierDetector: "Rows that do not fit",
}
# Nothing is fetched and nothing runs; the policy makes a browser enforce it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Source(NamedTuple):
    """The origin of a model: its file, how far an unfinished run had come, and its table."""

    name: str
    n_bytes: int
    rows_done: int | None = None
    # What became of the columns of the table that the rows were made of.
    columns: Mapping[str, ColumnPlan] | None = None


def render(
    model: Estimator | Sketch,
    source: Source,
    names: Sequence[str] | None = None,
    before: Estimator | Sketch | None = None,
    drift: Sequence[tuple[str, Comparison]] = (),
) -> str:
    """Return the page about a sketch or a fitted estimator.

    Parameters
    ----------
    model : estimator or Sketch
        As it was saved.
    source : Source
        Its file.
    names : sequence of str, optional
        Names of the columns.
    before : estimator or Sketch, optional
        An earlier state, to say what changed since.
    drift : sequence of (str, Comparison), optional
        Periods of an archive, each with its start and what changed in it.

    Returns
    -------
    str
        One HTML document, the same for the same file.

    Examples
    --------
    >>> from sksketch import FrequentDirections
    >>> page = render(FrequentDirections(2), Source("empty.sks", 1000))
    >>> "has seen no rows yet" in page
    True
    """
    if isinstance(model, ONLINE):
        return _online(model, source, names)
    if isinstance(model, PLAIN):
        return _plain(model, source, names)
    if isinstance(model, TableEncoder):
        return _table(model, source)
    sketch = model if isinstance(model, Sketch) else model.sketch_
    with warnings.catch_warnings():
        # What a bound that says nothing would warn of is said on the page.
        warnings.simplefilter("ignore")
        if sketch.n_features is None:
            empty = html.paragraph("This file has seen no rows yet, so there is nothing to show.")
            return _document(_header(model, sketch, source, None), empty, source)
        found = Findings(model, names)
        parts = [sections.certificate(found), sections.spectra(found)]
        if before is not None:
            parts.insert(0, changes.section(compare(before, model), names))
        if drift:
            parts.insert(0, changes.drift(drift))
        if found.is_regression:
            errors = inference_of(model, None if names is None else list(names))
            tables = [] if errors is None else [kernel_and_reduction.standard_errors(errors)]
            parts = [sections.regression(found), *tables, sections.paths(found), *parts]
        else:
            parts.append(sections.loadings(found))
        parts.append(_run(model, sketch, source))
        return _document(_header(model, sketch, source, found), "".join(parts), source)


def _online(model: Estimator, source: Source, names: Sequence[str] | None) -> str:
    found = OnlineFindings(model, names)
    n_rows, n_columns = int(model.n_samples_seen_), int(model.n_features_in_)
    seen = f"{plural(n_rows, 'row')} of {plural(n_columns, 'column')}"
    figures = [("Rows", f"{n_rows:,}"), ("Columns", f"{n_columns:,}"), *online.figures(found)]
    entries = [
        ("File", source.name),
        ("Size", f"{source.n_bytes:,} bytes"),
        ("Kind", f"{model.kind}, version {model.version}"),
    ]
    run = html.card(html.facts(entries), _settings(model, {}))
    body = online.predictions(found) + online.coefficients(found)
    body += html.section("run", "The run", run)
    return _document(_top(model, source, seen, figures), body, source)


def _table(model: TableEncoder, source: Source) -> str:
    n_rows, n_columns = model.n_samples_seen_, model.n_features_in_
    seen = f"{plural(n_rows, 'row')} of {plural(n_columns, 'column')}"
    figures = [("Rows", f"{n_rows:,}"), ("Columns", f"{n_columns:,}")]
    figures.append(("Features", f"{model.n_features_out_:,}"))
    entries = [
        ("File", source.name),
        ("Size", f"{source.n_bytes:,} bytes"),
        ("Kind", f"{model.kind}, version {model.version}"),
    ]
    run = html.card(html.facts(entries), _settings(model, {}))
    body = html.section("run", "The run", run)
    source = source._replace(columns=model.columns_)
    return _document(_top(model, source, seen, figures, "Table encoder"), body, source)


def _columns(columns: Mapping[str, ColumnPlan]) -> str:
    """Return what became of every column of a table."""
    rows = [(name, plan.kind, plan.text) for name, plan in columns.items()]
    table = html.table(("column", "kind", "became"), rows, "Columns of the table")
    return html.section("columns", "The columns of the table", html.card(table))


def _plain(model: Estimator, source: Source, names: Sequence[str] | None) -> str:
    found = plain_findings(model, None if names is None else list(names))
    entries = [
        ("File", source.name),
        ("Size", f"{source.n_bytes:,} bytes"),
        ("Kind", f"{model.kind}, version {model.version}"),
    ]
    run = html.section("run", "The run", html.card(html.facts(entries), _settings(model, {})))
    seen = plural(int(getattr(model, "n_features_in_", 0)), "column")
    n_rows = found.facts.get("rows seen")
    if n_rows is not None:
        seen = f"{plural(n_rows, 'row')} of {seen}"
    header = _top(model, source, seen, kernel_and_reduction.figures(found), found.title)
    return _document(header, kernel_and_reduction.body(found) + run, source)


def _document(header: str, body: str, source: Source) -> str:
    if source.columns is not None:
        body += _columns(source.columns)
    style = files("sksketch.present.report").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(source.name)}</title>\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n{header}\n<main>\n{body}\n</main>\n"
        f"<footer>scikit-sketch {version('scikit-sketch')}</footer>\n</body>\n</html>\n"
    )


def _header(model: object, sketch: Sketch, source: Source, found: Findings | None) -> str:
    n_columns = sketch.n_features or 0
    seen = f"{plural(sketch.n_rows_seen, 'row')} of {plural(n_columns, 'column')}"
    figures = [("Rows", f"{sketch.n_rows_seen:,}"), ("Columns", f"{n_columns:,}")]
    if found is not None:
        figures += _main_figures(found)
    plain = "" if found is None else formatting.in_short(found)
    return _top(model, source, f"{seen}, seen once", figures, plain=plain)


def _top(
    model: object,
    source: Source,
    seen: str,
    figures: list[tuple[str, str]],
    title: str = "",
    plain: str = "",
) -> str:
    title = title or TITLES.get(type(model), "Sketch")
    lead = f"{type(model).__name__}: {seen}."
    if source.rows_done is not None:
        so_far = seen.removesuffix(", seen once")
        lead = f"{type(model).__name__}, an unfinished run: {so_far} so far."
    return (
        f'<header><p class="kicker"><bdi>{escape(source.name)}</bdi></p><h1>{title}</h1>'
        f"{html.paragraph(plain, 'plain') if plain else ''}{html.paragraph(lead, 'lede')}"
        f"{html.facts(figures, 'figures')}</header>"
    )


def _main_figures(found: Findings) -> list[tuple[str, str]]:
    if found.is_regression:
        bound = found.model.coef_error_bound_
        return [("Penalty", number(found.alpha)), ("Coefficient error", _at_most(bound))]
    error = found.certificate.relative_error
    return [("Components", f"{found.n_components:,}"), ("Certified error", _at_most(error))]


def _at_most(error: float) -> str:
    if math.isinf(error):
        return "unknown"
    return "exact" if error < ROUNDING else f"≤ {percent(error, direction=1)}"


def _run(model: Estimator | Sketch, sketch: Sketch, source: Source) -> str:
    """Return the figures of the run and its settings."""
    inner = _innermost(sketch)
    entries = [
        ("File", source.name),
        ("Size", f"{source.n_bytes:,} bytes"),
        ("Kind", f"{model.kind}, version {model.version}"),
        ("Rows seen", f"{sketch.n_rows_seen:,}"),
        ("Columns", f"{sketch.n_features:,}"),
        ("Precision", str(sketch.dtype)),
        ("Sketch", type(inner).__name__),
    ]
    if sketch.total_weight != sketch.n_rows_seen:
        entries.append(("Total weight", number(sketch.total_weight, 6)))
    meta = inner.state().meta
    labels = {"sketch_size": "Sketch size", "ledger.n_shrinks": "Shrinks", "shard": "Shard"}
    for name, label in labels.items():
        value = meta.get(name, meta.get(f"option.{name}"))
        if value is not None:
            entries.append((label, f"{value:,}"))
    if isinstance(sketch, Regression) and sketch.target_shape is not None:
        entries.append(("Targets", str(sketch.target_shape[0] if sketch.target_shape else 1)))
    return html.section(
        "run",
        "The run",
        html.card(
            html.paragraph(sketch.plan()),
            html.facts(entries),
            _settings(model, meta),
        ),
    )


def _settings(model: Estimator | Sketch, meta: Mapping[str, object]) -> str:
    """Return what was asked for, to unfold."""
    params = {} if isinstance(model, Sketch) else model.get_params(deep=False)
    rows = [
        [name, json.dumps(value, default=_in_words)]
        for name, value in sorted(params.items())
        if not isinstance(value, Sketch)
    ]
    options = [(name, value) for name, value in sorted(meta.items()) if name.startswith("option.")]
    rows += [[f"sketch: {n.removeprefix('option.')}", json.dumps(value)] for n, value in options]
    if not rows:
        return ""
    table = html.table(["Setting", "Value"], rows, "Settings of the model and its sketch")
    return f"<details><summary>Settings</summary>{table}</details>"


def _in_words(value: Any) -> object:
    """Return what JSON can say of an array."""
    return value.tolist() if getattr(value, "size", 0) <= 20 else f"array of shape {value.shape}"


def _innermost(sketch: Sketch) -> Sketch:
    while isinstance(sketch, Regression | Centered):
        sketch = sketch.sketch
    return sketch
