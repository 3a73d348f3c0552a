"""Calls of the system that fail, and kills in the middle of them: the old file or the new one."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sksketch
from robustness import children

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD and /proc")

CALLS = ("open", "write", "fsync", "chmod", "rename")
CODES = ("ENOSPC", "EIO", "EACCES", "EDQUOT", "EROFS", "ENOMEM", "EPERM", "EINTR")
WAYS = {
    "save": "sksketch.load(sys.argv[1] + '/model.sks').save(target)",
    "apply": "code = cli.main(['apply', sys.argv[1] + '/model.sks', rows, '-q', '-o', target])",
    "report": "code = cli.main(['report', sys.argv[1] + '/model.sks', '-q', '-o', target])",
    "pca": "code = cli.main(['pca', rows, '-k', '1', '-q', '-o', target])",
}
# One process tries many faults: a fork for each, since a fault may kill.
ATTACK = """
import json, os, sys, sksketch
from sksketch import cli
rows = sys.argv[1] + "/rows.npy"
# Compiled once, and without threads of other libraries, which a fork would lose.
for way in WAYS:
    target = sys.argv[1] + "/warm.csv"
    exec(WAYS[way])
for line in sys.stdin:
    way, target, plan = json.loads(line)
    pid = os.fork()
    if pid == 0:
        os.environ["SKSKETCH_FAULT"] = plan
        code, said = 0, ""
        try:
            exec(WAYS[way])
        except OSError as error:
            code, said = 2, str(error)
        except BaseException as error:
            code, said = 1, repr(error)
        os.environ.pop("SKSKETCH_FAULT")
        sys.stderr.write(said)
        os._exit(code)
    status = os.waitpid(pid, 0)[1]
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler, so nothing to inject errors with")
    library = tmp_path_factory.mktemp("shim") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-w", "-o", library, source, "-ldl"], check=True
    )
    return library


def test_the_old_file_or_the_new_whatever_fails(shim, tmp_path, full, tally):
    place = tmp_path / "place"
    place.mkdir()
    np.save(tmp_path / "rows.npy", np.random.default_rng(1).random((40, 3)))
    sksketch.StreamingPCA(2).fit(np.random.default_rng(0).random((30, 3))).save(
        tmp_path / "model.sks"
    )
    variables = children.environment(
        LD_PRELOAD=str(shim), SKSKETCH_FAULT_FOLDER=str(place), NUMBA_NUM_THREADS="1"
    )
    code = f"WAYS = {WAYS!r}\n{ATTACK}"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:

        def act(way, target, plan):
            child.stdin.write(json.dumps([way, str(target), plan]) + "\n")
            child.stdin.flush()
            return int(child.stdout.readline())

        numbers = range(1, 4) if full else range(1, 2)
        codes = CODES if full else CODES[:1]
        for way in WAYS if full else ("save", "apply"):
            target = place / ("out.csv" if way == "apply" else "out.sks")
            assert act(way, target, "") == 0
            good = target.read_bytes()
            for call in CALLS:
                for plan in [f"{call}:{n}:{k}" for n in numbers for k in (0, *_values(codes))]:
                    target.write_bytes(b"old")
                    ended = act(way, target, plan)
                    now = target.read_bytes()
                    assert now in (b"old", good), (way, plan)
                    assert ended in (0, 2, -9), (way, plan, ended)
                    if ended == 0:
                        assert now == good, (way, plan)
                    # Whatever is left goes with the next one.
                    assert act(way, target, "") == 0
                    assert target.read_bytes() == good
                    assert sorted(os.listdir(place)) == [target.name], (way, plan)
                    how = {0: "nothing was hit", 2: "an error", -9: "killed"}[ended]
                    tally("calls that fail", {f"{how}, the old file or the new": 1})
            target.unlink()
        child.stdin.close()
        assert child.wait(timeout=60) == 0, child.stderr.read()


def _values(codes):
    return [getattr(errno, code) for code in codes]


def test_a_full_disk_says_so(shim, tmp_path):
    """And not that there was an error of input and output."""
    variables = {
        "LD_PRELOAD": str(shim),
        "SKSKETCH_FAULT_FOLDER": str(tmp_path),
        "SKSKETCH_FAULT": f"write:1:{errno.ENOSPC}",
    }
    code = (
        "import sys, numpy as np, sksketch\n"
        "sksketch.FrequentDirections(2).update(np.eye(3)).save(sys.argv[1])"
    )
    done = children.python(code, str(tmp_path / "a.sks"), **variables)
    last = done.stderr.strip().splitlines()[-1]
    assert f"[Errno {errno.ENOSPC}] cannot save the state (No space left on device)" in last
    assert "a.sks" in last
    assert os.listdir(tmp_path) == []
