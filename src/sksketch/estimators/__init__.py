"""Estimators with scikit-learn's contract."""

from sksketch.estimators.decomposition import StreamingPCA, StreamingSVD

__all__ = ["StreamingPCA", "StreamingSVD"]
