"""Saved sketches and models, with the names of their columns; also on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import reduce
from pathlib import Path
from typing import IO, Any, NamedTuple

import typer

from sksketch.exceptions import NotMergeableError, parts_of
from sksketch.run.loading import restore
from sksketch.sketches import Sketch
from sksketch.state.blame import fitting, using
from sksketch.state.disk import replacing
from sksketch.state.persistence import State, dump, read_state, write_state

STDOUT = "-"


class Saved(NamedTuple):
    """A sketch or estimator, and the names of its columns where they are known."""

    model: Any
    names: list[str] | None


def read(path: str | Path) -> Saved:
    """Read a file of any kind."""
    return named(read_state(path), path)


def named(state: State, path: str | Path) -> Saved:
    """Return what a file's state was taken from, with the names of its columns."""
    names: Any = state.meta.get("feature_names")
    with fitting(path):
        return Saved(restore(state), None if names is None else _names_in(names))


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
    if None not in (merged.names, other.names) and merged.names != other.names:
        raise NotMergeableError(
            "its columns have other names; sketch the same columns", place=str(path)
        )
    try:
        model = merged.model.merge(other.model)
    except NotMergeableError as error:
        raise NotMergeableError(*parts_of(error), place=str(path)) from None
    return Saved(model, merged.names or other.names)


def write(saved: Saved, output: str) -> None:
    """Save to a file, atomically, or put the bytes of the file on stdout."""
    finished = getattr(saved.model, "finished_state", None)
    state = saved.model.state() if finished is None else finished()
    if isinstance(saved.model, Sketch) and saved.names is not None:
        # Sketches know no names; the file may, so that parts are not mixed up.
        meta = {**state.meta, "feature_names": json.dumps(saved.names)}
        state = State(state.kind, state.version, meta, state.arrays)
    if output == STDOUT:
        dump(state, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        write_state(state, output)


@contextmanager
def opened(output: str) -> Iterator[IO[bytes]]:
    """Open stdout, or a file that stands under its name only once it is whole."""
    if output == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with replacing(output) as file:
        yield file
