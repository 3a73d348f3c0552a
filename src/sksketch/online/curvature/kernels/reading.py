"""Reading a sketched learner: weights of features, and all of them up to date."""

from __future__ import annotations

import numpy as np

from sksketch._typing import Array
from sksketch.arrays.kernels.jit import jit
from sksketch.online.curvature.kernels.buffer import note_losses
from sksketch.online.curvature.kernels.layout import CACHED, NOW, USED
from sksketch.online.kernels.copying import copy_rows_inplace
from sksketch.online.kernels.feature_cache import load_rows
from sksketch.online.kernels.records import Batch, Features, Maps
from sksketch.online.kernels.shrink_maps import node_of


@jit
def read_all_weights(
    wanted: Array,
    features: Features,
    beta: Array,
    maps: Maps,
    counters: Array,
    ell: int,
    out: Array,
) -> None:
    """Write the weights of some features, a column for each output; changes nothing.

    A feature row r of version s has the weights r M [beta; I], where M leads from s to now, so
    one matrix M [beta; I] serves all features of a version.
    """
    place, C, Cp = features.place, features.cache, features.pending
    D, now, k, n_outputs = C.shape[1], counters[NOW], counters[USED], out.shape[1]
    leads, known = np.empty((now + 1, D, n_outputs)), np.zeros(now + 1, np.bool_)
    for n in range(len(wanted)):
        feature = wanted[n]
        version, slot = place[feature, 0], place[feature, 1]
        if slot < 0 and version >= 0 and not known[version]:
            known[version] = True
            _lead_to_now(leads[version], version, now, beta, ell, maps)
        for c in range(n_outputs):
            total = 0.0
            if slot >= 0:
                for r in range(k):
                    total += beta[r, c] * (C[slot, r] if r < ell else Cp[slot, r - ell])
                total += C[slot, ell + c]
            elif version >= 0:
                for j in range(D):
                    total += features.rows[feature, j] * leads[version, j, c]
            out[n, c] = total


@jit
def _lead_to_now(lead: Array, version: int, now: int, beta: Array, ell: int, maps: Maps) -> None:
    """Write M [beta; I] to ``lead``, where M leads from ``version`` to ``now``."""
    (D, n_outputs), nodes = lead.shape, np.empty(64, np.int64)
    for j in range(D):
        for c in range(n_outputs):
            lead[j, c] = beta[j, c] if j < ell else (1.0 if j == ell + c else 0.0)
    n_nodes, level = 0, 0
    while True:
        node = node_of(version, now, maps.versions, level)
        if node == -2:
            break
        if node >= 0:
            nodes[n_nodes] = node
            n_nodes += 1
        level += 1
    spare = np.empty(lead.shape)
    for m in range(n_nodes - 1, -1, -1):
        for i in range(D):
            for c in range(n_outputs):
                total = 0.0
                for j in range(D):
                    total += maps.table[nodes[m] * D + i, j] * lead[j, c]
                spare[i, c] = total
        copy_rows_inplace(lead, spare, D)


@jit
def load_all(
    features: Features, units: Array, maps: Maps, totals: tuple[Array, Array], ell: int
) -> None:
    """Bring every feature into the cache, which has room for them."""
    counters, n = totals[0], features.n_known
    ids, nothing = np.arange(n).astype(np.int32), np.empty(0)
    indptr = np.array([0, n], np.int64)
    batch = Batch(indptr, ids, nothing, nothing, nothing, nothing)
    order, bins = (
        np.empty((2, len(features.cache)), np.int32),
        np.empty(maps.versions + 4, np.int64),
    )
    spare, before = np.empty((2, features.cache.shape[1])), counters[CACHED]
    slots = np.empty(n, np.int32)
    load_rows(batch, slots, (0, 1), features, maps, counters, (order, bins, spare))
    note_losses(features, units, before, counters[CACHED], ell)
