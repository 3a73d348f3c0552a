"""
The last rows alone
===================

The directions of the data change half way. A window of the last 2,000 rows has forgotten the old
ones after 2,000 more, and its certificate holds all the way: the shaded band is what it says of
the energy along the new directions.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import FrequentDirections, SlidingWindow, datasets

source = datasets.drifting(12_000, 100, seed=0, batch_rows=200)
new = source.components(3, phase=1)
window = SlidingWindow(FrequentDirections(16, solver="exact"), rows=2_000)
whole = FrequentDirections(16, solver="exact")
rows, moments, shares, bounds, all_shares = [], [], [], [], []
for block in source.blocks():
    window.update(block.X)
    whole.update(block.X)
    rows.append(block.X)
    last = np.concatenate(rows[-10:])
    moments.append(200 * len(rows))
    shares.append(np.sum((last @ new.T) ** 2) / np.sum(last**2))
    summary = window.summary()
    found = np.trace(new @ (summary @ new.T)) / np.sum(last**2)
    slack = 3 * summary.error_bound / np.sum(last**2)
    bounds.append((found - slack, found + slack))
    kept = whole.summary()
    all_shares.append(np.trace(new @ (kept @ new.T)) / kept.squared_norm)

low, high = np.clip(np.array(bounds).T, 0, 1)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.fill_between(moments, low, high, alpha=0.3, label="certified for the window")
ax.plot(moments, shares, label="exact, of the window")
ax.plot(moments, all_shares, ls="--", label="of all rows")
ax.axvline(6_000, color="0.6", ls=":")
ax.set(xlabel="rows seen", ylabel="energy along the new directions")
ax.legend()
plt.show()
