"""Estimators with scikit-learn's contract."""

from sksketch.estimators._base import SketchEstimator
from sksketch.estimators.decomposition import StreamingPCA, StreamingSVD
from sksketch.estimators.kernel_cca import StreamingKernelCCA
from sksketch.estimators.kernel_pca import StreamingKernelPCA
from sksketch.estimators.kernel_svd import StreamingKernelSVD
from sksketch.estimators.multiview_mixture import MultiviewMixture
from sksketch.estimators.newton_classifier import OnlineNewtonClassifier
from sksketch.estimators.newton_regressor import OnlineNewtonRegressor
from sksketch.estimators.random_features import RandomFeatures
from sksketch.estimators.random_reduction import RandomReduction
from sksketch.estimators.reduced import ReducedClassifier, ReducedRegressor
from sksketch.estimators.reduction import SubspaceReduction
from sksketch.estimators.ridge import StreamingRidge
from sksketch.estimators.ridge_cv import StreamingRidgeCV
from sksketch.estimators.spectral_clustering import StreamingSpectralClustering

__all__ = [
    "MultiviewMixture",
    "OnlineNewtonClassifier",
    "OnlineNewtonRegressor",
    "RandomFeatures",
    "RandomReduction",
    "ReducedClassifier",
    "ReducedRegressor",
    "SketchEstimator",
    "StreamingKernelCCA",
    "StreamingKernelPCA",
    "StreamingKernelSVD",
    "StreamingPCA",
    "StreamingRidge",
    "StreamingRidgeCV",
    "StreamingSVD",
    "StreamingSpectralClustering",
    "SubspaceReduction",
]
