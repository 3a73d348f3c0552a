"""Estimators with scikit-learn's contract."""

from sksketch.estimators._base import SketchEstimator
from sksketch.estimators.decomposition import StreamingPCA, StreamingSVD
from sksketch.estimators.newton_classifier import OnlineNewtonClassifier
from sksketch.estimators.newton_regressor import OnlineNewtonRegressor
from sksketch.estimators.ridge import StreamingRidge
from sksketch.estimators.ridge_cv import StreamingRidgeCV

__all__ = [
    "OnlineNewtonClassifier",
    "OnlineNewtonRegressor",
    "SketchEstimator",
    "StreamingPCA",
    "StreamingRidge",
    "StreamingRidgeCV",
    "StreamingSVD",
]
