"""Rows have a time: windows, archives of states, comparisons and rows that do not fit."""

from sksketch.sketches.windows.sliding_window import SlidingWindow
from sksketch.time.archive import Archive
from sksketch.time.comparison import Comparison, compare
from sksketch.time.outlier_detector import StreamingOutlierDetector

__all__ = ["Archive", "Comparison", "SlidingWindow", "StreamingOutlierDetector", "compare"]
