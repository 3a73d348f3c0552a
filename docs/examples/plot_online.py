"""
Learning row by row with nothing to tune
========================================

Columns of very different scales. Every row is predicted before it is learned from; the lines are
the part that was wrong so far. Curvature, kept in a sketch of 20 directions, makes the difference.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import OnlineNewtonClassifier

rng = np.random.default_rng(0)
scales = np.logspace(0, -2, 50)
X = rng.standard_normal((6_000, 50)) * scales
y = np.where(X @ (rng.standard_normal(50) / scales) > 0, 1, -1)
names = {
    "rfd": "sketched Newton (default)",
    "adagrad": "diagonal (AdaGrad)",
    "ogd": "gradient",
}

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for method, name in names.items():
    model = OnlineNewtonClassifier(method)
    wrong = []
    for start in range(0, 6_000, 200):
        rows = slice(start, start + 200)
        wrong.append(model.partial_fit(X[rows], y[rows], classes=[-1, 1]).online_error_)
    ax.plot(200 * np.arange(1, 31), wrong, label=name)
ax.set(xlabel="rows", ylabel="predicted wrong so far", ylim=(0, 0.5))
ax.legend()
plt.show()
