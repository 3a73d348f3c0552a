"""Saved files are blamed for what comes of them: a checksum tells damage, and not a forgery."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from sksketch._typing import PathLike
from sksketch.exceptions import StateFormatError, StreamExhaustedError

# What building an object from fields that were not saved by us can end in.
_MISFITS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RecursionError),
    *(TypeError, ValueError),
)


@contextmanager
def fitting(path: PathLike) -> Iterator[None]:
    """Turn what comes of fields that do not fit together into a `StateFormatError`.

    A checksum tells a damaged file, not one that somebody has made up.
    """
    try:
        yield
    except StateFormatError:
        raise
    except _MISFITS as error:
        raise StateFormatError(
            f"{os.fspath(path)!r} holds fields that do not fit together ({reason(error)}); take "
            "another copy of it or save it again"
        ) from error


@contextmanager
def using(path: PathLike, *explained: type[Exception]) -> Iterator[None]:
    """Blame a saved file for what nobody has foreseen while what it held is used.

    Its checksum may be right, its fields fit together, and its numbers still be anybody's.
    Errors that tell what is wrong by themselves pass, and so do those of ``explained``.
    """
    telling: tuple[type[Exception], ...] = (
        *(ValueError, OSError, MemoryError, ImportError, StreamExhaustedError),
        *explained,
    )
    try:
        yield
    except telling:
        raise
    except Exception as error:
        raise StateFormatError(
            f"{os.fspath(path)!r} can be read and not be used ({reason(error)}); take another "
            "copy of it or save it again"
        ) from error


def reason(error: Exception) -> str:
    """Return what an error says, in a part of a line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
