"""Svmlight (libsvm) files: blocks of lines, parsed by a compiled kernel into CSR rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.arrays.kernels import kernels
from sksketch.exceptions import ExplainedError, Option, SourceError, StreamExhaustedError
from sksketch.streams.columns import Choice
from sksketch.streams.files import (
    INPUT_IS_READ,
    TextBlock,
    fingerprint,
    input_fingerprint,
    line_of_row,
    name_of,
    text_blocks,
)
from sksketch.streams.places.remote import File
from sksketch.streams.prefetch import BLOCKS_AHEAD
from sksketch.streams.source import Division, FilePart, RawBlock, skip_rows

COMPLAINTS = {
    2: "the label {!r} is not a number",
    3: "{!r} is not of the form index:value",
    4: "the index of {!r} is not a whole number from 0 to 2147483647",
    5: "the value of {!r} is not a number",
    6: "the index of {!r} is not above the one before it",
}


class Parsed(NamedTuple):
    """The rows of one block of lines, with indices as they stand in the file."""

    labels: Array
    indptr: Array
    indices: Array
    data: Array


class SvmlightReader:
    """The rows of svmlight files, or of the standard input (``files`` is None).

    Without ``n_features`` all files are parsed once when they are opened, to learn the number
    of columns and the base of the indices. With it the base is that of the first block: zero
    if an index zero is there, else one.
    """

    ahead = BLOCKS_AHEAD
    feature_names = None

    def __init__(
        self,
        files: list[File] | None,
        choice: Choice,
        n_features: int | None,
        zero_based: bool | Literal["auto"],
    ) -> None:
        self.n_targets = int(choice.wants_label("svmlight"))
        if zero_based not in (True, False, "auto"):
            raise ValueError(f"zero_based is {zero_based!r}; give True, False or 'auto'")
        if n_features is not None and n_features < 1:
            raise ExplainedError(
                Option("n_features"), f" is {n_features}; give at least 1, or None"
            )
        if files is None and n_features is None:
            raise ExplainedError(
                "the standard input is read once; pass ",
                Option("n_features"),
                " for svmlight lines",
            )
        self._files = files
        self.reads_once = files is None
        self._dtype = np.dtype(np.float64 if choice.dtype is None else choice.dtype)
        self.target_names = ["label"] if self.n_targets else None
        self.n_rows: int | None = None
        self._blocks: Iterator[TextBlock] | None = None
        self._first: TextBlock | None = None
        if files is None or n_features is not None:
            self._blocks = text_blocks(files[0] if files else None)
            self._first = next(self._blocks, None)
            self._input = input_fingerprint(self._first)
            smallest = self._look(
                [self._first] if self._first else [], files[0] if files else None
            )[1]
        else:
            looks = [self._look(text_blocks(file), file) for file in files]
            largest, smallest = max(x[0] for x in looks), min(x[1] for x in looks)
            self.n_rows = sum(x[2] for x in looks)
        self._base = int(smallest > 0) if zero_based == "auto" else int(not zero_based)
        self.n_features = n_features or max(1, largest + 1 - self._base)

    @staticmethod
    def _look(blocks: Iterable[TextBlock], file: File | None) -> tuple[int, int, int]:
        """Return the largest and smallest index and the number of rows."""
        largest, smallest, n_rows = -1, 2**31, 0
        for block in blocks:
            parsed = parse(block, file)
            largest = max(largest, int(parsed.indices.max(initial=-1)))
            smallest = min(smallest, int(parsed.indices.min(initial=2**31 - 1)))
            n_rows += len(parsed.labels)
        return largest, smallest, n_rows

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``, by reading from the start."""
        if self._files is not None:
            self._blocks = self._first = None
            files = self._files
            raw_blocks = (p for file in files for p in self._raw_blocks(text_blocks(file), file))
            return skip_rows(raw_blocks, start_row)
        if self._blocks is None:
            raise StreamExhaustedError(INPUT_IS_READ)
        blocks, first = self._blocks, self._first
        self._blocks = self._first = None
        return skip_rows(self._from_input(first, blocks), start_row)

    def _from_input(
        self, first: TextBlock | None, blocks: Iterator[TextBlock]
    ) -> Iterator[RawBlock]:
        if first is not None:
            yield from self._raw_blocks([first], None)
        yield from self._raw_blocks(blocks, None)

    def _raw_blocks(self, blocks: Iterable[TextBlock], file: File | None) -> Iterator[RawBlock]:
        for block in blocks:
            labels, indptr, indices, data = parse(block, file)

            def place(i: int, block: TextBlock = block) -> str:
                return f"{name_of(file)}, line {line_of_row(block, i, b'#')}"

            indices -= self._base
            if len(indices) and not 0 <= indices.min() <= indices.max() < self.n_features:
                wrong = np.flatnonzero((indices < 0) | (indices >= self.n_features))[0]
                row = int(np.searchsorted(indptr, wrong, side="right")) - 1
                self._refuse(place(row), int(indices[wrong]) + self._base)
            shape = (len(labels), self.n_features)
            X = sp.csr_array((data.astype(self._dtype, copy=False), indices, indptr), shape=shape)
            yield RawBlock(X, labels if self.n_targets else None, place)

    def _refuse(self, where: str, index: int) -> None:
        if index < self._base:
            raise SourceError(
                "index 0 where counting began at 1; pass zero_based=True", place=where
            )
        raise SourceError(
            f"index {index} is beyond the {self.n_features} features, counted from {self._base}; "
            "pass a larger ",
            Option("n_features"),
            place=where,
            column=index,
        )

    def division(self) -> Division:
        """Return whole files."""
        options = {"n_features": self.n_features, "zero_based": not self._base}
        return Division([FilePart(file, 0, None) for file in self._files or []], options)

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells the files."""
        if self._files is None:
            return self._input
        return {"kind": "svmlight", "base": self._base, "files": fingerprint(self._files)}


def parse(block: TextBlock, file: File | None = None) -> Parsed:
    """Parse whole lines ``label index:value ...``; an error names file and line.

    >>> rows = parse(TextBlock(1, b"1 3:0.5 7:2 # a comment"))
    >>> rows.labels, rows.indices, rows.data
    (array([1.]), array([3, 7], dtype=int32), array([0.5, 2. ]))
    """
    text = np.frombuffer(block.text, np.uint8)
    n_lines, n_entries = block.text.count(b"\n") + 1, block.text.count(b":")
    labels, data = np.empty(n_lines), np.empty(n_entries)
    indices, indptr = np.empty(n_entries, np.int32), np.full(n_lines + 1, -1, np.int32)
    indptr[0] = 0
    progress = np.zeros(5, np.int64)
    run = kernels().parse_svmlight_inplace
    run(progress, labels, indptr, indices, data, text)
    while progress[0] == 1:
        _settle(progress, labels, indptr, data, block.text)
        if progress[0] == 0:
            run(progress, labels, indptr, indices, data, text)
    code, position, rows, entries, lines = progress.tolist()
    if code:
        word = _word(block.text, position).decode(errors="replace")[:40]
        raise SourceError(
            f"{name_of(file)}, line {block.first_line + lines}: {COMPLAINTS[code].format(word)}; "
            "repair or remove the line"
        )
    return Parsed(labels[:rows], indptr[: rows + 1], indices[:entries], data[:entries])


def _settle(progress: Array, labels: Array, indptr: Array, data: Array, text: bytes) -> None:
    """Put the number that the kernel left to us into its place, and continue after it."""
    position, row, entries = int(progress[1]), int(progress[2]), int(progress[3])
    word = _word(text, position)
    label = indptr[row + 1] == entries
    try:
        number = float(word if label else word.partition(b":")[2])
    except ValueError:
        # A word of letters that is no number: the kernel's codes for label and value.
        progress[0] = 2 if label else 5
        return
    if label:
        labels[row] = number
    else:
        data[indptr[row + 1] - 1] = number
    progress[0], progress[1] = 0, position + len(word)


def _word(text: bytes, position: int) -> bytes:
    end = position
    while end < len(text) and text[end] > 32 and text[end] != 35:
        end += 1
    return text[position:end]
