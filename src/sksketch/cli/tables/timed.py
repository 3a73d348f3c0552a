"""Rows with the times that one column of their table has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import typer

from sksketch.cli.options import Rows, Run
from sksketch.cli.running import (
    are_numbered,
    checkpoint_of,
    open_columns,
    place_of,
    raw_reading,
    reading_of,
)
from sksketch.cli.tables.applying import numbers_of
from sksketch.cli.tables.encoding import (
    announce,
    count_missing,
    identity,
    learn_encoder,
    open_alike,
    others_of,
)
from sksketch.streams import RowSource, open_rows, spare_memory
from sksketch.streams.blocks import Block
from sksketch.streams.missing import Missing
from sksketch.tables import FormulaEncoder, TableEncoder
from sksketch.tables.column_summary import one_array


class TimedSource(RowSource):
    """The rows of a source of raw tables as numbers, with a column of times beside them.

    Parameters
    ----------
    tables : RowSource
        Opened with ``raw=True``.
    time : str
        The column of times.
    names : list of str
        The other columns.
    missing : str
        What becomes of rows with missing values: "error" or "drop".
    encoder : TableEncoder, default=None
        What makes numbers of the other columns, which are numbers without it.
    """

    def __init__(
        self,
        tables: RowSource,
        time: str,
        names: list[str],
        missing: str,
        encoder: TableEncoder | FormulaEncoder | None = None,
    ) -> None:
        vars(self).update(vars(tables))
        self._tables, self._time, self._mode, self._columns = tables, time, missing, names
        self.encoder = encoder
        if encoder is not None:
            names = [str(name) for name in encoder.get_feature_names_out()]
        self.feature_names, self.n_features = names, len(names)

    def blocks(self, start_row: int = 0) -> Iterator[Block]:
        """Yield the rows in order, leaving out the first ``start_row``.

        Parameters
        ----------
        start_row : int, default=0
            Rows to leave out.

        Returns
        -------
        iterator of Block
            Rows with their times.
        """
        first = start_row
        self.n_missing = self.n_dropped = 0
        for block in self._tables.blocks(start_row):
            found = self._numbers(block, first)
            first += len(block.X)
            if found.X.shape[0]:
                yield found

    def _numbers(self, block: Any, first: int) -> Block:
        table = block.X
        chosen = table.select(self._columns)
        resolver = Missing(self._mode, self._columns, None, None)
        rows, X = np.arange(len(table)), chosen
        if self.encoder is None:
            columns = zip(self._columns, chosen.columns, strict=True)
            X = np.column_stack([numbers_of(column, name) for name, column in columns])
        else:
            self.n_missing += sum(count_missing(column) for column in chosen.columns)
        found = resolver.resolve(X, None, lambda i: f"row {first + i}", rows)
        self.n_missing += found.n_missing if self.encoder is None else 0
        self.n_dropped += found.n_dropped
        kept = found.sample_weight
        times = one_array(table.column(self._time)).to_numpy(zero_copy_only=False)
        y, weights = (None if p is None else p[kept] for p in (block.y, block.sample_weight))
        X = found.X if self.encoder is None else self.encoder.transform(found.X)
        return Block(X, y, weights, np.asarray(times)[kept])

    def fingerprint(self) -> dict[str, Any]:
        """Return plain values that tell these rows from others, to check before resuming.

        Returns
        -------
        dict
            That of the tables, with the column of times.
        """
        found = {**self._tables.fingerprint(), "time": self._time, "missing_times": self._mode}
        return found if self.encoder is None else found | {"encoder": identity(self.encoder)}


def open_timed(rows: Rows, target: str | None, run: Run, time: str) -> RowSource:
    """Open what the options describe, with the times of a column."""
    if are_numbered(rows):
        raise typer.BadParameter("the columns of these files have no names for --time")
    if rows.one_hot or rows.fill is not None:
        raise typer.BadParameter("with --time leave --one-hot and --fill out")
    spare_memory()
    where, reading = place_of(rows), reading_of(rows, target)
    encoder = None if rows.like is None else open_alike(rows, target).encoder
    names = open_columns(rows, where, reading, run)
    if encoder is not None:
        names = [str(name) for name in encoder.feature_names_in_]
    elif names is not None:
        names = [name for name in names if name != time]
    raw = {**raw_reading(reading, rows), "missing": "error"}
    raw["columns"] = None if names is None else list(dict.fromkeys([*names, time]))
    tables = open_rows(where, **raw)
    known = tables.feature_names or []
    if time not in known:
        raise typer.BadParameter(f"there is no column {time!r} for --time, only {known[:8]}")
    names = [name for name in known if name != time] if names is None else names
    if encoder is None and rows.encode is not False:
        others = [name for name in others_of(tables) if name in names]
        if rows.encode or others:
            announce(rows, run, others)
            table = open_rows(where, **raw | {"columns": names})
            encoder = learn_encoder(table, {}, rows, run, None, checkpoint_of(run)).encoder
    if encoder is None and rows.missing == "mean":
        raise typer.BadParameter(
            "with --time rows with missing numbers are refused or dropped; leave --missing mean "
            "out, or give --encode"
        )
    drops = reading["missing"] == "drop" or encoder is None
    return TimedSource(tables, time, names, reading["missing"] if drops else "unchecked", encoder)
