"""Dask on processes: the same bits as in one process, whoever is killed meanwhile."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from sksketch import (
    FrequentDirections,
    PartitionError,
    StreamingKernelPCA,
    StreamingPCA,
    SubspaceReduction,
    fit_dask,
    sketch_dask,
)
from sksketch.run import dask_workers
from sksketch.run.shards import Rows, learn_shard, merge_tree, shard_template
from sksketch.state.persistence import to_bytes

dask = pytest.importorskip("dask", reason="needs the extra dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [
    # The sockets and event loops of a cluster that was killed close when they are collected.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning"),
]

# One test of a real cluster is part of every run.
slow = pytest.mark.slow
N_PARTS = 24
N_KILLS = 10


def rows_of_part(number, seconds=0.0, flag=None):
    """Make a partition on whichever worker it is asked from; the last one waits for a file."""
    time.sleep(seconds)
    while flag is not None and number == N_PARTS - 1 and not os.path.exists(flag):
        time.sleep(0.05)
    rng = np.random.default_rng(number)
    return rng.standard_normal((400, 40)) / np.arange(1, 41) + 0.2


def broken_part(number):
    if number == 5:
        raise OSError("the disk is gone")
    return rows_of_part(number)


def deadly_part(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return rows_of_part(number)


def delayed(make, n_parts, *arguments):
    return [dask.delayed(make)(number, *arguments) for number in range(n_parts)]


@pytest.fixture(scope="module")
def cluster():
    # A task that was running on ten workers that were killed is not to blame for it.
    settings = {"distributed.scheduler.allowed-failures": 3 * N_KILLS}
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(**options, dashboard_address=":0", silence_logs=60) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    """Reach the cluster as from another machine: by the address of its scheduler."""
    with distributed.Client(cluster.scheduler_address) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


def pca():
    return StreamingPCA(3, sketch="rfd", sketch_size=8)


def reference(estimator, n_parts, fan_in):
    template = shard_template(estimator)
    shards = [learn_shard(template, [Rows(rows_of_part(i))], i, n_parts) for i in range(n_parts)]
    return to_bytes(merge_tree(type(estimator), shards, fan_in).state)


def test_two_processes_give_the_bits_of_one_and_the_certificate_holds(client):
    seen = []
    found = fit_dask(pca(), delayed(rows_of_part, N_PARTS), progress=lambda *n: seen.append(n))
    assert to_bytes(found.state()) == reference(pca(), N_PARTS, 8)
    X = np.concatenate([rows_of_part(i) for i in range(N_PARTS)])
    scatter = np.cov(X.T) * (len(X) - 1)
    error = np.linalg.norm(scatter - found.sketch_.summary().to_dense(), 2)
    assert 0 < error <= found.certificate_.spectral_error[1]
    assert seen[0] == (0, None)
    assert seen[-1] == (len(X), None)
    sketch = sketch_dask(FrequentDirections(5), delayed(rows_of_part, 9), fan_in=2)
    assert to_bytes(sketch.state()) == reference(FrequentDirections(5), 9, 2)


@slow
def test_arrays_pilots_passes_and_lazy_answers(client):
    X = np.concatenate([rows_of_part(i) for i in range(4)])
    rows = da.from_array(X, chunks=(400, 15))
    kernel = StreamingKernelPCA(2, solver="sketch", n_random_features=32).fit(rows)
    with dask.config.set(scheduler="sync"):
        alone = StreamingKernelPCA(2, solver="sketch", n_random_features=32).fit(rows)
        reduced = SubspaceReduction(4, n_power_iter=1).fit(rows)
    assert to_bytes(kernel.state()) == to_bytes(alone.state())
    together = SubspaceReduction(4, n_power_iter=1).fit(rows)
    assert to_bytes(together.state()) == to_bytes(reduced.state())
    np.testing.assert_array_equal(together.transform(rows).compute(), reduced.transform(X))


@slow
def test_killing_workers_at_random_ten_times_changes_nothing(cluster, client, tmp_path):
    kills, over, chance = [], threading.Event(), random.Random(0)

    def kill():
        while len(kills) < N_KILLS and not over.wait(0.2):
            ready = cluster.scheduler.workers
            pids = [
                nanny.pid for nanny in cluster.workers.values() if nanny.worker_address in ready
            ]
            if pids:
                with suppress(ProcessLookupError):
                    os.kill(pid := chance.choice(pids), signal.SIGKILL)
                    kills.append(pid)
        (tmp_path / "enough").touch()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        parts = delayed(rows_of_part, N_PARTS, 0.2, str(tmp_path / "enough"))
        found = fit_dask(pca(), parts)
    finally:
        over.set()
        killer.join()
    assert len(kills) == N_KILLS
    assert to_bytes(found.state()) == reference(pca(), N_PARTS, 8)


@slow
def test_a_partition_that_fails_names_itself(client):
    with pytest.raises(PartitionError, match="^partition 5 of 8: the disk is gone"):
        fit_dask(pca(), delayed(broken_part, 8))


@slow
def test_a_partition_that_kills_its_workers_names_itself():
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": True}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(**options, dashboard_address=":0", silence_logs=60) as cluster,
        distributed.Client(cluster),
        # Dask blames all partitions that waited on the worker.
        pytest.raises(
            PartitionError, match=r"^partition \d of 4: every worker that ran this partition died"
        ),
    ):
        fit_dask(pca(), delayed(deadly_part, 4))


def slow_part(number):
    time.sleep(2)
    return rows_of_part(number)


@slow
@pytest.mark.parametrize("model", [pca, lambda: StreamingKernelPCA(1, solver="sketch")])
def test_a_cluster_that_has_lost_all_workers_is_not_waited_for(model, monkeypatch):
    monkeypatch.setattr(dask_workers, "NO_WORKERS", 1.0)
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, processes=False, silence_logs=60) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(1, timeout=60)
        leaving = threading.Timer(1.5, lambda: cluster.scale(0))
        leaving.start()
        with pytest.raises(RuntimeError, match="no worker for 1 seconds, and those that it had"):
            fit_dask(model(), delayed(slow_part, 20))
        leaving.join()


def test_the_patience_is_dasks_own_setting():
    assert dask_workers.patience(dask) == dask_workers.NO_WORKERS == 300
    with dask.config.set({dask_workers.SETTING: "2 minutes"}):
        assert dask_workers.patience(dask) == 120


@slow
def test_a_cluster_without_workers_yet_is_waited_for(monkeypatch):
    monkeypatch.setattr(dask_workers, "NO_WORKERS", 0.5)
    options = {"n_workers": 0, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, processes=False, silence_logs=60) as cluster,
        distributed.Client(cluster),
    ):
        coming = threading.Timer(2.0, lambda: cluster.scale(1))
        coming.start()
        with pytest.warns(RuntimeWarning, match="no worker for 0.5 seconds; waiting for the first"):
            found = fit_dask(pca(), delayed(rows_of_part, 3))
        coming.join()
    assert to_bytes(found.state()) == reference(pca(), 3, 8)
