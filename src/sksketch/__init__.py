"""Learn from matrices that do not fit: one pass, flat memory, an error bound on every answer."""

from sksketch import datasets, metrics
from sksketch.estimators import StreamingPCA, StreamingSVD
from sksketch.exceptions import NotMergeableError, StateFormatError, StreamExhaustedError
from sksketch.loading import load
from sksketch.low_rank import LowRankPlusRidge
from sksketch.sketches import (
    Centered,
    Certificate,
    CountSketch,
    ExactCovariance,
    FrequentDirections,
    GaussianSketch,
    HadamardSketch,
    RowSampleSketch,
    SignSketch,
    Sketch,
    SparseFrequentDirections,
    TwoLevelFrequentDirections,
    make_sketch,
)

__version__ = "0.1.0"

__all__ = [
    "Centered",
    "Certificate",
    "CountSketch",
    "ExactCovariance",
    "FrequentDirections",
    "GaussianSketch",
    "HadamardSketch",
    "LowRankPlusRidge",
    "NotMergeableError",
    "RowSampleSketch",
    "SignSketch",
    "Sketch",
    "SparseFrequentDirections",
    "StateFormatError",
    "StreamExhaustedError",
    "StreamingPCA",
    "StreamingSVD",
    "TwoLevelFrequentDirections",
    "datasets",
    "load",
    "make_sketch",
    "metrics",
]
