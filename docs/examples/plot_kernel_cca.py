"""
The part that two views share
=============================

One view has t, the other its square, both beside noise. No line connects them, but kernel CCA
finds the functions on which they agree, in flat memory. The second picture is of rows that were
not learned from.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import StreamingKernelCCA

rng = np.random.default_rng(0)


def views(n):
    """Return pairs of rows that share t."""
    t = rng.uniform(-1, 1, n)
    noise = rng.standard_normal((2, n))
    return np.column_stack([t, noise[0]]), np.column_stack([t**2, noise[1]])


cca = StreamingKernelCCA(1, n_random_features=256, ridge=1e-3)
for _ in range(4):
    cca.partial_fit(*views(2_000))
X, Y = views(1_000)
U, V = cca.transform(X, Y)

figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
axes[0].scatter(X[:, 0], Y[:, 0] + 0.05 * Y[:, 1], s=4)
axes[0].set(title="a column of either view", xlabel="t", ylabel="its square, and noise")
axes[1].scatter(U[:, 0], V[:, 0], s=4)
correlation = np.corrcoef(U[:, 0], V[:, 0])[0, 1]
axes[1].set(title=f"what they share: correlation {correlation:.2f}", xlabel="f(x)", ylabel="g(y)")
plt.show()
