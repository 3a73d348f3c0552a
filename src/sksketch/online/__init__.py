"""Online learning: losses, Newton learners, first-order baselines and their estimators."""

from sksketch.online.newton_classifier import OnlineNewtonClassifier
from sksketch.online.newton_regressor import OnlineNewtonRegressor

__all__ = ["OnlineNewtonClassifier", "OnlineNewtonRegressor"]
