"""Errors that callers may want to catch by name, and what they know beside their text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import EllipsisType


class Option:
    """An argument to pass, or one that was given, as a part of an error's text.

    Parameters
    ----------
    name : str
        Of the argument, as functions have it.
    *values : values, optional
        What to pass: any one of them. ``...`` stands for some that the user has to think of.

    Examples
    --------
    >>> print(Option("missing", "mean", "drop"))
    missing='mean' or 'drop'
    >>> print(Option("categories", {"color": ...}))
    categories={'color': [...]}
    """

    def __init__(self, name: str, *values: object) -> None:
        self.name = name
        self.values = values

    def __str__(self) -> str:
        """Return the argument as Python spells it."""
        values = " or ".join(map(_shown, self.values))
        return f"{self.name}={values}" if values else self.name


def _shown(value: object) -> str:
    if isinstance(value, EllipsisType):
        return "[...]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_shown(part)}' for key, part in value.items())}}}"
    return repr(value)


class ExplainedError(ValueError):
    """A user's mistake, with what is known about it as fields; the text is made of them.

    Parameters
    ----------
    *parts : str or Option
        What is wrong and what to do about it.
    place : str, optional
        Where: a file with its line, a partition. It comes first.
    column : str or int, optional
        The column that it is about.

    Attributes
    ----------
    place, column
        As given; None where there is none.
    remedies : tuple of Option
        The arguments that the text names, such as those that would help.

    Examples
    --------
    >>> error = ExplainedError("a hole; pass ", Option("missing", "drop"), place="a.csv, line 3")
    >>> str(error)
    "a.csv, line 3: a hole; pass missing='drop'"
    >>> error.remedies[0].name
    'missing'
    """

    def __init__(
        self, *parts: str | Option, place: str | None = None, column: str | int | None = None
    ) -> None:
        super().__init__(*parts)
        self.parts = parts
        self.place = place
        self.column = column

    @property
    def remedies(self) -> tuple[Option, ...]:
        """The arguments that the text names."""
        return tuple(part for part in self.parts if isinstance(part, Option))

    def spelled(self, spell: Callable[[Option], str]) -> str:
        """Return the text with the arguments as ``spell`` has them: a command, as its options."""
        start = "" if self.place is None else f"{self.place}: "
        return start + "".join(
            spell(part) if isinstance(part, Option) else part for part in self.parts
        )

    def __str__(self) -> str:
        """Return the text for users of Python."""
        return self.spelled(str)


class NotMergeableError(ExplainedError):
    """Two states describe different things and have no common merge."""


class StateFormatError(ExplainedError):
    """A saved file is truncated, foreign, damaged or newer than this release reads."""


class StreamExhaustedError(RuntimeError):
    """A source that can be read only once was asked for its rows again."""


class SourceError(ExplainedError):
    """A file or table holds something that cannot be read as rows of numbers."""


class PartitionError(ExplainedError):
    """A partition of distributed rows cannot be read or learned from; the text says which."""


class ConcurrentUseError(RuntimeError):
    """A thread used an object while another one was changing it."""


def parts_of(error: BaseException) -> tuple[str | Option, ...]:
    """Return what an error says, as parts of the text of one that tells where it happened."""
    if isinstance(error, ExplainedError):
        return (*(() if error.place is None else (f"{error.place}: ",)), *error.parts)
    return (str(error) or type(error).__name__,)
