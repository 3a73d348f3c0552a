"""The options that commands share, each under a heading of the help."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sksketch import _keys
from sksketch.state.disk import is_same, is_special

SKETCHES = ["auto", *_keys.SKETCHES]


def known_sketches(incomplete: str) -> list[str]:
    """Return the keys of sketches that begin so, for the completion of the shell."""
    return [key for key in SKETCHES if key.startswith(incomplete)]


# Headings of the help, in their order.
PANELS = ("Model", "Time", "Columns", "Source", "CSV", "Kernel", "Sketch", "Run", "Parallel")
in_model, in_time, in_columns, in_source, in_csv, in_kernel, in_sketch, in_run, in_parallel = (
    partial(typer.Option, rich_help_panel=panel) for panel in PANELS
)


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


Json = Annotated[bool, in_run("--json", help="Print one JSON object.")]
Output = Annotated[str, in_run("--output", "-o", metavar="FILE", help="Output file; - is stdout.")]


def check_place(output: str) -> None:
    """Refuse an output in a directory that is not there or cannot be written to, at once."""
    folder = Path(output).parent
    if output == "-" or is_special(output):
        return
    if not folder.is_dir():
        raise typer.BadParameter(f"{output}: there is no directory {folder}; make it first")
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"{output}: the directory {folder} cannot be written to")


FILES = (
    "Files, directories, patterns or URLs of CSV, Parquet, Feather, ORC, JSON lines, svmlight, "
    "Vowpal Wabbit text, Matrix Market, .npy, .npz, Zarr, HDF5, .h5ad or NetCDF"
)


@dataclass(frozen=True)
class Rows:
    """The source of the rows, and how it is read."""

    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE...", help=f"{FILES}; - for CSV on stdin."),
    ]
    columns: Annotated[
        list[str] | None,
        in_columns(
            metavar="A,B",
            help="Feature columns by name, number, pattern (reg_*) or range (a:d, 0:9), separated "
            "by commas; repeat it for a name with a comma. By default all.",
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        in_columns(metavar="A,B", help="Columns to leave out, given in the same ways."),
    ] = None
    numeric: Annotated[
        bool, in_columns("--numeric", help="Leave out columns that are not numbers.")
    ] = False
    encode: Annotated[
        bool | None,
        in_columns(
            "--encode/--no-encode",
            help="Turn columns of any type into numbers, standardized; by default if some are not "
            "numbers. It takes a first pass over the rows.",
        ),
    ] = None
    like: Annotated[
        str | None,
        in_columns(
            metavar="FILE",
            help="Take columns, units and categories from a saved model of another table, so that "
            "the two can be compared and merged.",
        ),
    ] = None
    missing: Annotated[
        MissingValues | None,
        in_columns(
            help="Refuse missing values (error), fill in column means, or drop the row. By default "
            "error; mean for encoded tables.",
        ),
    ] = None
    fill: Annotated[
        float | None, in_columns(metavar="VALUE", help="Number in place of missing values.")
    ] = None
    one_hot: Annotated[
        list[str] | None,
        in_columns(
            metavar="NAME=A,B", help="Encode a column as one indicator column per category."
        ),
    ] = None
    input_format: Annotated[
        InputFormat | None,
        in_source(
            "--format",
            metavar="NAME",
            help=f"{', '.join(InputFormat)}, if the name does not have its ending.",
        ),
    ] = None
    header: Annotated[
        bool | None,
        in_csv("--header/--no-header", help="Whether the first line of CSV has the column names."),
    ] = None
    delimiter: Annotated[
        str | None,
        in_csv(help="Character between the values of CSV; by default found in the file."),
    ] = None
    decimal: Annotated[str, in_csv(help="Decimal mark of the numbers in CSV.")] = "."
    thousands: Annotated[str | None, in_csv(help="Mark between groups of three digits in CSV.")] = (
        None
    )
    na: Annotated[
        list[str] | None,
        in_csv(metavar="WORD", help="Word of CSV for a missing value; can be repeated."),
    ] = None
    comment: Annotated[str | None, in_csv(help="Beginning of CSV lines that are left out.")] = None
    skip: Annotated[int, in_csv(min=0, help="Lines of CSV before the table.")] = 0
    encoding: Annotated[
        str | None, in_csv(help="Encoding of CSV, such as latin-1; by default UTF-8.")
    ] = None
    key: Annotated[
        str | None,
        in_source(
            metavar="PATH", help="Matrix in an HDF5, Zarr or NetCDF file, such as layers/counts."
        ),
    ] = None
    n_features: Annotated[
        int | None,
        in_source(min=1, help="Columns of svmlight files, or buckets for hashed vw names."),
    ] = None
    dtype: Annotated[Precision | None, in_source(help="Precision of the features.")] = None


@dataclass(frozen=True)
class RowsOrSketches(Rows):
    """Rows, or saved sketches of them that the command reads out."""

    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help=f"{FILES}; - for CSV on stdin; or saved sketches (.sks), which are read out.",
        ),
    ]


@dataclass(frozen=True)
class Method:
    """The sketch of the rows."""

    sketch: Annotated[
        str,
        in_sketch(metavar="KEY", help=f"{', '.join(SKETCHES)}.", autocompletion=known_sketches),
    ] = "auto"
    sketch_size: Annotated[
        int | None,
        in_sketch(
            "--sketch-size",
            "--size",
            min=1,
            metavar="N",
            help="Number of rows that the sketch keeps.",
        ),
    ] = None
    memory: Annotated[
        str | None,
        in_sketch(metavar="2GB", help="Memory limit of the whole run; sets the sketch size."),
    ] = None
    seed: Annotated[int, in_sketch(help="Seed of random sketches.")] = 0
    shard: Annotated[
        int, in_sketch(min=0, help="Number of this part, if random sketches are to be merged.")
    ] = 0
    shards: Annotated[
        int | None,
        in_sketch(
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
        in_run(
            metavar="FILE",
            help="File that an interrupted run resumes from; by default OUTPUT.checkpoint, "
            "which is removed at the end. Run the same command again to resume.",
        ),
    ] = None
    every: Annotated[
        int | None,
        in_run(min=1, help="Rows between checkpoints; by default one every 30 seconds."),
    ] = None
    restart: Annotated[
        bool, in_run("--restart", help="Ignore an existing checkpoint and start over.")
    ] = False
    as_json: Json = False
    quiet: Annotated[
        bool, in_run("--quiet", "-q", help="Print nothing but errors, and JSON if asked.")
    ] = False

    def __post_init__(self) -> None:
        check_place(self.output)
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
        in_parallel(
            min=1,
            metavar="N",
            help="Learn parts of the source in N processes and merge them. Several files, Parquet, "
            ".npy and Zarr can be divided into parts.",
        ),
    ] = None
    dask: Annotated[
        str | None,
        in_parallel(metavar="ADDRESS", help="The same on a dask cluster: tcp://host:8786."),
    ] = None
    device: Annotated[
        str | None,
        in_parallel(metavar="NAME", help="Compute on a torch device, such as cuda."),
    ] = None


@dataclass(frozen=True)
class Timing:
    """The rows that count: the last ones, recent ones more, or some periods of an archive."""

    window: Annotated[
        str | None,
        in_time(
            metavar="N|7d",
            help="Learn from the last N rows alone, or those of a length of time.",
        ),
    ] = None
    time: Annotated[
        str | None, in_time(metavar="NAME", help="Column with the times of the rows, in order.")
    ] = None
    half_life: Annotated[
        float | None,
        in_time(min=0.0, metavar="ROWS", help="Let a row count half after that number of others."),
    ] = None
    start: Annotated[
        str | None,
        in_time("--from", metavar="TIME", help="First period of an archive; by default all."),
    ] = None
    end: Annotated[
        str | None, in_time("--to", metavar="TIME", help="Where its last period ends.")
    ] = None

    def __post_init__(self) -> None:
        if self.time is not None and self.window is None:
            raise typer.BadParameter("--time is for --window; give both")
        if isinstance(self.parsed_window, str) and self.time is None:
            raise typer.BadParameter(
                f"--window {self.window} is a length of time; name the column of times with --time"
            )

    @property
    def parsed_window(self) -> int | str | None:
        """The window as estimators take it."""
        if self.window is None or not self.window.isdecimal():
            return self.window
        return int(self.window)

    @property
    def options(self) -> dict[str, object]:
        """Return what was asked for as parameters of estimators."""
        given = {"window": self.parsed_window, "half_life": self.half_life}
        return {name: value for name, value in given.items() if value is not None}


Tolerance = Annotated[
    float | None, in_sketch(help="Relative error to meet; the sketch grows until it does.")
]
Components = Annotated[
    str | None,
    in_model(
        "--components",
        "-k",
        metavar="N",
        help="Number of components, or the fraction of variance to explain.",
    ),
]
Standardize = Annotated[
    bool,
    in_model("--standardize", help="Divide columns by their standard deviations."),
]
Holdout = Annotated[
    float,
    in_model(
        min=0.0, max=0.9, metavar="FRACTION", help="Part of the rows to keep apart and score."
    ),
]
Target = Annotated[
    str | None,
    in_columns("--target", "-t", metavar="NAME", help="Target columns, by name or number."),
]
