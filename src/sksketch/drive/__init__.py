"""Run an estimator or a sketch over a source of rows, with checkpoints and progress."""

from sksketch.drive.progress import Progress
from sksketch.drive.stream import fit_stream

__all__ = ["Progress", "fit_stream"]
