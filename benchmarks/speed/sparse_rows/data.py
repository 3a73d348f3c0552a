"""The sparse matrices of the benchmark, by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch.datasets import SparseSignRows

FOLDER = "SKSKETCH_DATA"

# A row of the topic stream: so many entries in the columns of its topic, the others anywhere.
TOPIC_ENTRIES, NOISE_ENTRIES, COLUMNS_PER_ENTRY = 15, 35, 4
# Topics, the variance of the weakest in units of the noise, and the strongest over the weakest.
N_TOPICS, WEAKEST, SPREAD = 8, 1.5, 2.0
NOISE_SKEW = 4


@dataclass(frozen=True)
class Case:
    """A matrix and the rows that sketches of it keep."""

    title: str
    make: Callable[[], Any]
    sketch_size: int = 50
    file: str = ""

    def missing(self) -> str:
        """Return why this can not run, or nothing."""
        if not self.file:
            return ""
        folder = os.environ.get(FOLDER)
        if not folder:
            return f"set {FOLDER} to the folder that holds {self.file}"
        return "" if (Path(folder) / self.file).exists() else f"no {self.file} in ${FOLDER}"


def synthetic(n: int = 10_000, d: int = 1000, size: int = 50, nnz: int = 100) -> Case:
    """Return the paper's generator; the defaults are those of its Table 1."""
    source = SparseSignRows(n, d, nnz_per_row=nnz)
    title = f"paper's synthetic: n={n}, d={d}, l={size}, {nnz} non-zeros a row"
    return Case(title, lambda: source.rows(0, n), size)


def topics(n: int, d: int, size: int) -> Case:
    """Return the first rows of the topic stream, held in memory."""
    return Case(f"topic stream: n={n}, d={d}, l={size}", lambda: topic_rows(0, n, d), size)


def topic_rows(start: int, stop: int, d: int, spread: float = SPREAD) -> Any:
    """Return rows of 50 entries: eight planted directions of distinct strength under skewed noise.

    A topic owns 60 columns, and a row of it has one entry in every four of them, all of the
    same sign. The strongest topic also varies inside its columns, with 1/15 of its variance,
    so the gap after the planted directions is about ``15 / spread``. The other 35 entries are
    ones, in columns that become rare as a power law; their means are not zero. ``start``
    addresses the random numbers, so rows are the same only for the same cut into blocks.
    """
    rng = np.random.default_rng([start, d])
    n, n_topics = stop - start, N_TOPICS
    strengths = np.geomspace(spread * WEAKEST, WEAKEST, n_topics)
    width = TOPIC_ENTRIES * COLUMNS_PER_ENTRY
    topic = rng.integers(0, n_topics, n)
    places = rng.integers(0, COLUMNS_PER_ENTRY, (n, TOPIC_ENTRIES))
    places += topic[:, None] * width + COLUMNS_PER_ENTRY * np.arange(TOPIC_ENTRIES)
    values = np.sqrt(strengths)[topic] * rng.choice([-1.0, 1.0], n)
    # Entry e takes the columns with remainder e, so no two can meet.
    first = n_topics * width
    strides = (d - first) // NOISE_ENTRIES
    noise = (strides * rng.random((n, NOISE_ENTRIES)) ** NOISE_SKEW).astype(np.int64)
    noise = first + NOISE_ENTRIES * noise + np.arange(NOISE_ENTRIES)
    columns = np.concatenate([places, noise], axis=1).astype(np.int32)
    data = np.ones(columns.shape)
    data[:, :TOPIC_ENTRIES] = values[:, None]
    pointers = np.arange(n + 1, dtype=np.int32) * columns.shape[1]
    rows = sp.csr_array((data.ravel(), columns.ravel(), pointers), shape=(n, d))
    rows.sort_indices()
    return rows


def stored(file: str) -> Any:
    """Return the counts in a file of the data folder, as float64."""
    parts = np.load(Path(os.environ[FOLDER]) / file, allow_pickle=False)
    data = parts["data"].astype(np.float64)
    return sp.csr_array((data, parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))


def newsgroups() -> Any:
    """Return words by the first 3000 documents, zero or one, as in the paper's Figure 1."""
    words = sp.csr_array(stored("news20_bydate_counts.npz")[:3000].T)
    words.data[:] = 1.0
    return words


def counts(name: str, file: str) -> Case:
    return Case(f"{name} word counts, l=50", lambda: stored(file), file=file)


CASES = {
    "default": synthetic(),
    "rows": synthetic(n=60_000),
    "columns": synthetic(d=6000),
    "small": synthetic(size=5),
    "large": synthetic(size=100),
    "sparse": synthetic(nnz=5),
    "dense": synthetic(nnz=500),
    "news": Case(
        "20 Newsgroups transposed, zero-one, l=50", newsgroups, file="news20_bydate_counts.npz"
    ),
    "reuters": counts("Reuters-21578", "reuters21578_counts.npz"),
    "imdb": counts("IMDB", "imdb50k_counts.npz"),
    "wide": topics(20_000, 1_000_000, 32),
}
QUICK_CASES = {
    "default": synthetic(n=1500, d=300, size=10, nnz=20),
    "sparse": synthetic(n=1500, d=5000, size=10, nnz=5),
}
