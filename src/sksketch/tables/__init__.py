"""Tables as they come: columns of any type to rows of numbers, in one pass."""

from sksketch.tables.table_encoder import TableEncoder

__all__ = ["TableEncoder"]
