"""Parts of a source that can be read apart, described so plainly that they can be sent away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from sksketch.exceptions import Option, SourceError
from sksketch.streams.blocks import Block
from sksketch.streams.encoded import EncodedSource, Encoder, encoded
from sksketch.streams.open import open_rows
from sksketch.streams.places.remote import File, RemoteFile
from sksketch.streams.source import FilePart, RowSource

# A part has about this much as float64: the same parts whoever reads them, however many do.
PART_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Part:
    """Rows of one file, and how to open it."""

    file: str
    options: dict[str, Any]
    first_row: int = 0
    # None for all rows to the end of the file.
    n_rows: int | None = None
    # Makes rows of numbers of tables.
    encoder: Encoder | None = None

    def blocks(self) -> Iterator[Block]:
        """Yield the rows of this part."""
        source = open_rows(self.file, **self.options, read_ahead=False)
        if self.n_rows is not None:
            source = source.between(self.first_row, self.first_row + self.n_rows)
        return source.blocks() if self.encoder is None else encoded(source.blocks(), self.encoder)


def divide(source: RowSource, options: dict[str, Any]) -> list[Part]:
    """Cut an open source into parts: files, or row ranges of a large one.

    Parameters
    ----------
    source : RowSource
        Of files.
    options : dict
        With which `open_rows` has opened it.

    Returns
    -------
    list of Part
        In the order of the rows.
    """
    if source.missing == "mean":
        raise SourceError(
            Option("missing", "mean"),
            " takes the mean of all rows above, which parts do not know; drop or fill the rows "
            "before",
        )
    division = source.division()
    if not division.parts:
        raise SourceError("the standard input cannot be cut into parts; give files")
    if len(division.parts) == 1 and division.parts[0].n_rows is None:
        raise SourceError(
            "one file of text can only be read from its start; give several files, or Parquet, "
            ".npy or Zarr, to read parts at once",
            place=str(division.parts[0].file),
        )
    opening = {**options, **division.options}
    most_rows = max(1, PART_BYTES // (8 * source.n_features))
    by_file = groupby(division.parts, key=lambda part: part.file)
    parts = [part for file, found in by_file for part in _parts(file, found, opening, most_rows)]
    encoder = source.encoder if isinstance(source, EncodedSource) else None
    return parts if encoder is None else [replace(part, encoder=encoder) for part in parts]


def _parts(
    file: File, parts: Iterator[FilePart], options: dict[str, Any], most_rows: int
) -> Iterator[Part]:
    """Join row ranges of a file until they make a part."""
    # Whoever reads it may stand elsewhere.
    name = str(file) if isinstance(file, RemoteFile) else os.path.abspath(file)
    first, rows = 0, 0
    for part in parts:
        if part.n_rows is None:
            yield Part(name, options)
            return
        if rows and rows + part.n_rows > most_rows:
            yield Part(name, options, first, rows)
            first, rows = part.first_row, 0
        rows += part.n_rows
    if rows:
        yield Part(name, options, first, rows)
