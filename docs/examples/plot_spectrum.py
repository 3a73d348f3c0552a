"""
Every eigenvalue in its interval
================================

A sketch of 20 rows has seen 20,000. The bars are what it certifies about each eigenvalue; the true
ones, which it never had, are inside. It is a scree plot that says how far it can be off.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import FrequentDirections, SpectrumDisplay, datasets

rows = datasets.stationary(20_000, 400, decay=0.75, seed=0)
sketch = FrequentDirections(20, solver="exact")
exact = np.zeros((400, 400))
for block in rows.blocks():
    sketch.update(block.X)
    exact += block.X.T @ block.X

# %%
# The certificate in words:

print(sketch.certificate())

# %%
# And as a picture.

certificate = sketch.certificate()
truth = np.linalg.eigvalsh(exact)[::-1]
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
display = SpectrumDisplay(
    sketch.summary().eigenvalues[:12] + sketch.summary().ridge,
    intervals=certificate.eigenvalues[:12],
    true_eigenvalues=truth[:12],
    quantity="eigenvalue of A'A",
)
display.plot(ax=ax)
ax.set_title("20 rows remember 20,000, and say how well")
plt.show()
