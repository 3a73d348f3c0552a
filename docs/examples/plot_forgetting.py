"""
Rows that change their mind
===========================

Half way the directions of the data change. A sketch that forgets follows; one that remembers
everything reports a mixture of both halves, as it should.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import FrequentDirections, datasets

source = datasets.drifting(8_000, 200, seed=0, batch_rows=200)
new = source.components(3, phase=1)
sketches = {
    "remembers all": FrequentDirections(16),
    "half_life=500": FrequentDirections(16, half_life=500),
}
found = {name: [] for name in sketches}
for block in source.blocks():
    for name, sketch in sketches.items():
        leading = sketch.update(block.X).summary().components[:3]
        found[name].append(np.sum((leading @ new.T) ** 2) / 3)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, shares in found.items():
    ax.plot(200 * np.arange(1, len(shares) + 1), shares, label=name)
ax.axvline(4_000, color="0.6", ls="--")
ax.set(xlabel="rows seen", ylabel="new directions found", ylim=(0, 1.02))
ax.legend()
plt.show()
