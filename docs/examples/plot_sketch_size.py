"""
How large should a sketch be?
=============================

Twice as many rows, less than half the error, if the spectrum falls. The certificate follows the
true error closely; the bound in advance, which knows only the size, is far above both.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import FrequentDirections, datasets

X = np.vstack([block.X for block in datasets.stationary(6_000, 300, seed=0).blocks()])
exact, energy = X.T @ X, np.sum(X**2)
sizes = [4, 8, 16, 32, 64]
sketches = [FrequentDirections(size, solver="exact").update(X) for size in sizes]
errors = [np.linalg.norm(exact - s.summary().to_dense(), 2) / energy for s in sketches]
bounds = [s.certificate().relative_error for s in sketches]

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.loglog(sizes, [0.5 / (size + 1) for size in sizes], "--", label="in advance")
ax.loglog(sizes, bounds, "o-", label="certificate")
ax.loglog(sizes, errors, ".-", label="true error")
ax.set(xlabel="sketch_size", ylabel="spectral error / energy of all rows", xticks=sizes)
ax.set_xticklabels(sizes)
ax.legend()
plt.show()
