"""
Merging costs nothing you would notice
======================================

The same rows are sketched as a whole and in up to 64 parts, which are then merged two by two. The
error stays where it was, and so does the certificate.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import FrequentDirections, datasets

X = np.vstack([block.X for block in datasets.stationary(6_400, 200, seed=0).blocks()])
exact, energy = X.T @ X, np.sum(X**2)
counts = [1, 2, 4, 8, 16, 32, 64]
errors, bounds = [], []
for count in counts:
    level = [FrequentDirections(16, solver="exact").update(part) for part in np.split(X, count)]
    while len(level) > 1:
        level = [left | right for left, right in zip(level[::2], level[1::2], strict=True)]
    errors.append(np.linalg.norm(exact - level[0].summary().to_dense(), 2) / energy)
    bounds.append(level[0].certificate().relative_error)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(counts, bounds, "o-", label="certificate")
ax.plot(counts, errors, ".-", label="true error")
ax.axhline(0.5 / 17, ls="--", color="0.5", label="in advance, for any tree")
ax.set_xscale("log", base=2)
ax.set(xlabel="shards", ylabel="spectral error / energy", ylim=(0, None))
ax.legend()
plt.show()
