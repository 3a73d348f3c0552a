"""
A change, day by day
====================

An archive keeps the state of every day. Each is compared with the first week: the bars are the
largest change of variance in any direction, and days that certainly changed are red.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

from sksketch import Archive, StreamingPCA, compare

rng = np.random.default_rng(0)
archive = Archive(tempfile.mkdtemp())
start = np.datetime64("2026-03-01")
for day in range(40):
    rows = rng.standard_normal((1_500, 6)) * [2, 1, 1, 1, 1, 1]
    rows[:, 3] *= 1 + max(day - 20, 0) / 10
    archive.add(StreamingPCA().fit(rows), start + day, start + day + 1)

first_week = archive.query(start, start + 7)
days = [begin for begin, _ in archive.periods()[7:]]
changes = [compare(first_week, archive.query(day, day + np.timedelta64(1, "D"))) for day in days]
low, high = np.array([change.largest_change for change in changes]).T
allowed = [change.error + change.allowance for change in changes]

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
middles, halves = (low + high) / 2, (high - low) / 2
colors = ["C3" if change.n_changed else "0.7" for change in changes]
ax.bar(days, middles, yerr=halves, color=colors, width=np.timedelta64(20, "h"))
ax.plot(days, allowed, color="0.3", ls="--", label="what samples and errors explain")
ax.set(ylabel="largest change of variance")
ax.tick_params(axis="x", rotation=30)
ax.legend()
plt.show()
