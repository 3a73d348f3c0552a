"""What remembers A'A."""

from sksketch.sketches.base import Sketch
from sksketch.sketches.catalog import load_sketch, make_sketch
from sksketch.sketches.certificate import Certificate
from sksketch.sketches.countsketch import CountSketch
from sksketch.sketches.exact import ExactCovariance
from sksketch.sketches.frequent_directions import FrequentDirections
from sksketch.sketches.moments import Centered
from sksketch.sketches.projection import GaussianSketch, HadamardSketch, SignSketch
from sksketch.sketches.regression import Regression
from sksketch.sketches.sampling import RowSampleSketch
from sksketch.sketches.sparse import SparseFrequentDirections
from sksketch.sketches.two_level import TwoLevelFrequentDirections

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
    "SparseFrequentDirections",
    "TwoLevelFrequentDirections",
    "load_sketch",
    "make_sketch",
]
