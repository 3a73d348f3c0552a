"""The help of the commands: their examples, and their options under headings."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections import defaultdict
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from sksketch.cli.options import PANELS
from sksketch.cli.printing import echo

EXAMPLES = {
    "pca": [
        "sksketch pca rows.parquet -k 5 -o model.sks",
        "sksketch pca days/*.csv -k 0.9 --missing mean --json -o model.sks",
        "sksketch pca rows.parquet -k 5 --standardize -o model.sks",
        "sksketch pca rows.parquet -k 5 --memory 2GB -o model.sks",
        "cat rows.csv | sksketch pca - -k 2 -o model.sks",
        "sksketch pca days/*.csv -k 5 --workers 2 -o model.sks",
        "sksketch pca rows.parquet -k 5 --window 1000 -o model.sks",
    ],
    "svd": ["sksketch svd counts.svm -k 5 --sketch sfd -o model.sks"],
    "ridge": [
        "sksketch ridge rows.parquet --target y --alpha 10 -o model.sks",
        "sksketch ridge rows.csv --target y --alpha auto --standardize --holdout 0.1 -o model.sks",
        "sksketch ridge rows.csv --target y --columns a,b --no-intercept -o model.sks",
    ],
    "online": [
        "sksketch online clicks.vw -o model.sks",
        "sksketch online labels.svm --loss hinge --no-normalize --passes 2 -o model.sks",
        "sksketch online rows.csv --target y --task regress -o model.sks",
        "cat clicks.vw | sksketch online - --format vw --classes=-1,1 -o model.sks",
    ],
    "kpca": [
        "sksketch kpca rows.parquet -k 5 -o model.sks",
        "sksketch kpca rows.csv --kernel matern --parameter nu=2.5 --landmarks 300 -o model.sks",
        "sksketch kpca rows.parquet -k 5 --solver sgd --polish 2 -o model.sks",
    ],
    "kcca": ["sksketch kcca rows.csv --other a,b -k 2 --ridge 1e-4 -o model.sks"],
    "reduce": [
        "sksketch reduce counts.svm -k 5 -o subspace.sks --coordinates few.parquet",
        "sksketch reduce labels.svm --task classify --loss logistic -o model.sks",
        "sksketch reduce rows.csv --target y --task regress -o model.sks",
    ],
    "sketch": [
        "sksketch sketch part1.parquet -o a.sks",
        "sksketch sketch part2.parquet -o b.sks",
        "sksketch sketch part1.parquet --for ridge --target y -o a.sks",
        "sksketch sketch part2.parquet --sketch rfd --size 64 --shard 1 --shards 8 -o 1.sks",
    ],
    "merge": ["sksketch merge a.sks b.sks -o all.sks", "sksketch pca all.sks -k 5 -o model.sks"],
    "apply": [
        "sksketch apply model.sks rows.parquet -o scores.npy",
        "sksketch apply model.sks rows.csv -o - | head -3",
    ],
    "compare": ["sksketch compare a.sks b.sks"],
    "anomalies": [
        "sksketch anomalies rows.csv --top 5",
        "sksketch anomalies rows.csv --id y --save detector.sks",
    ],
    "archive add": [
        "sksketch archive add kept a.sks --from 2026-03-01 --to 2026-03-02",
    ],
    "archive query": [
        "sksketch archive query kept --from 2026-03-01 --to 2026-03-02 -o some.sks",
    ],
    "archive list": ["sksketch archive list kept"],
    "info": ["sksketch info model.sks", "sksketch info model.sks --json"],
    "report": [
        "sksketch report model.sks -o report.html",
        "sksketch report b.sks --before a.sks -o report.html",
    ],
    "tour": ["sksketch tour --json"],
}


# What a command does, in as many words as its line in the list of all has room for.
SHORT = {
    "pca": "Find principal components in one pass.",
    "svd": "Find a truncated SVD in one pass.",
    "ridge": "Learn a ridge regression in one pass.",
    "online": "Learn a classifier or regression row by row.",
    "kpca": "Find kernel principal components in flat memory.",
    "kcca": "Find functions of two views that correlate most.",
    "reduce": "Reduce very many columns to few coordinates.",
    "sketch": "Sketch rows into a small file, to merge and read.",
    "merge": "Merge saved sketches or models into one.",
    "apply": "Write the scores or predictions of rows.",
    "compare": "Say what certainly changed between two files.",
    "anomalies": "List the rows that do not fit the others.",
    "info": "Print what a saved file certifies.",
    "report": "Write a page about what a saved file holds.",
    "tour": "See it work on a matrix that is never in memory.",
}

BEGINNING = """\
Learn from tables larger than memory, in one pass, with an error bound to read.

  sksketch pca rows.csv -k 5 -o model.sks              principal components
  sksketch ridge rows.csv --target price -o model.sks  a regression
  sksketch online rows.csv --target churn -o model.sks a classifier
  sksketch apply model.sks new.csv -o predictions.csv  what it says of rows
  sksketch anomalies rows.csv --top 10                 rows that do not fit
  sksketch compare march.sks april.sks                 what changed
  sksketch report model.sks -o report.html             a page to read and share
  sksketch tour                                        see it work

sksketch --help lists all commands, sksketch COMMAND --help its options."""


class PlainCommand(TyperCommand):
    """A command whose help has its options under the headings of their panels, in plain text."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, one heading after the other."""
        found = defaultdict(list)
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                found[_heading(parameter)].append(record)
        if len(found.keys() & set(PANELS)) == 1:
            # A few options of one kind need no heading of their own.
            (only,) = found.keys() & set(PANELS)
            found["Options"] = found.pop(only) + found["Options"]
        for heading in ("Arguments", *PANELS, "Options"):
            if heading in found:
                with formatter.section(heading):
                    formatter.write_dl(found[heading])


def _heading(parameter: object) -> str:
    if getattr(parameter, "param_type_name", None) == "argument":
        return "Arguments"
    return getattr(parameter, "rich_help_panel", None) or "Options"


def _print_version(asked: bool) -> None:
    if asked:
        from sksketch import __version__

        echo(f"sksketch {__version__}")
        raise typer.Exit


def before_commands(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command; each does its work where it is read."""


def epilog(command: str) -> str:
    """Return the examples of a command for the end of its help."""
    # The first character keeps the lines apart.
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in EXAMPLES[command])


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose dataclass arguments are options of their own, one per field."""
    hints = get_type_hints(command, include_extras=True)
    groups = {n: h for n, h in hints.items() if dataclasses.is_dataclass(h)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _fields(groups[name])
        else:
            parameters.append(_keyword(name, hints[name], parameter.default))
    order: dict[str, list[str]] = {
        name: [f.name for f in dataclasses.fields(group)] for name, group in groups.items()
    }

    @functools.wraps(command)
    def flat(**values: object) -> None:
        made: dict[str, Any] = {}
        for name, group in groups.items():
            build: Any = group
            made[name] = build(**{field: values.pop(field) for field in order[name]})
        command(**values, **made)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {p.name: p.annotation for p in parameters}
    del flat.__wrapped__
    return flat


def _fields(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    missing, empty = dataclasses.MISSING, inspect.Parameter.empty
    return [
        _keyword(f.name, hints[f.name], empty if f.default is missing else f.default)
        for f in dataclasses.fields(group)
    ]


def _keyword(name: str, annotation: object, default: object) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
