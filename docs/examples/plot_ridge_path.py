"""
A whole ridge path from one pass
================================

Coefficients against the penalty, all read from one sketch. The bars are certified: no coefficient
of the exact solution is outside.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import RidgePathDisplay, StreamingRidge

rng = np.random.default_rng(0)
X = rng.standard_normal((5_000, 600)) / np.arange(1, 601) ** 0.75
y = X[:, :6] @ [3.0, -2.0, 1.5, -1.0, 0.5, 0.25] + 0.1 * rng.standard_normal(5_000)
model = StreamingRidge(alpha=1e3, sketch="rfd", sketch_size=40)
for start in range(0, 5_000, 500):
    model.partial_fit(X[start : start + 500], y[start : start + 500])

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
RidgePathDisplay.from_estimator(model, alphas=np.logspace(2, 5, 25), n_coefficients=4, ax=ax)
plt.show()
