"""Sketches: small mergeable states that remember A'A."""

from sksketch.sketches.base import Sketch
from sksketch.sketches.catalog import load_sketch, make_sketch
from sksketch.sketches.certificate import Certificate
from sksketch.sketches.directions.exact_covariance import ExactCovariance
from sksketch.sketches.directions.frequent_directions import FrequentDirections
from sksketch.sketches.directions.sparse_frequent_directions import SparseFrequentDirections
from sksketch.sketches.directions.two_level_frequent_directions import TwoLevelFrequentDirections
from sksketch.sketches.projections.count_sketch import CountSketch
from sksketch.sketches.projections.projection import GaussianSketch, HadamardSketch, SignSketch
from sksketch.sketches.projections.row_sample_sketch import RowSampleSketch
from sksketch.sketches.windows.sliding_window import SlidingWindow
from sksketch.sketches.wrappers.centered import Centered
from sksketch.sketches.wrappers.regression import Regression

__all__ = [
    "Centered",
    "Certificate",
    "CountSketch",
    "ExactCovariance",
    "FrequentDirections",
    "GaussianSketch",
    "HadamardSketch",
    "Regression",
    "RowSampleSketch",
    "SignSketch",
    "Sketch",
    "SlidingWindow",
    "SparseFrequentDirections",
    "TwoLevelFrequentDirections",
    "load_sketch",
    "make_sketch",
]
