"""Any fitted model to one file, and back into the object that wrote it."""

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
from sksketch.models.pipelines.plain_states import from_state, is_of_scikit_learn, state_of
from sksketch.moments import StreamingCCA, StreamingGLM, StreamingPLS
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
from sksketch.state.persistence import State, read_state, write_state
from sksketch.tables import FormulaEncoder, TableEncoder
from sksketch.time import StreamingOutlierDetector

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
        TableEncoder,
        StreamingCCA,
        StreamingPLS,
        StreamingGLM,
        StreamingOutlierDetector,
    )
}


def save(model: object, path: PathLike) -> None:
    """Write a fitted estimator, sketch or pipeline to one file, atomically; `load` reads it.

    Parameters
    ----------
    model : estimator, Sketch or Pipeline
        A pipeline of estimators of sksketch, and of scikit-learn's scalers, Normalizer and
        Binarizer, frozen or not.
    path : str or path
        Where to; a file that is there is replaced.

    Raises
    ------
    TypeError
        If a step is something else, which only a pickle could hold.

    See Also
    --------
    load : Reads the file.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sksketch import StreamingPCA
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> path = os.path.join(tempfile.mkdtemp(), "model.sks")
    >>> save(make_pipeline(StandardScaler(), StreamingPCA(2)).fit(X), path)
    >>> load(path).transform(X).shape
    (50, 2)
    """
    write_state(state_of(model), path)


def load(path: PathLike) -> Any:
    """Return the sketch, estimator or pipeline that ``save`` wrote to ``path``.

    Parameters
    ----------
    path : str or path
        A file that ``save`` or a command has written.

    Returns
    -------
    Sketch, estimator or Pipeline
        An object that continues where the saved one was.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    StateFormatError
        If the file is truncated, foreign, damaged or from a newer release.

    See Also
    --------
    save : Writes it.
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
    if state.kind == FormulaEncoder.kind:
        return FormulaEncoder.from_state(state)
    if is_of_scikit_learn(state):
        return from_state(state, restore)
    return load_sketch(state)
