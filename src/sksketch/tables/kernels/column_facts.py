"""Places of the numbers that kernels and their callers share."""

from __future__ import annotations

# Partial sums of a column; a row adds to the one of its number. Their order is that of the rows,
# however these are cut into blocks, and the processor adds several at once.
N_LANES = 8
# Known of a column of numbers.
KNOWN, ORIGIN, LOW, HIGH, WHOLE = range(5)
N_FACTS = 5
