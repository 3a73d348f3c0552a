"""Pictures of what a model found. The only place that draws, and only when asked to."""

from sksketch.present.plotting.axes import new_axes
from sksketch.present.plotting.coefficients import LoadingsDisplay, RidgePathDisplay
from sksketch.present.plotting.spectra import ExplainedVarianceDisplay, SpectrumDisplay

__all__ = [
    "ExplainedVarianceDisplay",
    "LoadingsDisplay",
    "RidgePathDisplay",
    "SpectrumDisplay",
    "new_axes",
]
