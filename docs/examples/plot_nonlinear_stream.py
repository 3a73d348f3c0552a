"""
Non-linear, one row at a time
=============================

Random features of a Gaussian kernel, and an online learner on them: one pass over the rows, each
predicted before it is learned from. The line is where the two classes are equally likely.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline

from sksketch import OnlineNewtonClassifier, RandomFeatures, fit_stream, open_rows

X, y = make_moons(5_000, noise=0.2, random_state=0)
grid = np.stack(np.meshgrid(np.linspace(-1.8, 2.8, 150), np.linspace(-1.4, 1.9, 100)), axis=-1)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="constrained")
for ax, steps in zip(axes, ([], [RandomFeatures(n_random_features=128)]), strict=True):
    model = make_pipeline(*steps, OnlineNewtonClassifier())
    fit_stream(model, open_rows(X, target=y), classes=[0, 1], progress=False)
    scores = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.scatter(*X[:1_000].T, c=y[:1_000], s=4, cmap="coolwarm", alpha=0.5)
    ax.contour(grid[..., 0], grid[..., 1], scores, levels=[0.0], colors="black")
    name = "random features" if steps else "the columns themselves"
    ax.set_title(f"{name}: {model[-1].online_error_:.1%} wrong")
plt.show()
