"""What remembers A'A."""

from sksketch.sketches.base import Sketch
from sksketch.sketches.catalog import load_sketch, make_sketch
from sksketch.sketches.certificate import Certificate
from sksketch.sketches.exact import ExactCovariance
from sksketch.sketches.frequent_directions import FrequentDirections
from sksketch.sketches.moments import Centered

__all__ = [
    "Centered",
    "Certificate",
    "ExactCovariance",
    "FrequentDirections",
    "Sketch",
    "load_sketch",
    "make_sketch",
]
