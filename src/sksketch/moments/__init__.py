"""Read from moments: canonical correlations, partial least squares, generalized models."""

from sksketch.moments.streaming_cca import StreamingCCA
from sksketch.moments.streaming_glm import StreamingGLM
from sksketch.moments.streaming_pls import StreamingPLS

__all__ = ["StreamingCCA", "StreamingGLM", "StreamingPLS"]
