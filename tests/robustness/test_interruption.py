"""Killed at any moment, or out of disk: the old file or the new one, and nothing left behind."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest

import sksketch
from robustness import children

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="POSIX signals and limits")

SAVER = """
import sys, numpy as np, sksketch
X = np.random.default_rng(0).standard_normal((300, 400))
sketch = sksketch.FrequentDirections(60)
while True:
    sketch.update(X)
    sketch.save(sys.argv[1])
    print(sketch.n_rows_seen, flush=True)
"""

# Every block waits for the parent's word, so that a run can be killed at each of them.
RUNNER = """
import sys, numpy as np, sksketch
X = np.random.default_rng(0).standard_normal((4000, 30))
pca = sksketch.StreamingPCA(3, sketch="rfd", sketch_size=8)
source = sksketch.open_rows(X, batch_rows=100)
print("ready", flush=True)
sksketch.fit_stream(
    pca, source, checkpoint=sys.argv[1], every=200, progress=False
)
print("done", flush=True)
"""


def start(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=children.environment())


def temporary(folder):
    return [p for p in folder.iterdir() if p.name.startswith(".")]


def test_a_saver_killed_at_any_time_leaves_the_old_file_or_the_new(tmp_path, full, tally):
    path = tmp_path / "a.sks"
    chance = random.Random(1)
    found = Counter()
    for _ in range(60 if full else 1):
        with start(SAVER, path) as child:
            child.stdout.readline()
            # Many kills for one start: a child that stands still is as good as one killed.
            for _ in range(20):
                time.sleep(chance.uniform(0.0, 0.02))
                child.send_signal(signal.SIGSTOP)
                seen = sksketch.load(path).n_rows_seen
                assert seen > 0
                assert seen % 300 == 0
                found["stopped, the file whole"] += 1
                child.send_signal(signal.SIGCONT)
            time.sleep(chance.uniform(0.0, 0.05))
            child.kill()
        sketch = sksketch.load(path)
        assert sketch.n_rows_seen % 300 == 0
        found["killed, the file whole"] += 1
        sketch.save(path)
        assert temporary(tmp_path) == []
    tally("saving, interrupted", found)


def test_a_run_killed_at_any_time_goes_on_to_the_same_answer(tmp_path, full, tally):
    X = np.random.default_rng(0).standard_normal((4000, 30))
    whole = sksketch.StreamingPCA(3, sketch="rfd", sketch_size=8)
    sksketch.fit_stream(whole, sksketch.open_rows(X, batch_rows=100), progress=False)
    chance = random.Random(2)
    found = Counter()
    for trial in range(25 if full else 1):
        path = tmp_path / f"run{trial}.sks"
        for _ in range(2):
            with start(RUNNER, path) as child:
                child.stdout.readline()
                time.sleep(chance.uniform(0.0, 0.06))
                child.kill()
            found["killed"] += 1
        pca = sksketch.StreamingPCA(3, sketch="rfd", sketch_size=8)
        source = sksketch.open_rows(X, batch_rows=100)
        sksketch.fit_stream(pca, source, checkpoint=path, every=200, progress=False)
        np.testing.assert_array_equal(pca.components_, whole.components_)
        assert pca.n_samples_seen_ == 4000
        assert temporary(tmp_path) == []
        found["gone on to the same bits"] += 1
    tally("runs, interrupted", found)


# Files may have so many bytes: the system refuses to write more, as a full disk does.
FULL_DISK = """
import resource, signal, sys, numpy as np, sksketch
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sketch = sksketch.FrequentDirections(60).update(np.random.default_rng(1).random((300, 400)))
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    if sys.argv[3] == "save":
        sketch.save(sys.argv[1])
    else:
        sksketch.fit_stream(
            sksketch.StreamingSVD(2, sketch=sketch.fresh()), sksketch.open_rows(
                np.random.default_rng(1).random((300, 400)), batch_rows=50),
            checkpoint=sys.argv[1], every=100, progress=False)
except OSError as error:
    print(type(error).__name__, error)
else:
    print("written")
"""


@pytest.mark.parametrize("how", ["save", "checkpoint"])
def test_a_full_disk_is_said_and_the_old_file_stays(tmp_path, how, full, tally):
    path = tmp_path / "a.sks"
    old = sksketch.FrequentDirections(2).update(np.eye(3))
    found = Counter()
    for limit in (0, 1, 9, 4096, 50_000, 150_000) if full else (50_000,):
        if how == "save":
            old.save(path)
        done = children.python(FULL_DISK, str(path), str(limit), how)
        assert done.returncode == 0, done.stderr
        assert "OSError" in done.stdout, done.stdout
        assert "cannot save the state" in done.stdout
        assert str(path) in done.stdout
        if how == "save":
            assert sksketch.load(path).n_rows_seen == 3
        else:
            assert not path.exists()
        assert temporary(tmp_path) == []
        found["refused, the old file whole"] += 1
    tally("disk full", found)
