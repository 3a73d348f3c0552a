"""Read any saved file back into the object that wrote it."""

from __future__ import annotations

from typing import Any

from sksketch._typing import PathLike
from sksketch.estimators import StreamingPCA, StreamingRidge, StreamingRidgeCV, StreamingSVD
from sksketch.persistence import read_state
from sksketch.sketches import load_sketch

ESTIMATORS: dict[str, Any] = {
    kind.kind: kind for kind in (StreamingPCA, StreamingSVD, StreamingRidge, StreamingRidgeCV)
}


def load(path: PathLike) -> Any:
    """Return the sketch or estimator that ``save`` wrote to ``path``.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    StateFormatError
        If the file is truncated, foreign, damaged or from a newer release.

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
    if state.kind in ESTIMATORS:
        return ESTIMATORS[state.kind].from_state(state)
    return load_sketch(state)
