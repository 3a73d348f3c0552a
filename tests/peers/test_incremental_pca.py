"""scikit-learn's tests of IncrementalPCA, on StreamingPCA."""

from sklearn.decomposition import IncrementalPCA

from peers.runner import Peer, renamed
from sksketch import StreamingPCA

TAKES = {"n_components": "n_components", "whiten": "whiten"}
# Blocks of any size give the same bits, and rows are never overwritten.
PCA = renamed(StreamingPCA, IncrementalPCA, TAKES, drops=("copy", "batch_size"))
EXPECTED = {
    "partial_fit takes sparse rows": ("test_incremental_pca_sparse*",),
    "blocks may have fewer rows than components, and more components than columns are a warning": (
        "test_incremental_pca_validation",
    ),
    "ten centered rows span nine directions, and no further ones are made up": (
        "test_n_components_none",
        "test_explained_variances",
        "test_whitening",
    ),
    "the number of components can be changed at any time": ("test_incremental_pca_set_params",),
    "n_samples_seen_ is read from the sketch and cannot be set": (
        "test_incremental_pca_partial_fit_float_division",
    ),
    "names of columns begin with that of our class": ("test_incremental_pca_feature_names_out",),
}
PEER = Peer(
    "IncrementalPCA",
    "sklearn.decomposition.tests.test_incremental_pca",
    {"sklearn.decomposition.IncrementalPCA": PCA},
    quick=True,
    expected=EXPECTED,
)
globals().update(PEER.tests(__file__))
