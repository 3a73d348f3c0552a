"""scikit-learn's tests of random projections, on RandomReduction."""

from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from peers.runner import Peer, renamed
from sksketch import RandomReduction

TAKES = {"n_components": "n_components", "eps": "eps", "random_state": "random_state"}
INVERSE = ("compute_inverse_components",)


def with_operator(operator):
    def made(*args, **options):
        return RandomReduction(*args, operator=operator, **options)

    made.__name__ = RandomReduction.__name__
    return made


GAUSSIAN = renamed(with_operator("gaussian"), GaussianRandomProjection, TAKES, drops=INVERSE)
SPARSE = renamed(with_operator("countsketch"), SparseRandomProjection, TAKES, drops=INVERSE)
EXPECTED = {
    "coordinates are dense, for sparse rows too": ("test_SparseRandomProj_output_representation*",),
    "a count sketch has one entry for each column, and no density": (
        "test_correct_RandomProjection_dimensions_embedding*",
    ),
    "any number of coordinates of narrow rows is allowed without a word": (
        "test_warning_n_components_greater_than_n_features*",
    ),
    "components_ is made in double precision when read; coordinates are as precise as rows": (
        "test_random_projection_dtype_match[[]float32*",
    ),
}
PEER = Peer(
    "random projections",
    "sklearn.tests.test_random_projection",
    {
        "sklearn.random_projection.GaussianRandomProjection": GAUSSIAN,
        "sklearn.random_projection.SparseRandomProjection": SPARSE,
    },
    expected=EXPECTED,
)
globals().update(PEER.tests(__file__))
