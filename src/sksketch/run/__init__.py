"""Run an estimator or a sketch over a source of rows, here or on many machines."""

from sksketch.models.runner import set_runner
from sksketch.run.answers import predict_stream, score_stream, transform_stream
from sksketch.run.dask import fit_dask, sketch_dask
from sksketch.run.dask_rows import lazily
from sksketch.run.loading import load
from sksketch.run.progress import Progress
from sksketch.run.spark import fit_spark, transform_spark
from sksketch.run.stream import fit_stream

__all__ = [
    "Progress",
    "fit_dask",
    "fit_spark",
    "fit_stream",
    "load",
    "predict_stream",
    "score_stream",
    "sketch_dask",
    "transform_spark",
    "transform_stream",
]

# Estimators hand the rows of dask to whoever runs them.
set_runner(fit_dask, lazily)
