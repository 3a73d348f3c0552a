"""The options that commands share, and the examples of their help."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from sksketch.sketches.catalog import KEYS
from sksketch.state.disk import is_same

EXAMPLES = {
    "pca": [
        "sksketch pca rows.parquet -k 5 -o model.sks",
        "sksketch pca days/*.csv -k 0.9 --missing mean --json -o model.sks",
        "sksketch pca rows.parquet -k 5 --standardize -o model.sks",
        "sksketch pca rows.parquet -k 5 --memory 2GB -o model.sks",
        "cat rows.csv | sksketch pca - -k 2 -o model.sks",
        "sksketch pca days/*.csv -k 5 --workers 2 -o model.sks",
    ],
    "svd": ["sksketch svd counts.svm -k 5 --sketch sfd -o model.sks"],
    "ridge": [
        "sksketch ridge rows.parquet --target y --alpha 10 -o model.sks",
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
    "info": ["sksketch info model.sks", "sksketch info model.sks --json"],
    "report": ["sksketch report model.sks -o report.html"],
    "tour": ["sksketch tour --json"],
}


SKETCHES = ["auto", *KEYS]


def known_sketches(incomplete: str) -> list[str]:
    """Return the keys of sketches that begin so, for the completion of the shell."""
    return [key for key in SKETCHES if key.startswith(incomplete)]


class MissingValues(StrEnum):
    """Treatments of missing values."""

    error = "error"
    mean = "mean"
    drop = "drop"


class InputFormat(StrEnum):
    """Formats of files."""

    csv = "csv"
    parquet = "parquet"
    arrow = "arrow"
    orc = "orc"
    jsonl = "jsonl"
    svmlight = "svmlight"
    vw = "vw"
    mtx = "mtx"
    npy = "npy"
    npz = "npz"
    zarr = "zarr"
    hdf5 = "hdf5"
    netcdf = "netcdf"


class Precision(StrEnum):
    """Types of the features."""

    float32 = "float32"
    float64 = "float64"


class Purpose(StrEnum):
    """Models that a sketch can be read out by."""

    pca = "pca"
    svd = "svd"
    ridge = "ridge"


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Output file; - is stdout.")
]


@dataclass(frozen=True)
class Rows:
    """The source of the rows, and how it is read."""

    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Files, directories, patterns or URLs of CSV, Parquet, Feather, ORC, JSON lines, "
            "svmlight, Vowpal Wabbit text, Matrix Market, .npy, .npz, Zarr, HDF5, .h5ad or NetCDF; "
            "- for CSV on stdin; or saved sketches (.sks), which are read out.",
        ),
    ]
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="Feature columns by name, number, pattern (reg_*) or range (a:d, 0:9), separated "
            "by commas; repeat it for a name with a comma. By default all.",
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Columns to leave out, given in the same ways."),
    ] = None
    numeric: Annotated[
        bool, typer.Option("--numeric", help="Leave out columns that are not numbers.")
    ] = False
    encode: Annotated[
        bool | None,
        typer.Option(
            "--encode/--no-encode",
            help="Turn columns of any type into numbers, standardized; by default if some are not "
            "numbers. It takes a first pass over the rows.",
        ),
    ] = None
    missing: Annotated[
        MissingValues | None,
        typer.Option(
            help="Refuse missing values (error), fill in column means, or drop the row. By default "
            "error; mean for encoded tables.",
        ),
    ] = None
    fill: Annotated[
        float | None, typer.Option(metavar="VALUE", help="Number in place of missing values.")
    ] = None
    one_hot: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=A,B", help="Encode a column as one indicator column per category."
        ),
    ] = None
    input_format: Annotated[
        InputFormat | None,
        typer.Option("--format", help="Format, if the name does not have its ending."),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether the first line of CSV has the column names."
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(help="Character between the values of CSV; by default found in the file."),
    ] = None
    decimal: Annotated[str, typer.Option(help="Decimal mark of the numbers in CSV.")] = "."
    thousands: Annotated[
        str | None, typer.Option(help="Mark between groups of three digits in CSV.")
    ] = None
    na: Annotated[
        list[str] | None,
        typer.Option(metavar="WORD", help="Word of CSV for a missing value; can be repeated."),
    ] = None
    comment: Annotated[
        str | None, typer.Option(help="Beginning of CSV lines that are left out.")
    ] = None
    skip: Annotated[int, typer.Option(min=0, help="Lines of CSV before the table.")] = 0
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of CSV, such as latin-1; by default UTF-8.")
    ] = None
    key: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Matrix in an HDF5, Zarr or NetCDF file, such as layers/counts."
        ),
    ] = None
    n_features: Annotated[
        int | None,
        typer.Option(min=1, help="Columns of svmlight files, or buckets for hashed vw names."),
    ] = None
    dtype: Annotated[Precision | None, typer.Option(help="Precision of the features.")] = None


@dataclass(frozen=True)
class Method:
    """The sketch of the rows."""

    sketch: Annotated[
        str,
        typer.Option(metavar="KEY", help=f"{', '.join(SKETCHES)}.", autocompletion=known_sketches),
    ] = "auto"
    sketch_size: Annotated[
        int | None,
        typer.Option(
            "--sketch-size", "--size", min=1, help="Number of rows that the sketch keeps."
        ),
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(metavar="2GB", help="Memory limit of the whole run; sets the sketch size."),
    ] = None
    seed: Annotated[int, typer.Option(help="Seed of random sketches.")] = 0
    shard: Annotated[
        int, typer.Option(min=0, help="Number of this part, if random sketches are to be merged.")
    ] = 0
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of all parts, if they are to be merged: the failure probability is "
            "divided among them.",
        ),
    ] = None


@dataclass(frozen=True)
class Run:
    """The output of a run, its checkpoints and its messages."""

    output: Output
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File that an interrupted run resumes from; by default OUTPUT.checkpoint, "
            "which is removed at the end. Run the same command again to resume.",
        ),
    ] = None
    every: Annotated[
        int | None,
        typer.Option(min=1, help="Rows between checkpoints; by default one every 30 seconds."),
    ] = None
    restart: Annotated[
        bool, typer.Option("--restart", help="Ignore an existing checkpoint and start over.")
    ] = False
    as_json: Json = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing but errors, and JSON if asked.")
    ] = False

    def __post_init__(self) -> None:
        if self.checkpoint is not None and is_same(self.checkpoint, self.output):
            raise typer.BadParameter(
                f"{self.output} is to hold the result, and --checkpoint is removed at the end; "
                "give it another name"
            )


@dataclass(frozen=True)
class Spread:
    """The processes and devices that do the work; the result does not depend on their number."""

    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Learn parts of the source in N processes and merge them. Several files, Parquet, "
            ".npy and Zarr can be divided into parts.",
        ),
    ] = None
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="The same on a dask cluster: tcp://host:8786."),
    ] = None
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Compute on a torch device, such as cuda."),
    ] = None


Tolerance = Annotated[
    float | None, typer.Option(help="Relative error to meet; the sketch grows until it does.")
]
Components = Annotated[
    str | None,
    typer.Option(
        "--components",
        "-k",
        metavar="N",
        help="Number of components, or the fraction of variance to explain.",
    ),
]
Standardize = Annotated[
    bool,
    typer.Option("--standardize", help="Divide columns by their standard deviations."),
]
Holdout = Annotated[
    float,
    typer.Option(
        min=0.0, max=0.9, metavar="FRACTION", help="Part of the rows to keep apart and score."
    ),
]
Target = Annotated[
    str | None,
    typer.Option("--target", "-t", metavar="NAME", help="Target columns, by name or number."),
]


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
