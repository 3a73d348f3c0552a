"""Estimators with scikit-learn's contract."""

from sksketch.estimators._base import SketchEstimator
from sksketch.estimators.decomposition import StreamingPCA, StreamingSVD
from sksketch.estimators.ridge import StreamingRidge
from sksketch.estimators.ridge_cv import StreamingRidgeCV

__all__ = [
    "SketchEstimator",
    "StreamingPCA",
    "StreamingRidge",
    "StreamingRidgeCV",
    "StreamingSVD",
]
