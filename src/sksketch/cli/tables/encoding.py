"""Tables with columns of any type: a first pass learns what they hold, then rows are numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer

from sksketch.cli.options import Rows, Run, Spread
from sksketch.cli.show import progress_bar, say
from sksketch.run import fit_stream
from sksketch.run.checkpoints import ChangedRunError
from sksketch.run.dask import fit_dask_parts
from sksketch.run.workers import fit_workers
from sksketch.state.persistence import to_bytes
from sksketch.streams import RowSource, divide, open_rows
from sksketch.streams.blocks import Block
from sksketch.streams.encoded import EncodedSource
from sksketch.tables import FormulaEncoder, TableEncoder
from sksketch.tables.column_summary import kind_of
from sksketch.time import Archive
from sksketch.time.archive import is_archive


def encoder_checkpoint(checkpoint: Path | None) -> Path | None:
    """Return where the first pass keeps what it has learned."""
    return None if checkpoint is None else checkpoint.with_name(f"{checkpoint.name}.columns")


def learn_encoder(
    table: RowSource,
    reading: dict[str, Any],
    rows: Rows,
    run: Run,
    spread: Spread | None,
    checkpoint: Path | None,
    *,
    in_units: bool = False,
) -> EncodedSource:
    """Return the rows of a raw table as numbers, after a pass that learns what the columns hold.

    ``in_units`` is for coefficients that are read one by one: numbers stay in the units of the
    table, and names count beside a reference.
    """
    options: dict[str, Any] = {"missing": "error" if rows.missing == "error" else "mean"}
    if in_units:
        options |= {"numeric": "passthrough", "reference": True}
    encoder = TableEncoder(**options)
    path = encoder_checkpoint(checkpoint)
    with progress_bar(shown=not run.quiet, what="columns") as bar:
        if spread is not None and (spread.workers is not None or spread.dask is not None):
            parts = divide(table, reading)
            if spread.dask is not None:
                fit_dask_parts(encoder, table, parts, spread.dask, progress=bar)
            else:
                fit_workers(encoder, table, parts, spread.workers or 1, progress=bar)
        else:
            ways: dict[str, Any] = {"checkpoint": path, "every": run.every, "progress": bar}
            try:
                fit_stream(encoder, table, resume=not run.restart, **ways)
            except ChangedRunError:
                # Left by a run over something else that did not come to its end.
                fit_stream(encoder, table, resume=False, **ways)
    return encoded(table, encoder)


def by_formula(
    formula: str, rows: Rows, target: str | None, run: Run, spread: Spread | None
) -> tuple[EncodedSource, bool]:
    """Return rows as a formula makes them of a table, and whether it has an intercept.

    That takes a pass over the rows, which learns the levels of categories.
    """
    from sksketch.cli.running import place_of, raw_reading, reading_of

    encoder = FormulaEncoder(formula)
    wanted = encoder.target_ if target is None else target
    if wanted is None:
        raise typer.BadParameter("--formula has no target; write it before a ~, or give --target")
    if rows.columns or rows.exclude:
        raise typer.BadParameter("--formula names the columns; leave --columns and --exclude out")
    if spread is not None and (spread.workers is not None or spread.dask is not None):
        raise typer.BadParameter("--formula reads one part after the other; leave --workers out")
    names = sorted(str(name) for name in encoder._terms().required_variables)
    reading = raw_reading(reading_of(rows, wanted), rows) | {"columns": names}
    table = open_rows(place_of(rows), **reading)
    with progress_bar(shown=not run.quiet, what="columns") as bar:
        fit_stream(encoder, table, progress=bar)
    return encoded(table, encoder), encoder.has_intercept_


class AlikeSource(EncodedSource):
    """The rows of a table as those of another one were encoded; what is missing is counted here."""

    def _encoded(self, tables: Iterator[Block]) -> Generator[Block, None, None]:
        names = [str(name) for name in self.encoder.feature_names_in_]
        n_missing = 0
        for block in tables:
            table: Any = block.X
            known = [name for name in names if name in table.column_names]
            n_missing += sum(count_missing(column) for column in table.select(known).columns)
            yield Block(self.encoder.transform(table), block.y, block.sample_weight)
            self.n_missing, self.n_dropped = n_missing, self._tables.n_dropped


def open_alike(rows: Rows, target: str | None) -> AlikeSource:
    """Open a table with the columns, units and categories that a saved model has learned."""
    from sksketch.cli.running import place_of, raw_reading, reading_of
    from sksketch.cli.saving import blaming, read

    if rows.columns or rows.exclude or rows.numeric or rows.one_hot or rows.encode is False:
        raise typer.BadParameter(
            "--like takes the columns of the saved model; leave --columns, --exclude, --numeric, "
            "--one-hot and --no-encode out"
        )
    path = str(rows.like)
    with blaming(path):
        encoder = Archive(path).encoder() if is_archive(path) else read(path).encoder
    if encoder is None:
        raise typer.BadParameter(
            f"{path} was learned from columns of numbers, which need no --like; leave it out"
        )
    names = [str(name) for name in encoder.feature_names_in_]
    reading = raw_reading(reading_of(rows, target), rows) | {"columns": names}
    table = open_rows(place_of(rows), **reading)
    return AlikeSource(table, encoder, identity(encoder))


def encoded(table: RowSource, encoder: TableEncoder | FormulaEncoder) -> EncodedSource:
    """Return the rows of a raw table as numbers."""
    return EncodedSource(table, encoder, identity(encoder))


def identity(encoder: TableEncoder | FormulaEncoder) -> str:
    """Return what tells an encoder from another one."""
    return hashlib.blake2b(to_bytes(encoder.state()), digest_size=16).hexdigest()


def count_missing(column: Any) -> int:
    """Return how many values of a column of a table there are not."""
    return int(np.count_nonzero(column.is_null(nan_is_null=True).to_numpy()))


def others_of(table: RowSource) -> list[str]:
    """Return the columns that are no numbers, by a look at the first block."""
    if table.reads_once:
        return []
    block: Any = next(iter(table.blocks()), None)
    fields = [] if block is None else block.X.schema
    return [field.name for field in fields if kind_of(field.type) not in ("number", "boolean")]


def announce(rows: Rows, run: Run, others: list[str]) -> None:
    """Say in one line that the table is encoded, and why."""
    if rows.encode or not others:
        return
    names = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
    count = "1 column is" if len(others) == 1 else f"{len(others)} columns are"
    say(
        run,
        f"sksketch: {count} not numbers ({names}); the table is encoded. --numeric leaves them "
        "out, --no-encode refuses them",
    )
