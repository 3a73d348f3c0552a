"""PCA and SVD of a stream of rows."""

from sksketch.decomposition.streaming_pca import StreamingPCA
from sksketch.decomposition.streaming_svd import StreamingSVD

__all__ = ["StreamingPCA", "StreamingSVD"]
