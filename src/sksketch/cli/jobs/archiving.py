"""Archives of saved states, and what changed between two of them."""

from __future__ import annotations

import json
from dataclasses import replace as replaced
from typing import Any

import typer

from sksketch.cli.options import check_place
from sksketch.cli.printing import echo
from sksketch.cli.saving import STDOUT, Saved, are_alike, blaming, check_alike, read, write
from sksketch.cli.show import print_model
from sksketch.sketches.windows.times import as_moment, shown
from sksketch.time import Archive, Comparison
from sksketch.time import compare as compare_states
from sksketch.time.archive import is_archive

# Periods of an archive that a report shows.
MOST_PERIODS = 100


def moment(text: str | None) -> Any:
    """Return a time as the user has typed it: a number or a date.

    >>> moment("3.5"), moment("2026-03-01"), moment(None)
    (3.5, '2026-03-01', None)
    """
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def add_file(archive: str, file: str, start: str, end: str, *, replace: bool) -> None:
    """Add a saved state to an archive."""
    with blaming(file):
        saved = read(file)
    kept = Archive(archive)
    if len(kept) and not are_alike(saved, Saved(None, None, kept.encoder())):
        raise typer.BadParameter(
            f"{file} is not in the units of {archive}, whose tables were encoded otherwise; learn "
            f"it with --like {archive}"
        )
    period = moment(start), moment(end)
    kept.add(saved.model, *period, replace=replace, encoder=saved.encoder)
    n_periods = len(kept)
    echo(f"{archive} has {n_periods:,} period{'s' if n_periods > 1 else ''}", err=True)


def query_range(
    archive: str, output: str, start: str | None, end: str | None, *, as_json: bool
) -> None:
    """Save what the periods of a range are merged to."""
    check_place(output)
    with blaming(archive):
        saved = of_range(archive, start, end)
        write(saved, output)
        if output != STDOUT:
            print_model(saved, output, as_json)


def of_range(archive: str, start: str | None, end: str | None) -> Saved:
    """Return what the periods of a range are merged to."""
    kept = Archive(archive)
    return _saved(kept, kept.query(moment(start), moment(end)))


def _saved(kept: Archive, model: Any) -> Saved:
    encoder = kept.encoder()
    names = getattr(model if encoder is None else None, "feature_names_in_", None)
    names = names if encoder is None else encoder.get_feature_names_out()
    return Saved(model, None if names is None else [str(name) for name in names], encoder)


def since_the_last_gap(archive: str) -> Saved:
    """Return what the periods are merged to that no time is missing between, up to the last."""
    periods = Archive(archive).periods()
    gaps = [i for i in range(1, len(periods)) if periods[i - 1][1] != periods[i][0]]
    kept = Archive(archive)
    start = periods[gaps[-1]][0] if gaps else None
    return _saved(kept, kept.query(start, None))


def drift_of(archive: str, names: list[str] | None, before: Any) -> list[tuple[str, Comparison]]:
    """Return the last periods with what changed in each since a state, or since the first."""
    kept = Archive(archive)
    periods = kept.periods()[-MOST_PERIODS:]
    base = kept.query(*periods.pop(0)) if before is None else before
    return [
        (_shown(period[0]), _named(compare_states(base, kept.query(*period)), names))
        for period in periods
    ]


def list_all(archive: str, *, as_json: bool) -> None:
    """Print the periods of an archive."""
    if not is_archive(archive):
        raise typer.BadParameter(f"there is no archive here; check the path: {archive}")
    periods = [tuple(_shown(moment) for moment in period) for period in Archive(archive).periods()]
    if as_json:
        echo(json.dumps([{"from": start, "to": end} for start, end in periods]))
        return
    for start, end in periods:
        echo(f"{start} to {end}")


def _shown(moment: Any) -> str:
    return shown(*as_moment(moment))


def compare_files(
    before: str, after: str, confidence: float | None, kurtosis: float, *, as_json: bool
) -> None:
    """Print what changed between two saved states."""
    with blaming(f"{before} or {after}"):
        one, other = read(before), read(after)
        check_alike(one, other, before, after)
        if None not in (one.names, other.names) and one.names != other.names:
            raise typer.BadParameter(_difference(before, after, one, other))
        found = compare_states(one.model, other.model, confidence=confidence, kurtosis=kurtosis)
        found = _named(found, one.names or other.names)
        for line in [json.dumps(as_plain(found))] if as_json else str(found).splitlines():
            echo(line)


def _difference(before: str, after: str, one: Saved, other: Saved) -> str:
    """Say in which columns two files differ."""
    mine, theirs = one.names or [], other.names or []
    only = [[n for n in a if n not in b] for a, b in ((mine, theirs), (theirs, mine))]
    parts = [
        f"only {file} has {', '.join(names[:5])}"
        for file, names in zip((before, after), only, strict=True)
        if names
    ]
    return f"{before} and {after} are of other columns: {'; '.join(parts) or 'another order'}"


def _named(found: Comparison, names: list[str] | None) -> Comparison:
    """Return the record with the names that a file has, where columns had numbers."""
    numbers = {str(i) for i in range(len(found.columns))}
    if names is None or {column.name for column in found.columns} != numbers:
        return found
    columns = [column._replace(name=names[int(column.name)]) for column in found.columns]
    return replaced(found, columns=columns)


def as_plain(found: Comparison) -> dict[str, Any]:
    """Return a comparison as values of JSON."""
    plain: dict[str, Any] = {
        "distinguishable": found.distinguishable,
        "confidence": found.confidence,
        "largest_change": list(found.largest_change),
        "n_changed": found.n_changed,
        "error": found.error,
        "allowance": None if found.allowance == float("inf") else found.allowance,
        "changes": found.changes.tolist(),
        "angles": found.angles.tolist(),
        "rows": list(found.n_rows),
        "columns": [_plain_column(column._asdict()) for column in found.columns],
    }
    if found.mean_shift is not None:
        plain["means_moved"] = int(found.mean_shift.certain.sum())
    if found.coefficients is not None:
        plain["coefficients_changed"] = int(found.coefficients.certain.sum())
    return plain


def _plain_column(column: dict[str, Any]) -> dict[str, Any]:
    """Return a column without what JSON has no number for."""

    def finite(value: Any) -> Any:
        if isinstance(value, tuple):
            return [finite(part) for part in value]
        return None if isinstance(value, float) and not abs(value) < float("inf") else value

    return {name: finite(value) for name, value in column.items()}
