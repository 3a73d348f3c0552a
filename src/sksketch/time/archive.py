"""States of past periods in one directory, and any range of them by few merges."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sksketch._typing import PathLike
from sksketch.exceptions import ExplainedError, Option, StateFormatError
from sksketch.models.base import Estimator
from sksketch.models.runner import restored
from sksketch.sketches.windows.times import DATES, NUMBERS, as_moment, of_moment, shown
from sksketch.state.disk import lock, replacing, sweep
from sksketch.state.persistence import read_state, write_state
from sksketch.time.admission import changed_encoder, check_mergeable, checked_state
from sksketch.time.periods import Cell, Moment, Period, Periods

# What the files of an archive are called: its mark, the states, and groups of them that are merged.
MARK, STATES, MERGED, LOCK = "archive.txt", "periods", "merged", "lock"
# What made rows of numbers of the tables of all periods.
ENCODER = "encoder.sks"
TITLE = "sksketch archive 1"


class Archive:
    """States of periods that do not overlap, of which any range is answered by few merges.

    Parameters
    ----------
    path : str or path
        Directory of the archive; it is made by the first `add`.

    See Also
    --------
    SlidingWindow : The last rows of a stream alone.
    compare : What certainly changed between two states.

    Notes
    -----
    Each state is a file of its own, written as a whole or not at all; that it is there is all that
    makes it count. Beside them lie merged groups, a binary tree over time, which are written once
    no state can come into them in order. A range takes as many merges as the tree is deep, and not
    as many as it has states. Groups that are missing, because a process was killed, are made up
    for; those with a state that is replaced are removed before it is.

    Periods are half-open, [start, end). A late one may fill a gap. The tree is that of the dyadic
    intervals of stream algorithms [1]_, over time and not over numbers of rows.

    References
    ----------
    .. [1] Arasu, A. and Manku, G. S. (2004). "Approximate Counts and Quantiles over Sliding
       Windows". PODS. doi:10.1145/1055558.1055598

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sksketch import StreamingPCA
    >>> rng, folder = np.random.default_rng(0), tempfile.mkdtemp()
    >>> archive = Archive(f"{folder}/sales")
    >>> for day in range(1, 8):
    ...     pca = StreamingPCA(2).fit(rng.standard_normal((100, 5)))
    ...     archive.add(pca, f"2026-03-0{day}", f"2026-03-0{day + 1}")
    >>> archive
    <Archive: 7 periods from 2026-03-01 to 2026-03-08>
    >>> archive.query("2026-03-02", "2026-03-07").n_samples_seen_
    500
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise NotADirectoryError(f"{self.path} is a file; an archive is a directory")
        if self.path.is_dir() and not is_archive(self.path) and any(self.path.iterdir()):
            raise ValueError(
                f"the directory {self.path} has other files and is no archive; name a new one"
            )

    def __repr__(self) -> str:
        kind, periods = self._read()
        if not len(periods):
            return "<Archive: no periods>"
        start, end = shown(periods[0].start, kind), shown(periods[len(periods) - 1].end, kind)
        return f"<Archive: {len(periods)} periods from {start} to {end}>"

    def __len__(self) -> int:
        return len(self._read()[1])

    def periods(self) -> list[tuple[Any, Any]]:
        """Return start and end of every period, in order.

        Returns
        -------
        list of pairs
            Of ``numpy.datetime64``, or of floats where periods were given as numbers.
        """
        kind, periods = self._read()
        found = (periods[i] for i in range(len(periods)))
        return [(of_moment(start, kind), of_moment(end, kind)) for start, end in found]

    def add(
        self,
        state: Any,
        start: object,
        end: object,
        *,
        replace: bool = False,
        encoder: Estimator | None = None,
    ) -> None:
        """Add the state of the rows of a period; the archive has it as a whole or not at all.

        Parameters
        ----------
        state : Sketch or estimator
            What has learned from these rows: mergeable with those of the other periods.
        start, end : number, datetime64, datetime or str
            The period, without its end. All periods of an archive are dates or all are numbers.
        replace : bool, default=False
            Replace the state of exactly this period, if there is one.
        encoder : TableEncoder, default=None
            What made the rows of a table; it has to be the same for all periods.

        Raises
        ------
        ValueError
            If the period overlaps another one, or has a state already that is not to be replaced.
        NotMergeableError
            If the state cannot be merged with the others.
        """
        period, kind = _as_period(start, end)
        twin = checked_state(state)
        self._make(kind)
        with self._locked():
            known, periods = self._read()
            _check_kind(kind, known)
            new_encoder = changed_encoder(
                self.path / ENCODER, None if encoder is None else encoder.state(), len(periods)
            )
            first, stop = periods.overlapping(*period)
            same = stop - first == 1 and periods[first] == period
            if first < stop and not (same and replace):
                raise _overlap(period, periods[first], kind, same)
            if len(periods) > same:
                # What is not replaced has to be mergeable with it.
                other = 0 if not (same and first == 0) else 1
                check_mergeable(self._load(self._file(periods[other])), twin)
            # Whatever has rows of this time must not be found once the new state is there.
            for file, cell in self._groups() if first < len(periods) else []:
                if cell.start < period.end and period.start < cell.end:
                    file.unlink(missing_ok=True)
            if new_encoder is not None:
                write_state(new_encoder, self.path / ENCODER)
            twin.compact()
            write_state(twin.state(), self._file(period))
            periods = periods.with_one(period)
            self._build(periods, 0, len(periods))

    def encoder(self) -> Any:
        """Return what made rows of numbers of the tables of all periods.

        Returns
        -------
        TableEncoder or None
            A copy, with which the rows of further periods are encoded; None for rows of numbers.
        """
        kept = self.path / ENCODER
        return restored(read_state(kept)) if kept.exists() else None

    def query(self, start: object = None, end: object = None) -> Any:
        """Return one sketch or estimator of all rows from ``start`` to before ``end``.

        Parameters
        ----------
        start, end : number, datetime64, datetime or str, default=None
            Where a period begins and where one ends; the first and the last if not given.

        Returns
        -------
        Sketch or estimator
            With the certificate of what it was merged from.

        Raises
        ------
        ValueError
            If a period is cut, or some time in between has no state; the message says which.
        """
        with self._locked(shared=True):
            states = self._loaded(start, end)
        return self._merged(states)

    def _loaded(self, start: object, end: object) -> list[Any]:
        """Return states that together are those of a range, each once."""
        kind, periods = self._read()
        if not len(periods):
            raise ValueError(f"the archive {self.path} has no periods yet; add some")
        whole = Period(periods[0].start, periods[len(periods) - 1].end)
        bounds = []
        for given, otherwise in ((start, whole.start), (end, whole.end)):
            moment, its_kind = (otherwise, kind) if given is None else as_moment(given)
            _check_kind(its_kind, kind)
            bounds.append(moment)
        first, stop = _range(periods, Period(*bounds), kind)
        return [self._load(file) for file in self._cover(periods, first, stop)]

    # Files

    def _make(self, kind: str) -> None:
        """Make the directory, unless it is there."""
        for name in (STATES, MERGED):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        if not is_archive(self.path):
            with replacing(self.path / MARK) as file:
                file.write(f"{TITLE} {kind}\n".encode())

    @contextmanager
    def _locked(self, shared: bool = False) -> Iterator[None]:
        """Let one process at a time add to the archive, or any number read what stays as it is."""
        file, flags = self.path / LOCK, os.O_RDONLY if shared else os.O_CREAT | os.O_RDWR
        if shared and not file.exists():
            # Nobody has added anything.
            yield
            return
        descriptor = os.open(file, flags, 0o666)
        try:
            lock(descriptor, wait=True, shared=shared)
            yield
        finally:
            os.close(descriptor)

    def _read(self) -> tuple[str, Periods]:
        """Return what moments are here, and the periods."""
        if not is_archive(self.path):
            return DATES, Periods([])
        words = (self.path / MARK).read_text().split()
        kind = words[-1]
        if kind not in (DATES, NUMBERS) or words[:-1] != TITLE.split():
            raise StateFormatError(
                f"{self.path / MARK} is not the mark of an archive that this release reads; "
                "upgrade sksketch"
            )
        read = int if kind == DATES else float.fromhex
        found = []
        for name in os.listdir(self.path / STATES):
            if name.endswith(".sks") and not name.startswith("."):
                with suppress(ValueError):
                    start, end = map(read, name.removesuffix(".sks").split("_"))
                    found.append(Period(start, end))
        return kind, Periods(found)

    def _file(self, period: Period) -> Path:
        names = (str(m) if isinstance(m, int) else m.hex() for m in period)
        return self.path / STATES / f"{'_'.join(names)}.sks"

    def _group(self, cell: Cell) -> Path:
        return self.path / MERGED / f"{cell.level}_{cell.number}.sks"

    def _groups(self) -> list[tuple[Path, Cell]]:
        found = []
        for file in (self.path / MERGED).glob("*.sks"):
            with suppress(ValueError):
                level, number = map(int, file.stem.split("_"))
                found.append((file, Cell(level, number)))
        return found

    def _load(self, file: Path) -> Any:
        return restored(read_state(file))

    # The tree

    def _cover(self, periods: Periods, first: int, stop: int) -> Iterator[Path]:
        """Yield files that together have the states of some periods, in order, each once."""
        if stop - first == 1:
            yield self._file(periods[first])
            return
        cell = periods.cell(first, stop)
        if cell is not None and periods.inside(cell) == (first, stop):
            group = self._group(cell)
            if group.exists():
                yield group
                return
        for part in periods.split(first, stop):
            yield from self._cover(periods, *part)

    def _build(self, periods: Periods, first: int, stop: int) -> None:
        """Write the groups that are complete and not there yet."""
        if stop - first < 2:
            return
        cell = periods.cell(first, stop)
        latest = periods[len(periods) - 1].end
        complete = cell is not None and cell.end <= latest
        if complete and cell is not None and self._group(cell).exists():
            return
        for part in periods.split(first, stop):
            self._build(periods, *part)
        if complete and cell is not None:
            files = list(self._cover(periods, first, stop))
            merged = self._merged([self._load(file) for file in files])
            merged.compact()
            group = self._group(cell)
            sweep(group)
            write_state(merged.state(), group)

    @staticmethod
    def _merged(models: list[Any]) -> Any:
        whole, *others = models
        for other in others:
            whole.merge(other)
        return whole


def is_archive(path: PathLike) -> bool:
    """Return whether a directory is an archive.

    >>> is_archive("no-such-directory")
    False
    """
    return (Path(path) / MARK).is_file()


def _as_period(start: object, end: object) -> tuple[Period, str]:
    (first, kind), (last, other) = as_moment(start), as_moment(end)
    if kind != other:
        raise ValueError(f"start={start!r} and end={end!r} are of two kinds; give both alike")
    if not first < last:
        raise ValueError(f"the period from {start} to {end} is empty; give an end after its start")
    return Period(first, last), kind


def _check_kind(kind: str, known: str) -> None:
    if kind != known:
        raise ValueError(f"periods of this archive are {known}, got {kind}; give the same")


def _overlap(period: Period, other: Period, kind: str, same: bool) -> ValueError:
    start, end = (shown(moment, kind) for moment in period)
    if same:
        return ExplainedError(
            f"the archive has a state from {start} to {end} already; pass ",
            Option("replace", True),
            " to put this one in its place",
        )
    theirs = " to ".join(shown(moment, kind) for moment in other)
    return ValueError(
        f"the period from {start} to {end} overlaps that from {theirs}, and rows would count "
        "twice; give periods that do not overlap"
    )


def _range(periods: Periods, asked: Period, kind: str) -> tuple[int, int]:
    """Return which periods make up a range, or say which time is missing or cut."""
    if not asked.start < asked.end:
        start, end = (shown(moment, kind) for moment in asked)
        raise ValueError(f"the range from {start} to {end} is empty; give an end after its start")
    first, stop = periods.overlapping(*asked)

    def missing(start: Moment, end: Moment) -> ValueError:
        return ValueError(
            f"the archive has no state from {shown(start, kind)} to {shown(end, kind)}; "
            "add it, or ask for a range without that time"
        )

    if first == stop:
        raise missing(*asked)
    for moment, period in ((asked.start, periods[first]), (asked.end, periods[stop - 1])):
        if period.start < moment < period.end:
            start, end = (shown(part, kind) for part in period)
            raise ValueError(
                f"{shown(moment, kind)} cuts the period from {start} to {end}; ask from or up to "
                "one of its ends"
            )
    if periods[first].start > asked.start:
        raise missing(asked.start, periods[first].start)
    if (i := periods.gap(first, stop)) is not None:
        raise missing(periods[i].end, periods[i + 1].start)
    if periods[stop - 1].end < asked.end:
        raise missing(periods[stop - 1].end, asked.end)
    return first, stop
