"""Sources of rows: files, arrays, tables and iterables."""

from sksketch.streams.blocks import (
    ArraySource,
    Block,
    BlockSource,
    IterableSource,
    as_source,
    reblock,
)
from sksketch.streams.formats.arrow import spare_memory
from sksketch.streams.open import open_rows
from sksketch.streams.parts import Part, divide
from sksketch.streams.source import RowSource

__all__ = [
    "ArraySource",
    "Block",
    "BlockSource",
    "IterableSource",
    "Part",
    "RowSource",
    "as_source",
    "divide",
    "open_rows",
    "reblock",
    "spare_memory",
]
