"""The table of maps that lead features over the shrinks that they have missed."""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array
from sksketch.online.kernels import layout

# Shrinks before all features are brought up to date; more for more columns, while the table of
# maps stays small.
FEWEST_VERSIONS, MOST_VERSIONS = 256, 4096
TABLE_BYTES = 16 << 20


def versions(n_columns: int, width: int) -> int:
    """Return how many shrinks the table of maps takes before it begins anew.

    >>> versions(24, 1000), versions(24, 10**6)
    (256, 2048)
    """
    S = FEWEST_VERSIONS
    while 8 * S * n_columns <= width and 2 * S < MOST_VERSIONS + 1:
        if 2 * S * 8 / 7 * n_columns**2 * 8 > TABLE_BYTES:
            break
        S *= 2
    return S


def live_nodes(now: int, n_versions: int) -> Array:
    """Return the nodes of the table that have been written in this epoch, up to a version."""
    size, first = 1, 0
    nodes = [np.arange(now)]
    while size * layout.BASE < n_versions:
        first += n_versions // size
        size *= layout.BASE
        blocks = np.arange(max(0, (now - 1) // size))
        # The last block of a larger one ends where that ends, and needs no map.
        nodes.append(first + blocks[(blocks + 1) % layout.BASE != 0])
    return np.concatenate(nodes)
