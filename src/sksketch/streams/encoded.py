"""Rows of numbers made of the tables of another source."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, Protocol, runtime_checkable

from sksketch.streams.blocks import Block
from sksketch.streams.prefetch import read_ahead
from sksketch.streams.source import RowSource


class Encoder(Protocol):
    """A maker of rows of numbers from tables, as a fitted `TableEncoder` does."""

    n_features_out_: int

    def transform(self, X: Any) -> Any:
        """Return rows of numbers."""

    def get_feature_names_out(self) -> Any:
        """Return the names of their columns."""


@runtime_checkable
class Selective(Protocol):
    """A maker of rows of numbers that does not need all columns of a table."""

    def columns_used(self) -> list[str]:
        """Return those that it needs."""


class EncodedSource(RowSource):
    """The rows of a source of raw tables as numbers.

    Parameters
    ----------
    source : RowSource
        Opened with ``raw=True``.
    encoder : Encoder
        A fitted one.
    identity : str
        Tells this encoder from another, for `fingerprint`.
    """

    def __init__(self, source: RowSource, encoder: Encoder, identity: str) -> None:
        vars(self).update(vars(source))
        self.encoder, self._identity = encoder, identity
        self.n_features = encoder.n_features_out_
        self.feature_names = [str(name) for name in encoder.get_feature_names_out()]
        self._tables = source
        self._read = (
            source.only(encoder.columns_used()) if isinstance(encoder, Selective) else source
        )

    def blocks(self, start_row: int = 0) -> Iterator[Block]:
        """Yield the rows in order, leaving out the first ``start_row``.

        Parameters
        ----------
        start_row : int, default=0
            Rows to leave out.

        Returns
        -------
        iterator of Block
            Rows of numbers, encoded in the background if the tables are read there.
        """
        tables = self._read.blocks(start_row)
        blocks = self._encoded(tables)
        return self._ahead(blocks) if self.in_background else blocks

    def _encoded(self, tables: Iterator[Block]) -> Generator[Block, None, None]:
        for block in encoded(tables, self.encoder):
            self.n_missing, self.n_dropped = self._read.n_missing, self._read.n_dropped
            yield block

    def _ahead(self, blocks: Generator[Block, None, None]) -> Iterator[Block]:
        with closing(read_ahead(blocks, 1)) as ahead:
            yield from ahead

    def fingerprint(self) -> dict[str, Any]:
        """Return plain values that tell these rows from others, to check before resuming.

        Returns
        -------
        dict
            That of the tables, with what tells the encoder.
        """
        return {**self._tables.fingerprint(), "encoder": self._identity}


def encoded(tables: Iterator[Block], encoder: Encoder) -> Iterator[Block]:
    """Yield blocks of tables as blocks of numbers."""
    for table in tables:
        yield Block(encoder.transform(table.X), table.y, table.sample_weight)
