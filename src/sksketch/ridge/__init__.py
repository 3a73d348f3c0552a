"""Ridge regression from one pass: solutions, bounds, and the choice of a penalty."""

from sksketch.ridge.streaming_ridge import StreamingRidge
from sksketch.ridge.streaming_ridge_cv import StreamingRidgeCV

__all__ = ["StreamingRidge", "StreamingRidgeCV"]
