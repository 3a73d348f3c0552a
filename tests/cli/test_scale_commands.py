"""The commands with --workers and --dask: the same model from any number of processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from sksketch import (
    FrequentDirections,
    PartitionError,
    StreamingPCA,
    StreamingRidge,
    StreamingSVD,
    cli,
    load,
    open_rows,
)
from sksketch.run import workers
from sksketch.run.shards import Rows, learn_shard, merge_tree, shard_template
from sksketch.run.workers import Pool, Task, fit_workers
from sksketch.state.persistence import to_bytes
from sksketch.streams import Block

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.standard_normal((1200, 6)) * [5, 4, 3, 2, 1, 1], columns=list("abcdef"))
FRAME["y"] = 2 * FRAME.a - FRAME.b + 1
CUTS = [0, 300, 500, 1200]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Three files of different lengths."""
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        part = FRAME[CUTS[number] : CUTS[number + 1]]
        part.to_parquet(tmp_path / f"{number}.parquet", index=False)
    return tmp_path


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


@pytest.mark.slow
def test_any_number_of_workers_saves_the_same_bytes(here, capfd):
    pca = ("pca", "*.parquet", "-k", 3, "--sketch", "rfd", "--size", 5, "--columns", "a,b,c,d,e,f")
    for n in (1, 2):
        assert run(*pca, "--workers", n, "-o", f"{n}.sks", "--json") == 0
    assert (here / "1.sks").read_bytes() == (here / "2.sks").read_bytes()
    found = load("2.sks")
    template = shard_template(StreamingPCA(3, sketch="rfd", sketch_size=5))
    X = FRAME[list("abcdef")].to_numpy()
    blocks = [X[a:b] for a, b in pairwise(CUTS)]
    shards = [learn_shard(template, [Rows(b)], i, 3) for i, b in enumerate(blocks)]
    expected = StreamingPCA.from_state(merge_tree(StreamingPCA, shards).state)
    assert to_bytes(found.sketch_.state()) == to_bytes(expected.sketch_.state())
    assert list(found.feature_names_in_) == list("abcdef")
    assert json.loads(capfd.readouterr().out.splitlines()[-1])["rows_seen"] == 1200


def test_ridge_takes_workers(here, capfd):
    X, y = FRAME[list("abcdef")].to_numpy(), FRAME.y.to_numpy()
    options = ("--target", "y", "--alpha", 3, "--workers", 2, "-q")
    assert run("ridge", "*.parquet", *options, "-o", "r.sks") == 0
    np.testing.assert_allclose(load("r.sks").coef_, StreamingRidge(3.0).fit(X, y).coef_)


@pytest.mark.slow
def test_every_command_that_merges_takes_workers(here, capfd):
    # One process shows as much, and starts sooner.
    one = ("--workers", 1, "-q")
    assert run("svd", "*.parquet", "-k", 2, *one, "-o", "s.sks") == 0
    whole = StreamingSVD(2).fit(FRAME.to_numpy()).singular_values_
    np.testing.assert_allclose(load("s.sks").singular_values_, whole)
    options = ("--solver", "sketch", "--features", 32, "--columns", "a,b")
    assert run("kpca", "*.parquet", *options, *one, "-o", "k.sks") == 0
    assert load("k.sks").n_samples_seen_ == 1200
    assert run("reduce", "*.parquet", "-k", 3, "--power-passes", 1, *one, "-o", "n.sks") == 0
    assert load("n.sks").n_components_ == 3
    assert run("sketch", "*.parquet", *one, "-o", "x.sks") == 0
    assert run("info", "x.sks") == 0


def test_sketches_of_ones_own_scheduler_are_merged(here, capfd):
    for key in ("rfd", "gaussian"):
        for n in range(3):
            options = ("--sketch", key, "--size", 4, "--shard", n, "--shards", 3, "--for", "svd")
            assert run("sketch", f"{n}.parquet", *options, "-o", f"{n}.sks", "-q") == 0
        assert run("merge", "0.sks", "1.sks", "2.sks", "-o", "all.sks") == 0
        assert run("info", "all.sks") == 0
        assert run("report", "all.sks", "-o", "all.html") == 0
        assert load("all.sks").n_rows_seen == 1200
    assert load("all.sks").shards == (0, 1, 2)
    assert run("sketch", "0.parquet", "--shard", 3, "--shards", 3, "-o", "x.sks") == 2
    assert "--shard is 0 to 2" in capfd.readouterr().err


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_bytes(here, capfd):
    distributed = pytest.importorskip("distributed")
    pca = ("pca", "*.parquet", "-k", 3, "--sketch", "rfd", "--size", 5, "-q")
    assert run(*pca, "--workers", 2, "-o", "w.sks") == 0
    threads = {"n_workers": 1, "threads_per_worker": 2, "processes": False}
    with distributed.LocalCluster(**threads, dashboard_address=":0") as cluster:
        assert run(*pca, "--dask", cluster.scheduler_address, "-o", "d.sks") == 0
    assert (here / "d.sks").read_bytes() == (here / "w.sks").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pca", "rows.csv", "--workers", 2), "give several files, or Parquet"),
        (
            ("pca", "*.parquet", "--workers", 2, "--dask", "tcp://x:1"),
            "give one of --workers, --dask",
        ),
        (("pca", "*.parquet", "--workers", 2, "--every", 5), "checkpoints are for runs without"),
        (("pca", "*.parquet", "--device", "nowhere"), "nowhere"),
        (("kpca", "*.parquet", "--workers", 2), "pass --solver sketch"),
        (("reduce", "*.parquet", "-t", "y", "--workers", 2), "for subspaces, without a target"),
        (("pca", "*.parquet", "--workers", 2, "--missing", "mean"), "mean of all rows above"),
    ],
)
def test_mistakes_get_one_line(here, capfd, arguments, message):
    FRAME.to_csv("rows.csv", index=False)
    assert run(*arguments, "-o", "m.sks") == 2
    told = capfd.readouterr().err
    assert message in told
    assert len(told.splitlines()) == 1


def test_a_device_gives_the_same_components(here, capfd):
    pytest.importorskip("torch", reason="torch is not installed: no device to test on")
    for kind, more in (("pca", ()), ("ridge", ("-t", "y")), ("sketch", ("-t", "y"))):
        options = (*more, "--columns", "a,b,c,d,e,f", "--sketch", "exact")
        assert run(kind, "*.parquet", *options, "-o", "host.sks") == 0
        assert run(kind, "*.parquet", *options, "--device", "cpu", "-o", "device.sks") == 0
    mine, theirs = (load(here / name) for name in ("host.sks", "device.sks"))
    np.testing.assert_allclose(mine.summary().to_dense(), theirs.summary().to_dense(), rtol=1e-10)


def test_a_corrupt_file_is_named_with_its_part(here, capfd):
    damaged = (here / "1.parquet").read_bytes()
    (here / "1.parquet").write_bytes(damaged[:200] + b"\xff" * 2000 + damaged[2200:])
    assert run("pca", "*.parquet", "--workers", 2, "-o", "m.sks") == 2
    told = capfd.readouterr().err.splitlines()[-1]
    assert "partition 1 of 3: " in told
    assert "1.parquet" in told


# Processes that are lost


@dataclass(frozen=True)
class SlowPart:
    """Rows that take a while, as of a large file."""

    number: int
    seconds: float = 0.0

    def blocks(self):
        time.sleep(self.seconds)
        yield Block(np.random.default_rng(self.number).standard_normal((200, 8)))


def die(number):
    os.kill(os.getpid(), signal.SIGKILL)


def test_killed_processes_change_nothing_in_the_result(monkeypatch):
    # Chance may hit the same part more than twice.
    monkeypatch.setattr(workers, "MOST_TRIES", 9)
    kills, over = [], threading.Event()

    def kill():
        while len(kills) < 3 and not over.wait(0.3):
            if living := [p for p in multiprocessing.active_children() if p.pid not in kills]:
                kills.append(living[-1].pid)
                os.kill(kills[-1], signal.SIGKILL)

    source = open_rows([np.zeros((1, 8))])
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        parts = [SlowPart(number, 0.4) for number in range(12)]
        found = fit_workers(FrequentDirections(4), source, parts, 2, fan_in=3)
    finally:
        over.set()
        killer.join()
    assert len(kills) == 3
    template = FrequentDirections(4)
    shards = [
        learn_shard(template, [Rows(block.X) for block in SlowPart(n).blocks()], n, 12)
        for n in range(12)
    ]
    assert to_bytes(found.state()) == to_bytes(merge_tree(FrequentDirections, shards, 3).state)


@pytest.mark.slow
def test_a_part_that_kills_every_process_is_named():
    with Pool(1) as pool:
        pool.add(Task((0, 0), die, (0,), "part 7"))
        with pytest.raises(PartitionError, match="part 7: 3 processes were lost"):
            pool.run(lambda task, answer: None)
