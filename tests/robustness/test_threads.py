"""The same bits on any number of threads of our own, and threads that leave room for others."""

from __future__ import annotations

import os
import threading
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

import sksketch
from robustness import everyone
from sksketch.arrays import products, sparse
from sksketch.arrays.parallel import THREAD_NAME, VARIABLE, in_parallel, n_threads
from sksketch.sketches import buffer
from sksketch.sketches.directions import gram_sums

RNG = np.random.default_rng(0)
X = (RNG.standard_normal((1500, 30)) / np.arange(1, 31)) @ RNG.standard_normal((30, 90)) + 3.0
Y, LABELS = X[:, :2] + 1.0, (X[:, 0] > 3.0).astype(int)
S = sp.random_array((1500, 300), density=0.05, format="csr", rng=RNG)

SKETCHES = {
    "fd": lambda: sksketch.FrequentDirections(8),
    "fd exact": lambda: sksketch.FrequentDirections(8, solver="exact"),
    "sfd": lambda: sksketch.SparseFrequentDirections(8),
    "2lfd": lambda: sksketch.TwoLevelFrequentDirections(8, rank=2),
    "exact": lambda: sksketch.ExactCovariance(),
    "gaussian": lambda: sksketch.GaussianSketch(16),
    "countsketch": lambda: sksketch.CountSketch(16),
    "centered": lambda: sksketch.Centered(sksketch.FrequentDirections(8)),
    "centered exact": lambda: sksketch.Centered(sksketch.ExactCovariance()),
    "centered half life": lambda: sksketch.Centered(
        sksketch.FrequentDirections(8, half_life=500.0)
    ),
}
ESTIMATORS = {
    "pca": lambda A: sksketch.StreamingPCA(3, sketch="rfd").fit(A),
    "pca exact": lambda A: sksketch.StreamingPCA(3).fit(A),
    "svd": lambda A: sksketch.StreamingSVD(3, sketch="rfd").fit(A),
    "ridge": lambda A: sksketch.StreamingRidge().fit(A, Y),
    "ridge sketch": lambda A: sksketch.StreamingRidge(sketch="rfd", sketch_size=8).fit(A, Y[:, 0]),
    "kernel pca": lambda A: sksketch.StreamingKernelPCA(3, n_random_features=64).fit(A),
    "online": lambda A: sksketch.OnlineNewtonClassifier(sketch_size=5).fit(A, LABELS),
    "reduced": lambda A: sksketch.ReducedClassifier(8).fit(A, LABELS),
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Cut what is small as well."""
    monkeypatch.setattr(products, "PART_ENTRIES", (1 << 8, 1 << 11))
    monkeypatch.setattr(products, "PART_COLUMNS", 16)
    monkeypatch.setattr(products, "GROUP_ROWS", (32, 32))
    monkeypatch.setattr(sparse, "PANEL_ROWS", 128)
    monkeypatch.setattr(sparse, "PART_ROWS", 16)
    monkeypatch.setattr(buffer, "TILE_ROWS", (32, 32))
    monkeypatch.setattr(gram_sums, "MOST_ROWS", 512)


def on_every_number(monkeypatch, compute):
    found = {}
    for n in (1, 2, 3, 8):
        monkeypatch.setenv(VARIABLE, str(n))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[n] = everyone.digest(compute())
    assert len(set(found.values())) == 1, found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SKETCHES)
def test_sketches(name, dtype, monkeypatch):
    weights = np.linspace(0.5, 2.0, len(X))

    def compute():
        sketch = SKETCHES[name]().update(X.astype(dtype)[:1100])
        sketch.update(X.astype(dtype)[1100:], weights[1100:])
        return [sketch.state().arrays, sketch.summary().components]

    on_every_number(monkeypatch, compute)


@pytest.mark.parametrize("name", ["fd", "sfd", "centered", "centered exact", "countsketch"])
def test_sparse_rows(name, monkeypatch):
    on_every_number(monkeypatch, lambda: SKETCHES[name]().update(S).state().arrays)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(name, monkeypatch):
    def compute():
        model = ESTIMATORS[name](X)
        answers = [
            getattr(model, method)(X[:200])
            for method in ("transform", "predict")
            if hasattr(model, method)
        ]
        return [model.state().arrays, *answers]

    on_every_number(monkeypatch, compute)


def test_eight_estimators_in_eight_threads(monkeypatch):
    monkeypatch.setenv(VARIABLE, "4")
    expected = everyone.digest(ESTIMATORS["pca"](X).state().arrays)
    found = [None] * 8

    def fit(i):
        found[i] = everyone.digest(ESTIMATORS["pca"](X).state().arrays)

    threads = [threading.Thread(target=fit, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {expected}


def threads_of_a_worker(_):
    before = n_threads()
    in_parallel(lambda part: part, 32)
    ours = [t for t in threading.enumerate() if t.name.startswith(THREAD_NAME)]
    return before, 1 + len(ours)


@pytest.mark.slow
def test_workers_of_joblib_do_not_start_more_threads_than_there_are_cores(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for n_jobs in (2, 4):
        limits = joblib.Parallel(n_jobs=n_jobs)(
            joblib.delayed(threads_of_a_worker)(i) for i in range(2 * n_jobs)
        )
        share = max(cores // n_jobs, 1)
        assert all(limit <= share and started <= share for limit, started in limits)
