"""The most frequent values of a stream, in flat memory, with a bound on every count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np


class FrequentValues:
    """Counts of the most frequent values; those of the others are lost, and all are counted less.

    Parameters
    ----------
    capacity : int
        Values that are remembered: as long as there are no more, counts are exact.

    Attributes
    ----------
    counts : dict
        Values with their counts, each too small by at most ``error``; so is the count, zero, of
        every value that is not there.
    error : int
        At most the number of all values seen, divided by ``capacity + 1``.

    Notes
    -----
    As in the mergeable form of Misra and Gries' summary [1]_: whenever there are more values than
    may stay, the largest count that may not is taken from all of them. Each time at least
    ``capacity + 1`` counts lose as much, which bounds the sum of what any one loses.

    References
    ----------
    .. [1] Agarwal, P. K., Cormode, G., Huang, Z., Phillips, J. M., Wei, Z. and Yi, K. (2013).
       "Mergeable Summaries". ACM Transactions on Database Systems 38(4).

    Examples
    --------
    >>> values = FrequentValues(2)
    >>> values.add([("a", 5), ("b", 2), ("c", 1)])
    >>> values.counts, values.error
    ({'a': 4, 'b': 1}, 1)
    """

    def __init__(
        self, capacity: int, counts: Mapping[str, int] | None = None, error: int = 0
    ) -> None:
        self.capacity = capacity
        self.counts = dict(counts or {})
        self.error = error

    def has_room_for(self, values: Iterable[str]) -> bool:
        """Return whether counts stay exact with these values."""
        return len(self.counts.keys() | values) <= self.capacity

    def add(self, pairs: Iterable[tuple[str, int]]) -> None:
        """Add values with how often they came."""
        counts = self.counts
        for value, count in pairs:
            counts[value] = counts.get(value, 0) + count
        if len(counts) > self.capacity:
            ranked = np.fromiter(counts.values(), np.int64, len(counts))
            cut = int(np.partition(ranked, -self.capacity - 1)[-self.capacity - 1])
            self.counts = {value: n - cut for value, n in counts.items() if n > cut}
            self.error += cut

    def merge(self, other: FrequentValues) -> None:
        """Add what another one has counted."""
        self.error += other.error
        self.add(other.counts.items())
