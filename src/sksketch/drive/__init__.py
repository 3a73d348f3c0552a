"""Run an estimator or a sketch over a source of rows, here or on many machines."""

from sksketch.drive.dask import fit_dask, sketch_dask
from sksketch.drive.progress import Progress
from sksketch.drive.spark import fit_spark, transform_spark
from sksketch.drive.stream import fit_stream

__all__ = ["Progress", "fit_dask", "fit_spark", "fit_stream", "sketch_dask", "transform_spark"]
