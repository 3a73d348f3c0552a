"""Errors that callers may want to catch by name."""

from __future__ import annotations


class NotMergeableError(ValueError):
    """Two states describe different things and have no common merge."""


class StateFormatError(ValueError):
    """A saved file is truncated, foreign, damaged or newer than this release reads."""


class StreamExhaustedError(RuntimeError):
    """A source that can be read only once was asked for its rows again."""


class SourceError(ValueError):
    """A file or table holds something that cannot be read as rows of numbers."""


class PartitionError(ValueError):
    """A partition of distributed rows cannot be read or learned from; the text says which."""


class ConcurrentUseError(RuntimeError):
    """A thread used an object while another one was changing it."""
