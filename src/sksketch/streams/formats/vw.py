"""Vowpal Wabbit text: blocks of lines, their features hashed by a compiled kernel to CSR rows."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

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

# The default of Vowpal Wabbit.
N_FEATURES = 2**18
LONGEST_WORD = 1000

COMPLAINTS = {
    3: "there is no bar in the line that begins with {!r}; write 'label | name:value ...'",
    4: "{!r} is too much before the bar; write 'label importance initial 'tag |'",
    5: "the label {!r} is not a number; repair or remove the line",
    6: "the importance {!r} is not a number from 0 on; repair or remove the line",
    7: "the initial prediction {!r} is not a number; repair or remove it",
    8: "the value of {!r} is not a number; repair or remove the line",
}


class Parsed(NamedTuple):
    """The rows of one block of lines, entries in the order of the line."""

    labels: Array
    weights: Array
    indptr: Array
    indices: Array
    data: Array
    # The first line with an initial prediction other than 0; 0 if none has one.
    initial_at: int


class VwReader:
    """The rows of Vowpal Wabbit's text files, or of the standard input (``files`` is None).

    The column of a feature is the 32-bit MurmurHash3 of its name, seeded with that of its
    namespace, in the lowest bits; a name that is a whole number is added to the seed instead,
    which is 0 without a namespace. These are the columns of Vowpal Wabbit itself. The importance
    of a line is the weight of its row; an initial prediction is not used, with a warning.
    """

    ahead = BLOCKS_AHEAD
    feature_names = None
    n_rows = None

    def __init__(self, files: list[File] | None, choice: Choice, n_features: int | None) -> None:
        self.n_targets = int(choice.wants_label("vw"))
        self.target_names = ["label"] if self.n_targets else None
        self.n_features = N_FEATURES if n_features is None else n_features
        if not 1 <= self.n_features <= 2**31 or self.n_features & (self.n_features - 1):
            raise ExplainedError(
                Option("n_features"),
                f" is {n_features}; names are hashed to a power of two of them, such as "
                f"{N_FEATURES}",
            )
        self._files = files
        self.reads_once = files is None
        self._blocks: Iterator[TextBlock] | None = None
        if files is None:
            blocks = text_blocks(None)
            first = next(blocks, None)
            self._input = input_fingerprint(first)
            self._blocks = blocks if first is None else chain([first], blocks)
        self._dtype = np.dtype(np.float64 if choice.dtype is None else choice.dtype)
        self._warned = False

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row``, by reading from the start."""
        if self._files is not None:
            raw_blocks = (
                p for file in self._files for p in self._raw_blocks(text_blocks(file), file)
            )
            return skip_rows(raw_blocks, start_row)
        if self._blocks is None:
            raise StreamExhaustedError(INPUT_IS_READ)
        blocks, self._blocks = self._blocks, None
        return skip_rows(self._raw_blocks(blocks, None), start_row)

    def _raw_blocks(self, blocks: Iterator[TextBlock], file: File | None) -> Iterator[RawBlock]:
        for block in blocks:
            labels, weights, indptr, indices, data, initial_at = parse(block, self.n_features, file)
            if initial_at and not self._warned:
                self._warned = True
                warnings.warn(
                    f"{name_of(file)}, line {initial_at}: the initial prediction is not used, nor "
                    "are those of other lines; subtract them from the labels, or leave them out",
                    stacklevel=2,
                )

            def place(i: int, block: TextBlock = block) -> str:
                return f"{name_of(file)}, line {line_of_row(block, i)}"

            shape = (len(labels), self.n_features)
            X = sp.csr_array((data.astype(self._dtype, copy=False), indices, indptr), shape=shape)
            X.sum_duplicates()
            weighted = weights if (weights != 1.0).any() else None
            yield RawBlock(X, labels if self.n_targets else None, place, weighted)

    def division(self) -> Division:
        """Return whole files."""
        parts = [FilePart(file, 0, None) for file in self._files or []]
        return Division(parts, {"n_features": self.n_features})

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells the files."""
        if self._files is None:
            return self._input
        return {"kind": "vw", "files": fingerprint(self._files)}


def parse(block: TextBlock, n_features: int = N_FEATURES, file: File | None = None) -> Parsed:
    """Parse whole lines ``label |space name:value ...``; an error names file and line.

    >>> rows = parse(TextBlock(1, b"1 2.5 'first | 3:0.5 7 |user:2 7 name"))
    >>> rows.labels, rows.weights, rows.indices[:2], rows.data
    (array([1.]), array([2.5]), array([3, 7], dtype=int32), array([0.5, 1. , 2. , 2. ]))
    """
    text = np.frombuffer(block.text, np.uint8)
    # No feature without a blank before it.
    n_lines, n_entries = block.text.count(b"\n") + 1, np.count_nonzero(text <= 32)
    labels, weights, data = np.empty(n_lines), np.empty(n_lines), np.empty(n_entries)
    indices, indptr = np.empty(n_entries, np.int32), np.zeros(n_lines + 1, np.int32)
    progress = np.zeros(6, np.int64)
    odd: dict[int, float] = {}
    run = kernels().parse_vw_inplace
    while True:
        odd_at, odd_values = np.array([*odd], np.int64), np.array([*odd.values()])
        out = labels, weights, indptr, indices, data
        run(progress, *out, text, n_features - 1, odd_at, odd_values)
        code, position, rows, entries, lines, initial_at = progress.tolist()
        if code >= 0:
            break
        # A number that needs more care: its line is read again with the number known.
        start = block.text.rfind(b"\n", 0, position) + 1
        word = _word(block.text, position).rpartition(b":")[2]
        try:
            odd = {at: x for at, x in odd.items() if at >= start} | {position: float(word)}
        except ValueError:
            code = -code
            break
        progress[1] = start
    if code:
        word = _word(block.text, position)[:40]
        complaint = COMPLAINTS[code].format(word.decode(errors="replace"))
        raise SourceError(f"{name_of(file)}, line {block.first_line + lines}: {complaint}")
    return Parsed(
        labels[:rows],
        weights[:rows],
        indptr[: rows + 1],
        indices[:entries],
        data[:entries],
        block.first_line + initial_at - 1 if initial_at else 0,
    )


def _word(text: bytes, position: int) -> bytes:
    """Return the word around a position, between blanks and bars."""
    before = re.search(rb"[^\x00- |]*\Z", text[max(0, position - LONGEST_WORD) : position])
    after = re.compile(rb"[^\x00- |]*").match(text, position)
    return (before[0] if before else b"") + (after[0] if after else b"")
