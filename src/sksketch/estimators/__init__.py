"""Estimators with scikit-learn's contract."""

from sksketch.estimators._base import SketchEstimator
from sksketch.estimators.decomposition import StreamingPCA, StreamingSVD

__all__ = ["SketchEstimator", "StreamingPCA", "StreamingSVD"]
