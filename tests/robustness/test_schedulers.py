"""Every scheduler gives the bits of the synchronous one, whichever worker is killed meanwhile."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import sksketch
from robustness.conftest import FULL
from sksketch.state.persistence import to_bytes

dask = pytest.importorskip("dask", reason="needs the extra dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [
    # The sockets and event loops of workers that were killed close when they are collected.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

# An odd number of columns, so that what travels begins at addresses of every kind.
N_PARTS, PART_ROWS, WIDTH = 8, 151, 13
X = np.random.default_rng(0).standard_normal((N_PARTS * PART_ROWS, WIDTH)) * 0.9 ** np.arange(WIDTH)
X += 0.3
Y = X[:, :2] @ [1.0, -2.0]
NAMES = [f"c{i}" for i in range(WIDTH)]
BLOCK = {"solver": "block", "buffer_rows": 60}

MODELS = {
    "pca exact": lambda: sksketch.StreamingPCA(3),
    "pca rfd": lambda: sksketch.StreamingPCA(3, sketch="rfd", sketch_size=5),
    "svd": lambda: sksketch.StreamingSVD(3, sketch="rfd", sketch_size=5),
    "ridge": lambda: sksketch.StreamingRidge(),
    "ridge rfd": lambda: sksketch.StreamingRidge(sketch="rfd", sketch_size=5),
    "kernel": lambda: sksketch.StreamingKernelPCA(2, solver="sketch", n_random_features=16),
    "subspace": lambda: sksketch.SubspaceReduction(3, n_power_iter=1),
    "fd": lambda: sksketch.FrequentDirections(5),
    "fd block": lambda: sksketch.FrequentDirections(5, **BLOCK),
    "gaussian": lambda: sksketch.GaussianSketch(7),
    "centered": lambda: sksketch.Centered(sksketch.ExactCovariance()),
}
# Spark cuts blocks of its own, and power passes add up block by block.
ON_SPARK = [name for name in MODELS if name not in ("kernel", "subspace")]


def fitted(name, rows, targets):
    """Return the bytes of what dask's rows give."""
    model = MODELS[name]()
    if isinstance(model, sksketch.Sketch):
        model = sksketch.sketch_dask(model, rows)
    elif "ridge" in name:
        model.fit(rows, targets)
    else:
        model.fit(rows)
    return to_bytes(model.state())


def of_array(seconds=0.0):
    rows = da.from_array(X, chunks=(PART_ROWS, WIDTH))
    if seconds:
        rows = rows.map_blocks(slowly, seconds, dtype=rows.dtype)
    return rows, da.from_array(Y, chunks=PART_ROWS)


def slowly(block, seconds):
    time.sleep(seconds)
    return block


@pytest.fixture(scope="module")
def synchronous():
    with dask.config.set(scheduler="sync"):
        return {name: fitted(name, *of_array()) for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_threads(name, synchronous, full, tally):
    for _ in range(20 if full else 1):
        with dask.config.set(scheduler="threads", num_workers=3):
            assert fitted(name, *of_array()) == synchronous[name]
        tally("schedulers", {"dask's threads, the same bits": 1})


@pytest.fixture(scope="module")
def cluster():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with dask.config.set({"distributed.scheduler.allowed-failures": 1000}):
        cluster = distributed.LocalCluster(**options, dashboard_address=":0", silence_logs=60)
        try:
            with distributed.Client(cluster) as client:
                client.wait_for_workers(2, timeout=60)
                yield cluster
        finally:
            try:
                cluster.close()
            except KeyError:
                # Dask forgets to expect a worker that is killed before its first news.
                cluster.status = distributed.Status.closed


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_processes(name, cluster, synchronous, full, tally):
    for _ in range(10 if full else 1):
        assert fitted(name, *of_array()) == synchronous[name]
        tally("schedulers", {"dask's processes, the same bits": 1})


def killing(cluster, seconds):
    """Kill one worker after a while; what it had is done again by others."""
    time.sleep(seconds)
    nannies = list(cluster.workers.values())
    random.Random(seconds).shuffle(nannies)
    ready = cluster.scheduler.workers
    for nanny in nannies:
        if nanny.worker_address in ready:
            with suppress(ProcessLookupError):
                os.kill(nanny.pid, signal.SIGKILL)
            return


def _replace_lost(cluster):
    """Wait for two workers; a nanny whose worker dies while it starts gives up and is replaced."""
    client = distributed.get_client()
    with suppress(TimeoutError):
        client.wait_for_workers(2, timeout=30)
        return
    cluster.scale(0)
    cluster.scale(2)
    client.wait_for_workers(2, timeout=120)


@pytest.mark.slow
def test_processes_that_are_killed(cluster, synchronous, full, tally):
    chance = random.Random(3)
    for i in range(100 if full else 2):
        name = list(MODELS)[(5 * i + 1) % len(MODELS)]
        _replace_lost(cluster)
        killer = threading.Thread(target=killing, args=(cluster, chance.uniform(0.02, 0.5)))
        killer.start()
        try:
            assert fitted(name, *of_array(0.05)) == synchronous[name], name
        finally:
            killer.join()
        tally("schedulers", {"dask with a worker killed, the same bits": 1})


@pytest.fixture(scope="module")
def spark():
    pytest.importorskip("pyspark", reason="needs the extra spark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = (
            # Two threads, and three attempts for every task.
            SparkSession.builder.master("local[2,3]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.mark.skipif(not FULL, reason="tests/run/test_spark.py kills one; here are a hundred")
@pytest.mark.slow
def test_spark_whose_workers_are_killed(spark, synchronous, tmp_path, tally):
    numbers = spark.sparkContext.parallelize(range(N_PARTS), N_PARTS)
    rows, targets, part_rows = X, Y, PART_ROWS

    def part(i):
        which = slice(i * part_rows, (i + 1) * part_rows)
        wide = np.column_stack([rows[which], targets[which]])
        return [tuple(map(float, row)) for row in wide]

    frame = spark.createDataFrame(numbers.flatMap(part), [*NAMES, "y"]).cache()
    for i in range(100):
        name, mark, victim = ON_SPARK[i % len(ON_SPARK)], str(tmp_path / f"{i}"), i % N_PARTS

        def deadly(batches, mark=mark, victim=victim):
            from pyspark import TaskContext

            for batch in batches:
                if TaskContext.get().partitionId() == victim and not Path(mark).exists():
                    Path(mark).touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                yield batch

        risky = frame.mapInArrow(deadly, frame.schema)
        model, options = MODELS[name](), {}
        if "ridge" in name:
            options = {"target": "y"}
        found = sksketch.fit_spark(model, risky, features=NAMES, **options)
        if not isinstance(found, sksketch.Sketch):
            # Only Spark's columns have names.
            del found.feature_names_in_
        assert to_bytes(found.state()) == synchronous[name], name
        assert Path(mark).exists()
        tally("schedulers", {"Spark with a worker killed, the same bits": 1})
