"""Saved sketches and models, with the names of their columns; also on stdout."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import reduce
from pathlib import Path
from typing import IO, Any, NamedTuple

import typer

from sksketch._typing import Array
from sksketch.exceptions import NotMergeableError, parts_of
from sksketch.models.pipelines.plain_states import PIPELINE, VERSION
from sksketch.run.loading import restore
from sksketch.sketches import Sketch
from sksketch.state.blame import fitting, using
from sksketch.state.disk import replacing
from sksketch.state.persistence import State, dump, read_state, to_bytes, write_state
from sksketch.streams import RowSource
from sksketch.tables import FormulaEncoder, TableEncoder

STDOUT = "-"
# The array of a file that has the means of the columns.
MEANS = "column_means"


class Saved(NamedTuple):
    """A sketch or estimator, and what is known of the rows that it comes from."""

    model: Any
    # Of the columns that it takes, where they are known.
    names: list[str] | None
    # What makes them of a table.
    encoder: TableEncoder | FormulaEncoder | None = None
    # Of the columns, if holes were filled with them.
    means: Array | None = None
    n_missing: int = 0
    n_dropped: int = 0

    @property
    def columns(self) -> list[str] | None:
        """Names of the columns of the table, which the encoder takes if there is one."""
        return self.names if self.encoder is None else list(self.encoder.feature_names_in_)


def of_source(model: Any, source: RowSource) -> Saved:
    """Return a model with what its source knows."""
    encoder = source.encoder
    assert encoder is None or isinstance(encoder, TableEncoder | FormulaEncoder)
    n_missing = source.n_missing
    if encoder is not None and not source.n_missing:
        n_missing = sum(column.n_missing for column in encoder.summaries.values())
    counts = n_missing, source.n_dropped
    return Saved(model, source.feature_names, encoder, source.means, *counts)


def read(path: str | Path) -> Saved:
    """Read a file of any kind."""
    return named(read_state(path), path)


def named(state: State, path: str | Path) -> Saved:
    """Return what a file's state was taken from, with what is known of its rows."""
    meta: Any = state.meta
    with fitting(path):
        model, encoder = restore(state), None
        text = meta.get("feature_names")
        names = None if text is None else _names_in(text)
        if state.kind == PIPELINE:
            encoder, model = _parts_of(model)
            names = [str(name) for name in encoder.get_feature_names_out()]
        means = state.arrays.get(MEANS)
        if means is not None and means.shape != (len(names or means),):
            raise ValueError("means of other columns")
        counts = int(meta.get("n_missing", 0)), int(meta.get("n_dropped", 0))
        return Saved(model, names, encoder, means, *counts)


def _parts_of(pipeline: Any) -> tuple[Any, Any]:
    """Return the encoder and the model of a saved pipeline."""
    steps = [step for _, step in pipeline.steps]
    if len(steps) != 2 or not isinstance(steps[0], TableEncoder | FormulaEncoder):
        raise TypeError("a pipeline that is no TableEncoder before a model; use it from Python")
    return steps[0], steps[1]


def _names_in(text: str) -> list[str]:
    names = json.loads(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError("names of columns that are no list of texts")
    return names


def blaming(path: str | Path) -> AbstractContextManager[None]:
    """Blame a saved file for what nobody has foreseen while a command uses it."""
    return using(path, typer.TyperException, typer.Exit, typer.Abort)


def read_merged(paths: Sequence[str | Path]) -> Saved:
    """Read files of different rows and the same columns into one, one file at a time."""
    return reduce(_with_file, paths[1:], read(paths[0]))


def _with_file(merged: Saved, path: str | Path) -> Saved:
    other = read(path)
    if not _are_same(merged.encoder, other.encoder):
        raise NotMergeableError(
            "its table was encoded by other rows, in units of its own; learn from it with --like "
            "and the first file, or from all files in one run",
            place=str(path),
        )
    if None not in (merged.names, other.names) and merged.names != other.names:
        raise NotMergeableError(
            "its columns have other names; sketch the same columns", place=str(path)
        )
    try:
        model = merged.model.merge(other.model)
    except NotMergeableError as error:
        raise NotMergeableError(*parts_of(error), place=str(path)) from None
    counts = merged.n_missing + other.n_missing, merged.n_dropped + other.n_dropped
    return Saved(model, merged.names or other.names, merged.encoder, None, *counts)


def check_alike(one: Saved, other: Saved, before: str, after: str) -> None:
    """Refuse two files of tables that were encoded each by its own rows."""
    if not are_alike(one, other):
        raise typer.BadParameter(
            f"the tables of {before} and {after} were encoded each by its own rows, in units of "
            f"its own; learn the second one with --like {before}"
        )


def are_alike(one: Saved, other: Saved) -> bool:
    """Return whether the rows of two files are in the same units, as far as that is known."""
    return _are_same(one.encoder, other.encoder)


def _are_same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return to_bytes(one.state()) == to_bytes(other.state())


def write(saved: Saved, output: str) -> None:
    """Save to a file, atomically, or put the bytes of the file on stdout."""
    state = state_of_saved(saved)
    if output == STDOUT:
        dump(state, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        write_state(state, output)


def state_of_saved(saved: Saved) -> State:
    """Return the state of the file: that of the model, or of the pipeline that it ends."""
    model = saved.model
    if saved.encoder is not None and not isinstance(model, Sketch):
        # The encoder knows the names; the rows that it gives have none.
        model = copy.copy(model)
        vars(model).pop("feature_names_in_", None)
    finished = getattr(model, "finished_state", None)
    state: State = model.state() if finished is None else finished()
    meta: dict[str, Any] = {}
    if saved.encoder is not None:
        steps = json.dumps([["encode", True], ["model", True]])
        pipeline = State(PIPELINE, VERSION, {"steps": steps}, {})
        state = pipeline.with_inner("step0", saved.encoder.state()).with_inner("step1", state)
    elif isinstance(model, Sketch) and saved.names is not None:
        # Sketches know no names; the file may, so that parts are not mixed up.
        meta["feature_names"] = json.dumps(saved.names)
    if saved.n_missing or saved.n_dropped:
        meta |= {"n_missing": saved.n_missing, "n_dropped": saved.n_dropped}
    return state.with_more(meta, {} if saved.means is None else {MEANS: saved.means})


@contextmanager
def opened(output: str) -> Iterator[IO[bytes]]:
    """Open stdout, or a file that stands under its name only once it is whole."""
    if output == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with replacing(output) as file:
        yield file
