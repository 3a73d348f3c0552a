"""One-pass truncated SVD of rows that do not fit in memory."""

from __future__ import annotations

from sksketch.decomposition.streaming_decomposition import StreamingDecomposition


class StreamingSVD(StreamingDecomposition):
    """Truncated SVD in one pass, without centering, with an error bound.

    Parameters
    ----------
    n_components : int, float or None
        Number of components, a fraction of the energy to explain (below 1), or None for as
        many as the sketch keeps.
    sketch : {"auto", "fd", "rfd", "cfd", "pfd", "isvd", "exact"} or Sketch
        What remembers the rows; see `StreamingPCA`.
    sketch_size : int, optional
        Rows the sketch keeps.
    tol : float, optional
        Bound on the spectral error, relative to the squared norm, that the sketch grows to meet.
    max_sketch_size : int, optional
        Limit for ``tol``.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
    singular_values_ : array of shape (n_components,)
    explained_variance_, explained_variance_ratio_ : array (n_components,)
        Mean squared coordinate along each component, and its fraction of the whole.
    certificate_ : Certificate
    plan_ : str
    n_samples_seen_ : int
    sketch_ : Sketch

    Examples
    --------
    >>> import numpy as np
    >>> X = np.diag([3.0, 2.0, 1.0])
    >>> StreamingSVD(n_components=2).fit(X).singular_values_.round(6)
    array([3., 2.])
    """

    kind = "streaming-svd"
    _centered = False
