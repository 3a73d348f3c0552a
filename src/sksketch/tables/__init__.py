"""Tables as they come: columns of any type to rows of numbers, in one pass."""

from sksketch.tables.formula_encoder import FormulaEncoder
from sksketch.tables.table_encoder import TableEncoder

__all__ = ["FormulaEncoder", "TableEncoder"]
