"""
Few coordinates, and what they cost
===================================

A linear classifier of 2,000 columns learned on fewer and fewer coordinates. The certificate says
how much better the best model of all columns could be, without ever fitting it.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import ReducedClassifier

rng = np.random.default_rng(0)
X = rng.standard_normal((1_500, 60)) / np.arange(1, 61) ** 0.5 @ rng.standard_normal((60, 2_000))
X = X / 40 + 0.02 * rng.standard_normal(X.shape)
y = np.where(X @ rng.standard_normal(2_000) > 0, 1, -1)
sizes = [10, 20, 40, 80, 160]
models = [ReducedClassifier(size, alpha=1e-2).fit(X[:1_000], y[:1_000]) for size in sizes]

figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
axes[0].plot(sizes, [model.score(X[1_000:], y[1_000:]) for model in models], "o-")
axes[0].set(xlabel="coordinates", ylabel="accuracy on new rows")
axes[1].plot(sizes, [model.objective_gap_bound_ for model in models], "o-", label="certificate")
axes[1].plot(sizes, [model.lemma2_bound_ for model in models], ".--", label="before learning")
axes[1].set(xlabel="coordinates", ylabel="objective above the best, at most", yscale="log")
axes[1].legend()
plt.show()
