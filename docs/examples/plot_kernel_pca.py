"""
Kernel PCA without a kernel matrix
==================================

No line separates two rings. The leading kernel components unfold them. Features are
made again from their seed wherever they are needed; neither they nor a kernel matrix are held.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import StreamingKernelPCA

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 2_000)
ring = rng.integers(2, size=2_000)
radius = np.where(ring == 0, 0.3, 1.0) + 0.05 * rng.standard_normal(2_000)
X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
kpca = StreamingKernelPCA(3, bandwidth=0.5, n_random_features=512)
scores = kpca.fit_transform(X)

figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
axes[0].scatter(*X.T, c=ring, s=4, cmap="coolwarm")
axes[0].set(title="rows", aspect="equal")
spread = [abs(scores[ring == 0, j].mean() - scores[ring == 1, j].mean()) for j in range(3)]
order = np.argsort(spread)[::-1]
axes[1].scatter(scores[:, order[0]], scores[:, order[1]], c=ring, s=4, cmap="coolwarm")
axes[1].set(
    title="two kernel components",
    xlabel=f"component {order[0] + 1}",
    ylabel=f"component {order[1] + 1}",
)
plt.show()
