"""The table of shrink maps: brings the rows of features that missed some shrinks up to date.

The version of a feature row is the number of shrinks it has seen. The table holds products of
the maps of consecutive shrinks, one below the other, so that any version is a few products away
from now.
"""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.kernels.layout import BASE
from sksketch.online.kernels.records import Features, Maps
from sksketch.online.kernels.simd import add4, load4, store4, zero4


@jit
def pair_times_map(rows: Array, i: int, ii: int, maps: Array, node: int, spare: Array) -> None:
    """Multiply rows ``i`` and ``ii`` by the map of a node.

    Always in the same order, so that the bits do not depend on which rows come together. They
    may be the same row.
    """
    D = rows.shape[1]
    first, j = node * D, 0
    # Twelve columns at a time: six sums side by side keep the processor busy.
    while j + 12 <= D:
        a, b, c, d, e, f = zero4(), zero4(), zero4(), zero4(), zero4(), zero4()
        for k in range(D):
            x, y = rows[i, k], rows[ii, k]
            one, two, three = (
                load4(maps, first + k, j),
                load4(maps, first + k, j + 4),
                load4(maps, first + k, j + 8),
            )
            a, b, c = add4(a, x, one), add4(b, x, two), add4(c, x, three)
            d, e, f = add4(d, y, one), add4(e, y, two), add4(f, y, three)
        store4(spare, 0, j, a)
        store4(spare, 0, j + 4, b)
        store4(spare, 0, j + 8, c)
        store4(spare, 1, j, d)
        store4(spare, 1, j + 4, e)
        store4(spare, 1, j + 8, f)
        j += 12
    while j < D:
        a, d = zero4(), zero4()
        for k in range(D):
            one = load4(maps, first + k, j)
            a, d = add4(a, rows[i, k], one), add4(d, rows[ii, k], one)
        store4(spare, 0, j, a)
        store4(spare, 1, j, d)
        j += 4
    for j in range(0, D, 4):
        store4(rows, i, j, load4(spare, 0, j))
        store4(rows, ii, j, load4(spare, 1, j))


@jit
def node_of(version: int, now: int, S: int, level: int) -> int:
    """Return the node of a level on the way from ``version`` to ``now``: -1 skip, -2 arrived.

    Level 0 has a node for every version, to the end of its block of BASE versions. Level l has
    one for every completed block of BASE^l, from its end to the end of the block around it. Where
    that end is still to come, a node leads to ``now``.
    """
    first, size = 0, 1
    for _ in range(level):
        first += S // size
        size *= BASE
    if level == 0:
        return version if version < now else -2
    block = version // size
    end = (block + 1) * size
    if end >= now:
        return -2
    return -1 if (block + 1) % BASE == 0 else first + block


@jit
def catch_up(
    rows: Array, order: Array, ends: tuple[int, int], now: int, maps: Maps, spare: Array
) -> None:
    """Bring feature rows to ``now``, two of the same version at a time.

    ``order`` has their places by version, of which those between ``ends`` are meant, and below
    them the version of each place.
    """
    S, (n, stop) = maps.versions, ends
    while n < stop:
        i = order[0, n]
        version = order[1, i]
        n += 1
        ii = i
        if n < stop and order[1, order[0, n]] == version:
            ii = order[0, n]
            n += 1
        if version == now:
            continue
        pair_times_map(rows, i, ii, maps.table, version, spare)
        first, size = S, BASE
        end = (version // BASE + 1) * BASE
        while end < now:
            # Of completed blocks, the last one of a larger block ends where that ends.
            block = version // size
            if (block + 1) % BASE != 0:
                pair_times_map(rows, i, ii, maps.table, first + block, spare)
            first += S // size
            size *= BASE
            end = (version // size + 1) * size


@jit
def push_map(maps: Array, T_map: Array, now: int, S: int, spare: Array) -> None:
    """Add the map from ``now`` to the next version to all nodes that lead to ``now``."""
    D = len(T_map)
    first, size, level = 0, 1, 0
    while size <= S:
        around = size * BASE
        start = now // around * BASE
        # Level 0 has the version itself; the others blocks that were complete by now.
        stop = now + 1 if level == 0 else now // size
        for block in range(start, stop):
            top = (first + block) * D
            fresh = block == now if level == 0 else (block + 1) * size == now
            for r in range(0, D, 2):
                if fresh:
                    for j in range(D):
                        maps[top + r, j] = T_map[r, j]
                        maps[top + r + 1, j] = T_map[r + 1, j]
                else:
                    pair_times_map(maps, top + r, top + r + 1, T_map, 0, spare)
        first += S // size
        size = around
        level += 1


@jit
def flush(features: Features, maps: Maps, spare: Array) -> None:
    """Bring all features to the end of the epoch, of which the next one begins.

    A map is composed once for each version that some feature has.
    """
    R, place, n_features, S = features.rows, features.place, features.n_known, maps.versions
    whole = np.empty((R.shape[1], R.shape[1]))
    counts = np.zeros(S + 2, np.int64)
    for feature in range(n_features):
        if place[feature, 0] >= 0:
            counts[place[feature, 0] + 1] += 1
    for v in range(1, S + 2):
        counts[v] += counts[v - 1]
    order = np.empty(max(1, n_features), np.int64)
    for feature in range(n_features):
        v = place[feature, 0]
        if v >= 0:
            order[counts[v]] = feature
            counts[v] += 1
    # counts[v] is now where the features of version v end.
    start = 0
    for v in range(S):
        if counts[v] > start:
            _compose(maps.table, v, S, whole, spare)
            for n in range(start, counts[v], 2):
                one, two = order[n], order[min(n + 1, counts[v] - 1)]
                pair_times_map(R, one, two, whole, 0, spare)
        start = counts[v]
    for feature in range(n_features):
        if place[feature, 0] >= 0:
            place[feature, 0] = 0


@jit
def _compose(maps: Array, version: int, now: int, whole: Array, spare: Array) -> None:
    """Write the product of the maps from ``version`` to ``now`` to ``whole``."""
    D = len(whole)
    for r in range(0, D, 2):
        for j in range(D):
            whole[r, j] = maps[version * D + r, j]
            whole[r + 1, j] = maps[version * D + r + 1, j]
        level = 1
        while True:
            node = node_of(version, now, now, level)
            if node == -2:
                break
            if node >= 0:
                pair_times_map(whole, r, r + 1, maps, node, spare)
            level += 1
