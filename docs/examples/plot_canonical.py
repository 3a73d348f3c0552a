"""
Canonical correlations with intervals
=====================================

Two wide tables share three causes. A sketch of both side by side tells their canonical
correlations, and intervals that certainly hold the exact ones: narrow where the ridge is large
beside what the sketch lost.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import StreamingCCA

rng = np.random.default_rng(0)
shared = rng.standard_normal((4_000, 3)) * [4.0, 2.0, 1.0]
X = shared @ rng.standard_normal((3, 300)) + 0.5 * rng.standard_normal((4_000, 300))
Y = shared @ rng.standard_normal((3, 200)) + 0.5 * rng.standard_normal((4_000, 200))

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, ridge in zip(axes, (1e3, 1e5), strict=True):
    model = StreamingCCA(6, ridge=ridge, sketch="rfd", sketch_size=40)
    for start in range(0, 4_000, 500):
        model.partial_fit(X[start : start + 500], Y[start : start + 500])
    low, high = model.correlation_intervals_.T
    exact = StreamingCCA(6, ridge=ridge, sketch="exact").fit(X, Y).correlations_
    pairs = np.arange(1, 7)
    ax.vlines(pairs, low, high, lw=6, alpha=0.3, label="certified interval")
    ax.plot(pairs, model.correlations_, "o", label="sketch")
    ax.plot(pairs, exact, "k_", ms=14, label="exact")
    ax.set(title=f"ridge {ridge:g}", xlabel="pair", ylim=(-0.05, 1.05))
axes[0].set_ylabel("canonical correlation")
axes[0].legend()
plt.show()
