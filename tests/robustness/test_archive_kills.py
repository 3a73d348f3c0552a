"""kill -9 while states are added to an archive and replaced: none is lost, none counts twice."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from robustness import children
from sksketch import Archive, FrequentDirections, load

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="POSIX signals")

N_PERIODS, N_ROWS, N_COLUMNS = 64, 20, 8

# Imports take longer than additions, so one process forks for each kill. What it forks adds the
# states that are missing, late ones too, and then replaces one after the other until it is killed.
FORKS = f"""
import json, os, sys, time
import numpy as np
from sksketch import Archive, FrequentDirections

def state(number, version):
    rows = np.random.default_rng([number, version]).standard_normal(({N_ROWS}, {N_COLUMNS}))
    return FrequentDirections(3, solver="exact").update((1.0 + version) * rows)

def work(path, seed):
    rng, archive = np.random.default_rng(seed), Archive(path)
    print("began", flush=True)
    there = {{int(start) for start, _ in archive.periods()}}
    missing = [number for number in range({N_PERIODS}) if number not in there]
    for number in rng.permutation(missing).tolist():
        archive.add(state(number, 0), float(number), float(number + 1))
        print("added", number, flush=True)
    for version in range(1, 1 << 30):
        number = int(rng.integers({N_PERIODS}))
        archive.add(state(number, version), float(number), float(number + 1), replace=True)
        print("replaced", number, flush=True)

state(0, 0)
for line in sys.stdin:
    path, seed, n_lines, seconds = json.loads(line)
    out, its_out = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(its_out, 1)
        work(path, seed)
    os.close(its_out)
    with os.fdopen(out) as lines:
        said = [next(lines) for _ in range(n_lines)]
        time.sleep(seconds)
        os.kill(pid, 9)
        said += lines
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps([code, said]), flush=True)
"""


def test_an_archive_may_be_killed_at_any_time(tmp_path, full, tally):
    path, chance, outcomes = tmp_path / "archive", random.Random(0), Counter()
    confirmed: set[int] = set()
    with subprocess.Popen(
        [sys.executable, "-c", FORKS],
        env=children.environment(NUMBA_NUM_THREADS="1"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as forks:
        for seed in range(100 if full else 8):
            # In the middle of the addition after so many, wherever that is.
            wanted = [str(path), seed, chance.randint(1, 30), chance.uniform(0.0, 0.05)]
            forks.stdin.write(json.dumps(wanted) + "\n")
            forks.stdin.flush()
            code, said = json.loads(forks.stdout.readline())
            assert code == -signal.SIGKILL
            outcomes["kills"] += 1
            lines = [line.split() for line in said]
            outcomes.update(word for word, *_ in lines if word != "began")
            confirmed |= {int(numbers[0]) for word, *numbers in lines if word != "began"}
            _check(path, confirmed, chance)
            if len(confirmed) == N_PERIODS and chance.random() < 0.5:
                # Begin anew, so that kills come while states are added as well.
                shutil.rmtree(path)
                confirmed.clear()
        forks.stdin.close()
    assert outcomes["added"] > outcomes["kills"]
    tally("archive", outcomes)


def _name(number):
    return f"{float(number).hex()}_{float(number + 1).hex()}"


def _check(path, confirmed, chance):
    """Ranges hold exactly what the files of their periods do, and all that was confirmed."""
    archive = Archive(path)
    starts = [int(start) for start, _ in archive.periods()]
    assert confirmed <= set(starts)
    if not starts:
        return
    states = {number: load(path / "periods" / f"{_name(number)}.sks") for number in starts}
    runs = np.split(np.array(starts), np.flatnonzero(np.diff(starts) != 1) + 1)
    for run in runs:
        for _ in range(4):
            first, last = sorted(chance.choices(run.tolist(), k=2))
            found = archive.query(float(first), float(last + 1))
            parts = [states[number] for number in range(first, last + 1)]
            assert found.n_rows_seen == N_ROWS * len(parts)
            whole = sum(part.squared_norm for part in parts)
            assert found.squared_norm == pytest.approx(whole, rel=1e-12)
            one = FrequentDirections(3, solver="exact")
            for part in parts:
                one.merge(part)
            apart = np.linalg.norm(one.summary().to_dense() - found.summary().to_dense(), 2)
            assert apart <= one.error_bound() + found.error_bound() + 1e-12 * whole
