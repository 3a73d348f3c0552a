"""Kernels, random features, and what is learned with them."""

from sksketch.kernel_methods.latent.multiview_mixture import MultiviewMixture
from sksketch.kernel_methods.latent.spectral_clustering import StreamingSpectralClustering
from sksketch.kernel_methods.pairs.kernel_cca import StreamingKernelCCA
from sksketch.kernel_methods.pairs.kernel_svd import StreamingKernelSVD
from sksketch.kernel_methods.pca.kernel_pca import StreamingKernelPCA
from sksketch.kernel_methods.random_features import RandomFeatures

__all__ = [
    "MultiviewMixture",
    "RandomFeatures",
    "StreamingKernelCCA",
    "StreamingKernelPCA",
    "StreamingKernelSVD",
    "StreamingSpectralClustering",
]
