"""Rows on their way through a saved model, with columns that are written beside the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import typer

from sksketch._typing import Array
from sksketch.cli.options import MissingValues, Rows
from sksketch.cli.running import (
    are_labeled,
    are_numbered,
    open_columns,
    place_of,
    raw_reading,
    reading_of,
)
from sksketch.cli.saving import Saved
from sksketch.streams import RowSource, open_rows, spare_memory
from sksketch.streams.missing import FILL, Missing
from sksketch.tables.column_summary import cells_of, one_array

#: Rows for the model, and the columns beside them.
Beside = tuple[Any, dict[str, Array]]


class Answered:
    """Blocks of rows for a model, each with columns to write beside its answer.

    Parameters
    ----------
    source : RowSource
        Where they come from.
    prepare : callable
        Takes the rows of a block; returns those for the model, the columns beside them, and how
        many values were missing and rows were left out.
    """

    def __init__(
        self, source: RowSource, prepare: Callable[[Any], tuple[Any, dict[str, Array], int, int]]
    ) -> None:
        self._source, self._prepare = source, prepare
        self.n_missing = self.n_dropped = 0

    @classmethod
    def of(cls, source: RowSource) -> Answered:
        """Return the rows of a source as they are."""
        return cls(source, lambda X: (X, {}, 0, 0))

    @property
    def n_rows(self) -> int | None:
        """Rows in all, where that is known."""
        return self._source.n_rows

    def blocks(self) -> Iterator[Beside]:
        """Yield the rows in order."""
        for block in self._source.blocks():
            X, beside, n_missing, n_dropped = self._prepare(block.X)
            self.n_missing += n_missing + self._source.n_missing
            self.n_dropped += n_dropped + self._source.n_dropped
            self._source.n_missing = self._source.n_dropped = 0
            yield X, beside


def rows_to_answer(saved: Saved, rows: Rows, beside: list[str]) -> Answered:
    """Open rows for a saved model, chosen by the names of its columns where it has names."""
    spare_memory()
    reading = reading_of(rows, None)
    reading["missing"] = _missing(saved, rows, reading["missing"])
    where = place_of(rows)
    width = saved.model.n_features_in_
    if are_numbered(rows):
        if beside:
            raise typer.BadParameter("the columns of these files have no names for --id and --keep")
        if are_labeled(rows):
            # Labels may be missing, and are not used.
            reading |= {"target": [], "n_features": rows.n_features or width}
        return Answered.of(_checked(open_rows(where, **reading), width))
    names = saved.columns if rows.columns is None else open_columns(rows, where, reading)
    reading["columns"] = names
    if saved.encoder is None and not beside:
        return Answered.of(_checked(open_rows(where, **reading), width))
    if names is None:
        raise typer.BadParameter("the model knows no names of columns; choose them with --columns")
    wanted = list(dict.fromkeys([*names, *beside]))
    raw = {**raw_reading(reading, rows), "columns": wanted, "missing": "error"}
    table = open_rows(where, **raw)
    prepare = _Preparing(saved, names, beside, reading["missing"])
    prepare.refuses = rows.missing == MissingValues.error
    return Answered(table, prepare)


def _missing(saved: Saved, rows: Rows, given: Any) -> Any:
    """Return how holes are filled: means are those of the rows that the model learned from."""
    if rows.missing != MissingValues.mean or saved.encoder is not None:
        return given
    means = saved.means
    if means is None:
        means = getattr(saved.model, "mean_", None)
    if means is None and hasattr(saved.model, "sketch_"):
        means = getattr(saved.model.sketch_, "mean", None)
    if means is None:
        raise typer.BadParameter(
            "the model does not know the means of the rows it learned from; learn it with "
            "--missing mean, or pass --fill VALUE"
        )
    return np.asarray(means, dtype=np.float64)


def _checked(source: RowSource, width: int) -> RowSource:
    if source.n_features != width:
        raise typer.BadParameter(
            f"the rows have {source.n_features} columns and the model {width}; choose them with "
            "--columns"
        )
    return source


class _Preparing:
    """Makes rows for a model of raw tables, and takes the columns beside them."""

    def __init__(self, saved: Saved, names: list[str], beside: list[str], missing: Any) -> None:
        self._encoder, self._names, self._beside = saved.encoder, names, beside
        mode, values = (missing, None) if isinstance(missing, str) else (FILL, np.asarray(missing))
        self._drops = mode == "drop"
        self._resolver = Missing(mode, names, None, values)
        self._n_rows = 0
        # Whether holes are refused that the encoder would fill.
        self.refuses = False

    def __call__(self, table: Any) -> tuple[Any, dict[str, Array], int, int]:
        """Return rows, the columns beside them, missing values and rows left out."""
        first, self._n_rows = self._n_rows, self._n_rows + len(table)

        def place(i: int) -> str:
            return f"row {first + i}"

        chosen = table.select(self._names)
        kept = np.arange(len(table))
        if self._encoder is None:
            rows = np.column_stack([numbers_of(column, name) for name, column in _pairs(chosen)])
            found = self._resolver.resolve(rows, None, place, kept)
            X, kept, counts = found.X, found.sample_weight, (found.n_missing, found.n_dropped)
        else:
            if self._drops:
                found = self._resolver.resolve(chosen, None, place, kept)
                chosen, kept = found.X, found.sample_weight
            holes = {name: column.is_null(nan_is_null=True) for name, column in _pairs(chosen)}
            if self.refuses:
                _refuse_holes(holes, place)
            n_missing = sum(int(found.to_numpy().sum()) for found in holes.values())
            counts = n_missing, len(table) - len(kept)
            X = self._encoder.transform(chosen) if len(kept) else np.empty((0, 0))
        beside = {name: _values(table.column(name))[kept] for name in self._beside}
        return X, beside, *counts


def _refuse_holes(holes: dict[str, Any], place: Callable[[int], str]) -> None:
    for name, found in holes.items():
        rows = np.flatnonzero(found.to_numpy())
        if len(rows):
            raise typer.BadParameter(
                f"{place(int(rows[0]))}: column {name!r} has no value, and --missing error refuses "
                "holes"
            )


def _pairs(table: Any) -> list[tuple[str, Any]]:
    return list(zip(table.column_names, table.columns, strict=True))


def numbers_of(column: Any, name: str) -> Array:
    """Return a column of a table as numbers, NaN where there is none."""
    cells = cells_of(one_array(column))
    if cells.kind == "empty":
        return np.full(cells.n_rows, np.nan)
    if cells.kind not in ("number", "boolean"):
        raise typer.BadParameter(f"column {name!r} holds no numbers, which the model wants")
    return cells.numbers[0].astype(np.float64, copy=False)


def _values(column: Any) -> Array:
    """Return a column as it is written: numbers as they are, all else as text."""
    values = np.asarray(one_array(column).to_numpy(zero_copy_only=False))
    if values.dtype.kind in "biuf":
        return values
    return np.array([None if v is None else str(v) for v in column.to_pylist()], dtype=object)
