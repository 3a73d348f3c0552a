"""Learn from matrices that do not fit: one pass, flat memory, an error bound on every answer."""

from sksketch import datasets, metrics
from sksketch.estimators import StreamingPCA, StreamingSVD
from sksketch.exceptions import NotMergeableError, StateFormatError, StreamExhaustedError
from sksketch.loading import load
from sksketch.low_rank import LowRankPlusRidge
from sksketch.sketches import (
    Centered,
    Certificate,
    ExactCovariance,
    FrequentDirections,
    Sketch,
    make_sketch,
)

__version__ = "0.1.0"

__all__ = [
    "Centered",
    "Certificate",
    "ExactCovariance",
    "FrequentDirections",
    "LowRankPlusRidge",
    "NotMergeableError",
    "Sketch",
    "StateFormatError",
    "StreamExhaustedError",
    "StreamingPCA",
    "StreamingSVD",
    "datasets",
    "load",
    "make_sketch",
    "metrics",
]
