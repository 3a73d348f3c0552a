"""
Why a shrink, and not a truncation
==================================

Keeping the largest directions and dropping the rest looks harmless. On this stream it loses all
that comes late: each copy of a new row is too small to survive on its own. A shrink lowers all
directions a little, so the new one gets its place. Both certificates are honest.
"""

import matplotlib.pyplot as plt
import numpy as np

from sksketch import FrequentDirections
from sksketch.datasets import truncation_breaker

A = truncation_breaker(7, n_copies=100)
options = {"correction": "none", "solver": "exact", "buffer_rows": 8}
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for rule, name in (("truncate", "truncation"), ("uniform", "Frequent Directions")):
    sketch = FrequentDirections(7, rule=rule, **options)
    errors, bounds = [], []
    for i, row in enumerate(A, start=1):
        sketch.update(row[None])
        so_far = A[:i]
        errors.append(np.linalg.norm(so_far.T @ so_far - sketch.summary().to_dense(), 2))
        bounds.append(sketch.error_bound())
    (line,) = ax.plot(errors, label=f"{name}: error")
    ax.plot(bounds, ":", color=line.get_color(), label=f"{name}: certificate")
ax.set(xlabel="rows seen", ylabel="spectral error")
ax.legend()
plt.show()
