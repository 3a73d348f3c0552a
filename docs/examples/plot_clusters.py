"""
Clusters of any shape
=====================

Normalized cuts of two moons in memory that does not grow with the rows. New rows get labels too,
which is what the colored plane shows.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import StreamingSpectralClustering

rng = np.random.default_rng(0)
angle = rng.uniform(0, np.pi, 1_000)
upper = np.column_stack([np.cos(angle), np.sin(angle)])
X = np.vstack([upper[:500], [1, 0.5] - upper[500:]]) + 0.06 * rng.standard_normal((1_000, 2))
model = StreamingSpectralClustering(2, landmarks=200).fit(X)

grid = np.stack(np.meshgrid(np.linspace(-1.4, 2.4, 120), np.linspace(-0.9, 1.4, 80)), axis=-1)
plane = model.predict(grid.reshape(-1, 2)).reshape(80, 120)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.pcolormesh(grid[..., 0], grid[..., 1], plane, cmap="coolwarm", alpha=0.25)
ax.scatter(*X.T, c=model.labels_, s=5, cmap="coolwarm")
ax.set(aspect="equal")
plt.show()
