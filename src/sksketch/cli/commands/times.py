"""The commands archive, compare and anomalies: what changed, and what does not fit."""

from __future__ import annotations

from typing import Annotated

import typer

from sksketch.cli.options import Json, Output, Rows, in_model, in_run

Directory = Annotated[str, typer.Argument(metavar="ARCHIVE", help="Directory of the archive.")]
Start = Annotated[str, in_run("--from", metavar="TIME", help="Start of the period.")]
End = Annotated[str, in_run("--to", metavar="TIME", help="Its end, which is not part of it.")]


def add(
    archive: Directory,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A saved sketch or model.")],
    start: Start,
    end: End,
    replace: Annotated[
        bool, in_run("--replace", help="Replace the state of exactly this period.")
    ] = False,
) -> None:
    """Add the saved state of a period; the archive has it as a whole or not at all."""
    from sksketch.cli.jobs.archiving import add_file

    add_file(archive, file, start, end, replace=replace)


def query(
    archive: Directory,
    output: Output,
    start: Annotated[
        str | None, in_run("--from", metavar="TIME", help="Where a period begins.")
    ] = None,
    end: Annotated[
        str | None, in_run("--to", metavar="TIME", help="Where one ends; by default all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Merge the states of a range of periods into one file."""
    from sksketch.cli.jobs.archiving import query_range

    query_range(archive, output, start, end, as_json=as_json)


def list_periods(archive: Directory, as_json: Json = False) -> None:
    """List the periods of an archive."""
    from sksketch.cli.jobs.archiving import list_all

    list_all(archive, as_json=as_json)


def compare(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A saved sketch or model.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="One of later rows.")],
    confidence: Annotated[
        float,
        in_run(
            min=0.0,
            max=1.0,
            metavar="P",
            help="Probability that nothing is called a change that is none; 0 is about the rows "
            "themselves.",
        ),
    ] = 0.99,
    kurtosis: Annotated[
        float, in_run(min=1.0, help="Largest kurtosis of the rows; more for heavier tails.")
    ] = 3.0,
    as_json: Json = False,
) -> None:
    """Say what certainly changed from one saved state to another."""
    from sksketch.cli.jobs.archiving import compare_files

    compare_files(before, after, confidence or None, kurtosis, as_json=as_json)


def anomalies(
    rows: Rows,
    model: Annotated[
        str | None,
        in_model(metavar="FILE", help="A saved detector; without one it is learned first."),
    ] = None,
    contamination: Annotated[
        float, in_model(min=0.0, max=0.5, metavar="P", help="Part of the rows that are outliers.")
    ] = 0.01,
    top: Annotated[int, in_model(min=1, metavar="N", help="Rows to list.")] = 10,
    ids: Annotated[
        list[str] | None,
        in_model("--id", metavar="NAME", help="Column that tells a row; can be repeated."),
    ] = None,
    save: Annotated[
        str | None, in_run("--save", metavar="FILE", help="Save the detector that was learned.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the rows that do not fit the others, and the columns that make them outliers."""
    from sksketch.cli.jobs.anomalous import list_anomalies

    list_anomalies(rows, model, contamination, top, ids or [], save, as_json=as_json)
