"""Learn from matrices that do not fit: one pass, flat memory, certified errors."""

# First: the command is ready for Ctrl-C before the others are imported.
from sksketch import _command  # noqa: F401

# isort: split
from sksketch import datasets, metrics
from sksketch.decomposition import StreamingPCA, StreamingSVD
from sksketch.exceptions import (
    ConcurrentUseError,
    NotMergeableError,
    PartitionError,
    SourceError,
    StateFormatError,
    StreamExhaustedError,
)
from sksketch.kernel_methods import (
    MultiviewMixture,
    RandomFeatures,
    StreamingKernelCCA,
    StreamingKernelPCA,
    StreamingKernelSVD,
    StreamingSpectralClustering,
)
from sksketch.low_rank import LowRankPlusRidge
from sksketch.online import OnlineNewtonClassifier, OnlineNewtonRegressor
from sksketch.present.plotting import (
    ExplainedVarianceDisplay,
    LoadingsDisplay,
    RidgePathDisplay,
    SpectrumDisplay,
)
from sksketch.reduction import (
    RandomReduction,
    ReducedClassifier,
    ReducedRegressor,
    SubspaceReduction,
)
from sksketch.ridge import StreamingRidge, StreamingRidgeCV
from sksketch.run import (
    fit_dask,
    fit_spark,
    fit_stream,
    predict_stream,
    score_stream,
    sketch_dask,
    transform_spark,
    transform_stream,
)
from sksketch.run.loading import load, save
from sksketch.sketches import (
    Centered,
    Certificate,
    CountSketch,
    ExactCovariance,
    FrequentDirections,
    GaussianSketch,
    HadamardSketch,
    Regression,
    RowSampleSketch,
    SignSketch,
    Sketch,
    SparseFrequentDirections,
    TwoLevelFrequentDirections,
    make_sketch,
)
from sksketch.streams import open_rows
from sksketch.tables import TableEncoder

__version__ = "0.2.0.dev0"

__all__ = [
    "Centered",
    "Certificate",
    "ConcurrentUseError",
    "CountSketch",
    "ExactCovariance",
    "ExplainedVarianceDisplay",
    "FrequentDirections",
    "GaussianSketch",
    "HadamardSketch",
    "LoadingsDisplay",
    "LowRankPlusRidge",
    "MultiviewMixture",
    "NotMergeableError",
    "OnlineNewtonClassifier",
    "OnlineNewtonRegressor",
    "PartitionError",
    "RandomFeatures",
    "RandomReduction",
    "ReducedClassifier",
    "ReducedRegressor",
    "Regression",
    "RidgePathDisplay",
    "RowSampleSketch",
    "SignSketch",
    "Sketch",
    "SourceError",
    "SparseFrequentDirections",
    "SpectrumDisplay",
    "StateFormatError",
    "StreamExhaustedError",
    "StreamingKernelCCA",
    "StreamingKernelPCA",
    "StreamingKernelSVD",
    "StreamingPCA",
    "StreamingRidge",
    "StreamingRidgeCV",
    "StreamingSVD",
    "StreamingSpectralClustering",
    "SubspaceReduction",
    "TableEncoder",
    "TwoLevelFrequentDirections",
    "datasets",
    "fit_dask",
    "fit_spark",
    "fit_stream",
    "load",
    "make_sketch",
    "metrics",
    "open_rows",
    "predict_stream",
    "save",
    "score_stream",
    "sketch_dask",
    "transform_spark",
    "transform_stream",
]
