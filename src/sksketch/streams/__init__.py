"""Where rows come from."""

from sksketch.streams.blocks import (
    ArraySource,
    Block,
    BlockSource,
    IterableSource,
    as_source,
    reblock,
)

__all__ = ["ArraySource", "Block", "BlockSource", "IterableSource", "as_source", "reblock"]
