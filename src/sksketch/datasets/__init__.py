"""Seeded synthetic rows with a known spectrum, made as they are read and never held whole."""

from sksketch.datasets.dense import (
    GaussianRows,
    drifting,
    low_rank_plus_noise,
    stationary,
    truncation_breaker,
)
from sksketch.datasets.regression import LinearModelRows
from sksketch.datasets.sparse import SparseSignRows

__all__ = [
    "GaussianRows",
    "LinearModelRows",
    "SparseSignRows",
    "drifting",
    "low_rank_plus_noise",
    "stationary",
    "truncation_breaker",
]
