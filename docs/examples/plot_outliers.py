"""
Rows that do not fit
====================

Two columns that go together. Rows far away are outliers, and so are some that are usual in each
column and not in both; the lines are where the detector draws its threshold.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import StreamingOutlierDetector

rng = np.random.default_rng(0)
X = rng.standard_normal((2_000, 2)) @ [[1.0, 0.9], [0.0, 0.4]]
X[:12] = rng.uniform(-3.5, 3.5, (12, 2))
detector = StreamingOutlierDetector(contamination=0.01)
for start in range(0, 2_000, 200):
    detector.partial_fit(X[start : start + 200])

axis = np.linspace(-4.5, 4.5, 200)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
scores = detector.decision_function(grid).reshape(200, 200)
outliers = detector.predict(X) == -1

figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ax.scatter(*X[~outliers].T, s=4, color="0.6", label="usual")
ax.scatter(*X[outliers].T, s=25, color="C3", label="outliers")
ax.contour(axis, axis, scores, levels=[0.0], colors="C0")
ax.set(xlabel="one column", ylabel="the other")
ax.legend()
plt.show()
