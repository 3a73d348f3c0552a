"""Named records of arrays that the compiled loops of the online learners share.

Names follow the algorithm: N rows of buffer, ell of them kept by a shrink, D columns of a feature
row with its padding, S versions in an epoch, after which all features are brought up to date.
"""

from __future__ import annotations

from typing import NamedTuple

from sksketch._typing import Array


class Batch(NamedTuple):
    """Rows in compressed form with numbered features, their targets and weights."""

    indptr: Array
    ids: Array
    data: Array
    targets: Array
    weights: Array
    # Receives the raw score of each row before it is learned from.
    scores: Array


class LossRule(NamedTuple):
    """The loss of a prediction: a code of `layout`, the knee of Huber's, and whether C grows."""

    kind: int
    knee: float
    grows: bool


class Totals(NamedTuple):
    """Numbers of the whole stream, at the places that `layout` names."""

    counters: Array
    sums: Array


class Features(NamedTuple):
    """State of every feature, and of those that rows since the last shrink have."""

    # (n_features, D): [B_1j .. B_ell,j | wbar_j], of the version that `place` says.
    rows: Array
    # (n_features, 2): version, -1 before the first row; slot of the cache, -1 outside of it.
    place: Array
    # (slots, D) and (slots, N - ell): feature rows up to date, and entries of pending rows.
    cache: Array
    pending: Array
    # (slots,): the feature of each slot.
    cached: Array
    n_known: int


class Pending(NamedTuple):
    """Rows since the last shrink as lists of entries: where each begins, slots and values."""

    start: Array
    slot: Array
    value: Array


class Factor(NamedTuple):
    """K = BB' and the Cholesky factor L of K + alpha I; w = wbar + B'beta and u = Bw."""

    K: Array
    L: Array
    beta: Array
    u: Array


class Maps(NamedTuple):
    """The table of products of shrink maps, one below the other, and the versions it covers."""

    table: Array
    versions: int


class ShrinkRule(NamedTuple):
    """How a full buffer is shrunk."""

    # Rows that are kept, ell.
    kept: int
    # The first of them from which the cut is subtracted.
    first_reduced: int
    raises_ridge: bool
    # Whether learning pauses after a shrink, for the buffer to grow.
    pauses: bool


class OjaState(NamedTuple):
    """V = F Z with its eigenvalues; ``rows`` are [Z_1j .. Z_mj | wbar_j], w = wbar + Z'beta."""

    rows: Array
    F: Array
    inverse: Array
    eigenvalues: Array
    beta: Array


class ProjectedState(NamedTuple):
    """``rows`` are [B_1j .. B_mj | wbar_j]; K = BB' and its factor L; w = wbar + B'beta."""

    rows: Array
    K: Array
    L: Array
    beta: Array
    # A random vector for each row that is learned from.
    signs: Array
