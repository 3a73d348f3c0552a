"""Streams for the online learners: rows like text, and short dense rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

# The share of the word of rank r is proportional to (r + COMMON) ** -FALL, and a part of the words
# of a row belong to its topic: fitted to how many different words 11, 21 and 51 documents of RCV1
# have, and to the energy of their leading 5, 20 and 60 directions.
COMMON, FALL = 150.0, 1.5
N_TOPICS, TOPIC_WORDS, TOPICAL = 30, 60, 0.4
# Spreads the ranks over the columns; a prime, so that no two meet.
SPREAD = 2_654_435_761
# Labels depend on this share of the words of the topics, and on noise.
RELEVANT = 0.2
NOISE = 0.3


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows with labels of +-1."""

    X: Any
    y: np.ndarray

    def first(self, n_rows: int) -> Stream:
        return Stream(self.X[:n_rows], self.y[:n_rows])


def text(n_rows: int, n_features: int, nnz: int, fall: float = FALL, seed: int = 0) -> Stream:
    """Return rows of unit length with ``nnz`` words of tf-idf weight, as often as in RCV1."""
    rng = np.random.default_rng(seed)
    power = 1.0 - fall
    mass = COMMON**power - (n_features + COMMON) ** power
    left = COMMON**power - mass * rng.random((n_rows, 2 * nnz))
    ranks = np.minimum((left ** (1.0 / power) - COMMON).astype(np.int64), n_features - 1)
    topics = rng.integers(0, N_TOPICS, (n_rows, 1))
    own = (TOPIC_WORDS * rng.random(ranks.shape) ** 2).astype(np.int64)
    own = (own * N_TOPICS + topics) % n_features
    ranks = np.where(rng.random(ranks.shape) < TOPICAL, own, ranks)
    ranks = np.array([_distinct(row, nnz, n_features) for row in ranks])
    share = -power * (ranks + COMMON) ** -fall / mass
    counts = rng.geometric(0.6, ranks.shape)
    values = (1.0 + np.log(counts)) * -np.log(np.minimum(nnz * share, 0.9))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    columns = ranks * SPREAD % n_features
    order = np.argsort(columns, axis=1)
    X = sp.csr_matrix(
        (
            np.take_along_axis(values, order, axis=1).ravel(),
            np.take_along_axis(columns, order, axis=1).ravel().astype(np.int32),
            np.arange(0, n_rows * nnz + 1, nnz, dtype=np.int32),
        ),
        shape=(n_rows, n_features),
    )
    truth = np.zeros(n_features)
    known = rng.permutation(N_TOPICS * TOPIC_WORDS)[: int(RELEVANT * N_TOPICS * TOPIC_WORDS)]
    sides = rng.choice([-1.0, 1.0], N_TOPICS)
    truth[known * SPREAD % n_features] = sides[known % N_TOPICS] + rng.standard_normal(len(known))
    return Stream(X, _labels(X @ truth, rng))


def _distinct(ranks: np.ndarray, nnz: int, n_features: int) -> np.ndarray:
    """Return the first ``nnz`` different ranks of a row; rare words fill up."""
    found = ranks[np.sort(np.unique(ranks, return_index=True)[1])][:nnz]
    if len(found) < nnz:
        rest = np.setdiff1d(np.arange(n_features - 2 * nnz, n_features), found)
        found = np.concatenate([found, rest[: nnz - len(found)]])
    return found


def dense(n_rows: int, n_features: int, seed: int = 0) -> Stream:
    """Return Gaussian rows of falling spectrum and length about 1, in random directions."""
    rng = np.random.default_rng(seed)
    strengths = np.arange(1.0, n_features + 1) ** -0.75
    rotation = np.linalg.qr(rng.standard_normal((n_features, n_features)))[0]
    X = (rng.standard_normal((n_rows, n_features)) * strengths) @ rotation
    X /= np.linalg.norm(strengths)
    return Stream(np.ascontiguousarray(X), _labels(X @ rng.standard_normal(n_features), rng))


def _labels(margins: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    noise = NOISE * margins.std() * rng.standard_normal(len(margins))
    return np.where(margins + noise >= 0, 1.0, -1.0)
