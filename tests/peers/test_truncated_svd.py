"""scikit-learn's tests of TruncatedSVD, on StreamingSVD."""

from sklearn.decomposition import TruncatedSVD

from peers.runner import Peer, renamed
from sksketch import StreamingSVD

# How it is computed there: in repeated passes over rows that are in memory.
DROPS = (
    "algorithm",
    "n_iter",
    "n_oversamples",
    "power_iteration_normalizer",
    "random_state",
    "tol",
)
SVD = renamed(StreamingSVD, TruncatedSVD, {"n_components": "n_components"}, drops=DROPS)
EXPECTED = {
    "variances are around zero, as what is certified is; TruncatedSVD has those around the mean": (
        "test_explained_variance[[]*",
    ),
    "more components than columns are a warning, and there are as many as columns": (
        "test_too_many_components*",
    ),
}
PEER = Peer(
    "TruncatedSVD",
    "sklearn.decomposition.tests.test_truncated_svd",
    {"sklearn.decomposition.TruncatedSVD": SVD},
    quick=True,
    expected=EXPECTED,
)
globals().update(PEER.tests(__file__))
