"""
Coefficients with intervals
===========================

Least squares in one pass over rows whose noise depends on a column. The classical intervals are too
short for that column; those of a second pass are not.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import StreamingRidge

rng = np.random.default_rng(0)
names = ["temperature", "wind", "humidity", "weekend", "holiday"]
true = np.array([1.0, -0.5, 0.0, 0.3, 0.0])
X = rng.standard_normal((3_000, 5))
y = X @ true + (0.5 + 1.5 * np.abs(X[:, 0])) * rng.standard_normal(3_000)
model = StreamingRidge(alpha=0.0).fit(X, y)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
places = np.arange(len(names))
for shift, covariance in ((-0.12, "classical"), (0.12, "HC3")):
    found = model.inference(covariance)
    half = found.interval[1:, 1] - found.coef[1:]
    ax.errorbar(found.coef[1:], places + shift, xerr=half, fmt="o", capsize=3, label=covariance)
ax.plot(true, places, "kx", label="true")
ax.axvline(0.0, color="0.7", zorder=0)
ax.set(yticks=places, yticklabels=names, xlabel="coefficient, with its interval of 95 %")
ax.invert_yaxis()
ax.legend()
plt.show()
