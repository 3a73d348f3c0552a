"""kill -9 at any moment of any command: run again, it gives the same bytes and leaves nothing."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sksketch
from robustness import children

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="POSIX signals and forks")

# Each with the name of its result.
COMMANDS = {
    "pca": (["pca", "rows.csv", "-k", "2", "--sketch", "rfd", "--sketch-size", "3"], "pca.sks"),
    "svd": (["svd", "rows.svm", "-k", "2", "--sketch", "sfd", "--sketch-size", "3"], "svd.sks"),
    "ridge": (["ridge", "rows.npy", "--target", "0"], "ridge.sks"),
    "online": (["online", "rows.svm", "--task", "regress"], "online.sks"),
    "kpca": (["kpca", "rows.npy", "-k", "2", "--landmarks", "20"], "kpca.sks"),
    "kcca": (["kcca", "rows.npy", "--other", "0,1", "-k", "1", "--landmarks", "20"], "kcca.sks"),
    "reduce": (["reduce", "rows.npy", "-k", "2"], "reduce.sks"),
    "sketch": (["sketch", "rows.csv", "--sketch", "rfd", "--sketch-size", "3"], "sketch.sks"),
    "merge": (["merge", "model.sks", "model.sks"], "merge.sks"),
    "apply": (["apply", "model.sks", "rows.csv"], "apply.parquet"),
    "report": (["report", "model.sks"], "report.html"),
}
STREAMING = ("pca", "svd", "ridge", "online", "kpca", "kcca", "reduce", "sketch")

# Imports take longer than most commands, so one process forks for each; it starts no threads.
FORKS = """
import json, os, sys, time
import sksketch, pyarrow.csv, pyarrow.parquet
from sksketch import cli
from sksketch.cli import app
app.build_app()
from sksketch.arrays.kernels import kernels
from sksketch.online.kernels import online_kernels
kernels(), online_kernels()
for line in sys.stdin:
    seconds, arguments = json.loads(line)
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(cli.main(arguments))
    if seconds is not None:
        time.sleep(seconds)
        os.kill(pid, 9)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps([code, time.monotonic() - began]), flush=True)
"""


def test_any_command_may_be_killed_at_any_time(tmp_path, full, tally):
    place = tmp_path / "place"
    place.mkdir()
    _write_rows(place)
    inputs = sorted(p.name for p in place.iterdir())
    chance = random.Random(0)
    with subprocess.Popen(
        [sys.executable, "-c", FORKS],
        cwd=place,
        env=children.environment(NUMBA_NUM_THREADS="1"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as forks:

        def act(name, seconds=None):
            words, output = COMMANDS[name]
            options = ["--every", "200"] if name in STREAMING else []
            quiet = [] if name == "merge" else ["-q"]
            forks.stdin.write(
                json.dumps([seconds, [*words, *options, *quiet, "-o", output]]) + "\n"
            )
            forks.stdin.flush()
            return json.loads(forks.stdout.readline())

        names = list(COMMANDS) if full else ["pca", "apply"]
        for name in names:
            output = place / COMMANDS[name][1]
            # The first fills what is compiled on disk.
            assert act(name)[0] == 0, name
            code, seconds = act(name)
            assert code == 0
            good = output.read_bytes()
            killed = 0
            while killed < (50 if full else 3):
                output.unlink(missing_ok=True)
                for _ in range(chance.randint(2, 5)):
                    code, _ = act(name, chance.uniform(0.2, 1.1) * seconds)
                    assert code in (-9, 0), (name, code)
                    killed += code == -9
                    assert not output.exists() or output.read_bytes() == good, name
                assert act(name)[0] == 0, name
                assert output.read_bytes() == good, name
                assert sorted(p.name for p in place.iterdir()) == sorted([*inputs, output.name])
            tally("commands killed", {"killed, and the same bytes in the end": killed})
            output.unlink()
        forks.stdin.close()


def _write_rows(place: Path) -> None:
    X = np.random.default_rng(0).standard_normal((3000, 5)).round(3)
    np.save(place / "rows.npy", X)
    np.savetxt(place / "rows.csv", X, delimiter=",", header="a,b,c,d,e", comments="", fmt="%.3f")
    lines = [f"{r[0]} " + " ".join(f"{j + 1}:{x}" for j, x in enumerate(r)) for r in X.tolist()]
    (place / "rows.svm").write_text("\n".join(lines) + "\n")
    sksketch.StreamingPCA(2).fit(X).save(place / "model.sks")
