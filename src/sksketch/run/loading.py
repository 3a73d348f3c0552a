"""Read any saved file back into the object that wrote it."""

from __future__ import annotations

from typing import Any

from sksketch._typing import PathLike
from sksketch.decomposition import StreamingPCA, StreamingSVD
from sksketch.kernel_methods import (
    MultiviewMixture,
    RandomFeatures,
    StreamingKernelCCA,
    StreamingKernelPCA,
    StreamingKernelSVD,
    StreamingSpectralClustering,
)
from sksketch.online import OnlineNewtonClassifier, OnlineNewtonRegressor
from sksketch.reduction import (
    RandomReduction,
    ReducedClassifier,
    ReducedRegressor,
    SubspaceReduction,
)
from sksketch.ridge import StreamingRidge, StreamingRidgeCV
from sksketch.sketches import load_sketch
from sksketch.state.blame import fitting
from sksketch.state.persistence import State, read_state

ESTIMATORS: dict[str, Any] = {
    kind.kind: kind
    for kind in (
        MultiviewMixture,
        StreamingSpectralClustering,
        StreamingPCA,
        StreamingSVD,
        StreamingRidge,
        StreamingRidgeCV,
        OnlineNewtonClassifier,
        OnlineNewtonRegressor,
        RandomFeatures,
        StreamingKernelPCA,
        StreamingKernelSVD,
        StreamingKernelCCA,
        SubspaceReduction,
        RandomReduction,
        ReducedClassifier,
        ReducedRegressor,
    )
}


def load(path: PathLike) -> Any:
    """Return the sketch or estimator that ``save`` wrote to ``path``.

    Parameters
    ----------
    path : str or path
        A file that ``save`` or a command has written.

    Returns
    -------
    Sketch or estimator
        An object that continues where the saved one was.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    StateFormatError
        If the file is truncated, foreign, damaged or from a newer release.

    See Also
    --------
    Sketch.save : Writes a sketch to a file.
    fit_stream : Learns from a source and keeps checkpoints.

    Examples
    --------
    >>> import os, tempfile
    >>> from sksketch import FrequentDirections
    >>> path = os.path.join(tempfile.mkdtemp(), "rows.sks")
    >>> FrequentDirections(2).update([[1.0, 2.0], [3.0, 4.0]]).save(path)
    >>> load(path)
    <FrequentDirections: 2 rows x 2 features>
    """
    state = read_state(path)
    with fitting(path):
        return restore(state)


def restore(state: State) -> Any:
    """Return the sketch or estimator that a state was taken from."""
    if state.kind in ESTIMATORS:
        return ESTIMATORS[state.kind].from_state(state)
    return load_sketch(state)
