"""Rows of numbers with the times that one column of their table has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import typer

from sksketch.cli.options import Rows, Run
from sksketch.cli.running import are_numbered, open_columns, place_of, raw_reading, reading_of
from sksketch.cli.tables.applying import numbers_of
from sksketch.streams import RowSource, open_rows, spare_memory
from sksketch.streams.blocks import Block
from sksketch.streams.missing import Missing
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
    """

    def __init__(self, tables: RowSource, time: str, names: list[str], missing: str) -> None:
        vars(self).update(vars(tables))
        self._tables, self._time, self._mode = tables, time, missing
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
        columns = zip(
            self.feature_names or [], table.select(self.feature_names).columns, strict=True
        )
        X = np.column_stack([numbers_of(column, name) for name, column in columns])
        resolver = Missing(self._mode, self.feature_names, None, None)
        rows = np.arange(len(table))
        found = resolver.resolve(X, None, lambda i: f"row {first + i}", rows)
        self.n_missing += found.n_missing
        self.n_dropped += found.n_dropped
        kept = found.sample_weight
        times = one_array(table.column(self._time)).to_numpy(zero_copy_only=False)
        y, weights = (None if p is None else p[kept] for p in (block.y, block.sample_weight))
        return Block(found.X, y, weights, np.asarray(times)[kept])

    def fingerprint(self) -> dict[str, Any]:
        """Return plain values that tell these rows from others, to check before resuming.

        Returns
        -------
        dict
            That of the tables, with the column of times.
        """
        return {**self._tables.fingerprint(), "time": self._time, "missing_times": self._mode}


def open_timed(rows: Rows, target: str | None, run: Run, time: str) -> RowSource:
    """Open what the options describe, with the times of a column."""
    if are_numbered(rows):
        raise typer.BadParameter("the columns of these files have no names for --time")
    if rows.encode or rows.one_hot or rows.fill is not None or rows.missing == "mean":
        raise typer.BadParameter(
            "with --time columns are numbers, and rows without some are refused or dropped; leave "
            "--encode, --one-hot, --fill and --missing mean out"
        )
    spare_memory()
    where, reading = place_of(rows), reading_of(rows, target)
    names = open_columns(rows, where, reading, run)
    missing = reading["missing"]
    if names is not None:
        names = [name for name in names if name != time]
    raw = {**raw_reading(reading, rows), "missing": "error"}
    raw["columns"] = None if names is None else [*names, time]
    tables = open_rows(where, **raw)
    known = tables.feature_names or []
    if time not in known:
        raise typer.BadParameter(f"there is no column {time!r} for --time, only {known[:8]}")
    names = [name for name in known if name != time] if names is None else names
    return TimedSource(tables, time, names, missing)
