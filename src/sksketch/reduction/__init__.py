"""Dimension reduction for learning: subspaces, random projections, dual recovery."""

from sksketch.reduction.random_reduction import RandomReduction
from sksketch.reduction.reduced_models import ReducedClassifier, ReducedRegressor
from sksketch.reduction.subspace_reduction import SubspaceReduction

__all__ = ["RandomReduction", "ReducedClassifier", "ReducedRegressor", "SubspaceReduction"]
