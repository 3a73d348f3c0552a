"""scikit-learn's tests of RBFSampler, Nystroem and PolynomialCountSketch, on RandomFeatures."""

from sklearn.kernel_approximation import Nystroem, RBFSampler

from peers.runner import Peer, renamed
from sksketch import RandomFeatures

NAMES = {"rbf": "gaussian", "poly": "polynomial"}


def of_gamma(gamma):
    return {} if gamma is None else {"bandwidth": (2.0 * gamma) ** -0.5}


def of_kernel(kernel):
    return {"kernel": kernel if callable(kernel) else NAMES.get(kernel, kernel)}


def polynomial(*, gamma=1.0, degree=2, coef0=0.0, n_components=100, random_state=None):
    params = {"degree": degree, "coef0": coef0}
    return RandomFeatures(
        "polynomial",
        n_components,
        bandwidth=gamma**-0.5,
        kernel_params=params,
        random_state=random_state,
    )


polynomial.__name__ = RandomFeatures.__name__
SHARED = {"gamma": of_gamma, "random_state": "random_state"}
SAMPLER = renamed(RandomFeatures, RBFSampler, SHARED | {"n_components": "n_random_features"})
NYSTROEM = renamed(
    RandomFeatures,
    Nystroem,
    SHARED | {"n_components": "landmarks", "kernel": of_kernel, "kernel_params": "kernel_params"},
    drops=("n_jobs",),
)
EXPECTED = {
    "features are made again from their seed, so that no weights are stored": (
        "test_rbf_sampler_fitted_attributes_dtype*",
        "test_rbf_sampler_dtype_equivalence",
    ),
    "the bandwidth is the median distance by default, and gamma has no rule of its own": (
        "test_rbf_sampler_gamma_scale",
        "test_nystroem_approximation",
        "test_nystroem_default_parameters",
    ),
    "degree and coef0 are in kernel_params, and degrees are whole": (
        "test_nystroem_poly_kernel_params",
    ),
    "kernels have names: a function could not be saved, nor made again on a worker": (
        "test_nystroem_callable",
    ),
    "a precomputed kernel grows with the square of the rows": ("test_nystroem_precomputed_kernel",),
    "landmarks are rows and need not come from those of fit": ("test_nystroem_component_indices",),
}
PEER = Peer(
    "kernel approximation",
    "sklearn.tests.test_kernel_approximation",
    {
        "sklearn.kernel_approximation.RBFSampler": SAMPLER,
        "sklearn.kernel_approximation.Nystroem": NYSTROEM,
        "sklearn.kernel_approximation.PolynomialCountSketch": polynomial,
    },
    expected=EXPECTED,
)
globals().update(PEER.tests(__file__))
