"""scikit-learn's tests of KernelPCA, on StreamingKernelPCA."""

from sklearn.decomposition import KernelPCA

from peers.runner import Peer, renamed
from sksketch import StreamingKernelPCA

DROPS = ("eigen_solver", "tol", "max_iter", "iterated_power", "copy_X", "n_jobs", "alpha")
NAMES = {"rbf": "gaussian", "poly": "polynomial"}
TAKES = {
    "n_components": lambda k: {} if k is None else {"n_components": k},
    "kernel": lambda kernel: {"kernel": NAMES.get(kernel, kernel) if kernel else kernel},
    "gamma": lambda gamma: {} if gamma is None else {"bandwidth": (2.0 * gamma) ** -0.5},
    "kernel_params": "kernel_params",
    "fit_inverse_transform": "fit_inverse_transform",
    "random_state": "random_state",
}
KERNEL_PCA = renamed(StreamingKernelPCA, KernelPCA, TAKES, drops=DROPS)
EXPECTED = {
    "kernels have names: a function could not be saved, nor made again on a worker": (
        "test_kernel_pca",
    ),
    "a precomputed kernel grows with the square of the rows": (
        "test_kernel_pca_invalid_parameters",
        "test_kernel_pca_precomputed*",
        "test_gridsearch_pipeline_precomputed",
        "test_precomputed_kernel_not_psd*",
    ),
    "components that the kernel does not have on the rows are refused": (
        "test_remove_zero_eig",
        "test_leave_zero_eig",
        "test_kernel_pca_solvers_equivalence*",
    ),
    "the parameter is bandwidth, not gamma": (
        "test_gridsearch_pipeline",
        "test_kernel_pca_inverse_correct_gamma",
    ),
    "names of columns begin with the name of our class": ("test_kernel_pca_feature_names_out",),
}
PEER = Peer(
    "KernelPCA",
    "sklearn.decomposition.tests.test_kernel_pca",
    {"sklearn.decomposition.KernelPCA": KERNEL_PCA},
    expected=EXPECTED,
)
globals().update(PEER.tests(__file__))
