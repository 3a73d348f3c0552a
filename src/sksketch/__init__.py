"""Learn from matrices that do not fit: one pass, flat memory, certified errors."""

import importlib
from typing import TYPE_CHECKING

# First: the command is ready for Ctrl-C before the others are imported.
from sksketch import _command  # noqa: F401

if TYPE_CHECKING:
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
    from sksketch.models.inference import Inference
    from sksketch.moments import StreamingCCA, StreamingGLM, StreamingPLS
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
        SlidingWindow,
        SparseFrequentDirections,
        TwoLevelFrequentDirections,
        make_sketch,
    )
    from sksketch.streams import open_rows
    from sksketch.tables import TableEncoder
    from sksketch.time import Archive, Comparison, StreamingOutlierDetector, compare

__version__ = "0.2.0.dev0"

__all__ = [
    "Archive",
    "Centered",
    "Certificate",
    "Comparison",
    "ConcurrentUseError",
    "CountSketch",
    "ExactCovariance",
    "ExplainedVarianceDisplay",
    "FrequentDirections",
    "GaussianSketch",
    "HadamardSketch",
    "Inference",
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
    "SlidingWindow",
    "SourceError",
    "SparseFrequentDirections",
    "SpectrumDisplay",
    "StateFormatError",
    "StreamExhaustedError",
    "StreamingCCA",
    "StreamingGLM",
    "StreamingKernelCCA",
    "StreamingKernelPCA",
    "StreamingKernelSVD",
    "StreamingOutlierDetector",
    "StreamingPCA",
    "StreamingPLS",
    "StreamingRidge",
    "StreamingRidgeCV",
    "StreamingSVD",
    "StreamingSpectralClustering",
    "SubspaceReduction",
    "TableEncoder",
    "TwoLevelFrequentDirections",
    "compare",
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

# Names are looked up where they are first used: the help of a command waits for no library.
_PLACES = {
    "decomposition": "StreamingPCA StreamingSVD",
    "exceptions": "ConcurrentUseError NotMergeableError PartitionError SourceError "
    "StateFormatError StreamExhaustedError",
    "kernel_methods": "MultiviewMixture RandomFeatures StreamingKernelCCA StreamingKernelPCA "
    "StreamingKernelSVD StreamingSpectralClustering",
    "low_rank": "LowRankPlusRidge",
    "models.inference": "Inference",
    "moments": "StreamingCCA StreamingGLM StreamingPLS",
    "online": "OnlineNewtonClassifier OnlineNewtonRegressor",
    "present.plotting": "ExplainedVarianceDisplay LoadingsDisplay RidgePathDisplay SpectrumDisplay",
    "reduction": "RandomReduction ReducedClassifier ReducedRegressor SubspaceReduction",
    "ridge": "StreamingRidge StreamingRidgeCV",
    "run": "fit_dask fit_spark fit_stream predict_stream score_stream sketch_dask "
    "transform_spark transform_stream",
    "run.loading": "load save",
    "sketches": "Centered Certificate CountSketch ExactCovariance FrequentDirections "
    "GaussianSketch HadamardSketch Regression RowSampleSketch SignSketch Sketch "
    "SlidingWindow SparseFrequentDirections TwoLevelFrequentDirections make_sketch",
    "streams": "open_rows",
    "tables": "TableEncoder",
    "time": "Archive Comparison StreamingOutlierDetector compare",
}
_PLACE_OF = {name: module for module, names in _PLACES.items() for name in names.split()}
_MODULES = (
    *("arrays", "datasets", "decomposition", "exceptions", "kernel_methods", "low_rank", "metrics"),
    *("models", "moments", "online", "present", "reduction", "ridge", "run", "sketches", "state"),
    *("streams", "tables", "time"),
)


def _find(name: str) -> object:
    """Return a public name, which is kept, or a module."""
    if name in _MODULES:
        return importlib.import_module(f"sksketch.{name}")
    if name not in _PLACE_OF:
        raise AttributeError(f"module 'sksketch' has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"sksketch.{_PLACE_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACE_OF, *_MODULES})


# Type checkers know the names from above, and no others.
if not TYPE_CHECKING:
    __getattr__ = _find
