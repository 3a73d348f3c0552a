"""Where results go: devices, pipes, private files, a path that several processes write at once."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import sksketch
from robustness import children
from sksketch import cli

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="POSIX files and locks")

ROWS = np.random.default_rng(0).standard_normal((300, 3))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("rows.csv", ROWS, delimiter=",", header="a,b,c", comments="")
    sksketch.StreamingPCA(2).fit(ROWS).save("model.sks")
    return tmp_path


COMMANDS = {
    "pca": ["pca", "rows.csv", "-k", "1", "-q"],
    "apply": ["apply", "model.sks", "rows.csv", "-q"],
    "report": ["report", "model.sks", "-q"],
    "merge": ["merge", "model.sks", "model.sks"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_pipe_is_written_into_and_stays(here, name, tally):
    suffix = ".csv" if name == "apply" else ""
    assert cli.main([*COMMANDS[name], "-o", f"plain{suffix}"]) == 0
    os.mkfifo(f"pipe{suffix}")
    with subprocess.Popen(["cat", f"pipe{suffix}"], stdout=subprocess.PIPE) as reader:
        assert cli.main([*COMMANDS[name], "-o", f"pipe{suffix}"]) == 0
        assert reader.stdout.read() == Path(f"plain{suffix}").read_bytes()
    assert Path(f"pipe{suffix}").is_fifo()
    assert not list(here.glob("*.checkpoint"))
    tally("outputs that are no files", {"written into": 1})


@pytest.mark.parametrize("name", ["pca", "report", "merge"])
def test_a_device_is_written_into_and_stays(here, name, capsys, tally):
    try:
        os.mknod("null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        with open("null", "wb"):
            pass
    except OSError as error:
        pytest.skip(f"no devices can be made here: {error}")
    assert cli.main([*COMMANDS[name], "-o", "null"]) == 0
    assert stat.S_ISCHR(os.stat("null").st_mode)
    # What a full one says is the full disk's own word.
    os.mknod("full", stat.S_IFCHR | 0o666, os.makedev(1, 7))
    assert cli.main([*COMMANDS[name], "-o", "full"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert sorted(p.name for p in here.iterdir()) == ["full", "model.sks", "null", "rows.csv"]
    tally("outputs that are no files", {"written into": 2})


def test_a_pipe_that_nobody_reads_to_the_end_is_an_error(here, capsys):
    np.savetxt("long.csv", np.ones((50_000, 3)), delimiter=",", header="a,b,c", comments="")
    os.mkfifo("pipe.csv")
    with subprocess.Popen(["head", "-c1", "pipe.csv"], stdout=subprocess.PIPE):
        assert cli.main(["apply", "model.sks", "long.csv", "-q", "-o", "pipe.csv"]) == 2
    assert "has stopped" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_written_again_keeps_its_rights(here, name):
    target = Path("out.csv")
    assert cli.main([*COMMANDS[name], "-o", "out.csv"]) == 0
    usual = target.stat().st_mode
    Path("plain").touch()
    assert usual == Path("plain").stat().st_mode
    target.chmod(0o600)
    assert cli.main([*COMMANDS[name], "-o", "out.csv"]) == 0
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["m.sks", "./m.sks", "link.sks", "hard.sks"])
def test_the_checkpoint_is_not_the_result(here, name, capsys):
    Path("link.sks").symlink_to("m.sks")
    if name == "hard.sks":
        sksketch.StreamingPCA(2).fit(ROWS).save("m.sks")
        os.link("m.sks", "hard.sks")
    before = sorted(os.listdir())
    # Refused before rows are looked for, of which there are none.
    arguments = ["pca", "no such file.csv", "-k", "1", "-o", "m.sks", "--checkpoint", name]
    assert cli.main(arguments) == 2
    assert "--checkpoint is removed at the end" in capsys.readouterr().err
    assert sorted(os.listdir()) == before


SAVERS = {
    "state": "model.save(path)",
    "predictions": "cli.main(['apply', source, rows, '-q', '-o', path])",
    "report": "cli.main(['report', source, '-q', '-o', path])",
}
SAVING = """
import sys, time, sksketch
from sksketch import cli
path, source, rows, seconds = sys.argv[1:]
model = sksketch.load(source)
print("ready", flush=True)
sys.stdin.readline()
n, end = 0, time.monotonic() + float(seconds)
while time.monotonic() < end:
    assert ({}) in (None, 0)
    n += 1
print(n)
"""


each_saver = pytest.mark.parametrize(
    "what", ["state", *(pytest.param(w, marks=pytest.mark.slow) for w in SAVERS if w != "state")]
)


@each_saver
def test_several_processes_may_write_one_path(here, what, full, tally):
    """Each save succeeds, and the file is whole at any moment."""
    path = here / "out.csv"
    seconds = (10.0 if what == "state" else 4.0) if full else 0.6
    files = [str(here / name) for name in ("model.sks", "rows.csv")]
    command = [sys.executable, "-c", SAVING.format(SAVERS[what]), str(path), *files, str(seconds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    savers = [
        subprocess.Popen(command, text=True, env=children.environment(), **pipes) for _ in range(3)
    ]
    for saver in savers:
        assert saver.stdout.readline() == "ready\n", saver.stderr.read()
    for saver in savers:
        saver.stdin.write("go\n")
        saver.stdin.flush()
    sizes, looks = set(), 0
    while any(saver.poll() is None for saver in savers):
        if path.exists():
            data = path.read_bytes()
            sizes.add(len(data))
            looks += 1
            if what == "state":
                sksketch.state.persistence.from_bytes(data)
        time.sleep(0.002)
    found = Counter()
    for saver in savers:
        out, err = saver.communicate(timeout=60)
        assert saver.returncode == 0, err[-2000:]
        found["saved"] += int(out)
    assert len(sizes) == 1, sizes
    assert [p.name for p in here.iterdir() if p.name.startswith(".")] == []
    tally("three writers of one path", found | Counter({"looks, whole each time": looks}))


@each_saver
def test_what_a_killed_writer_leaves_goes_with_the_next(here, what, full, tally):
    path, chance = here / "out.csv", np.random.default_rng(0)
    files = [str(here / name) for name in ("model.sks", "rows.csv")]
    command = [sys.executable, "-c", SAVING.format(SAVERS[what]), str(path), *files, "60"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    for _ in range(20 if full else 1):
        with subprocess.Popen(command, text=True, env=children.environment(), **pipes) as saver:
            saver.stdout.readline()
            saver.stdin.write("go\n")
            saver.stdin.flush()
            time.sleep(chance.uniform(0.0, 0.1))
            saver.send_signal(signal.SIGKILL)
        if what == "state":
            sksketch.load(here / "model.sks").save(path)
        else:
            before = {p: p.read_bytes() for p in here.iterdir()}
            names = {"predictions": ["apply", "model.sks", "rows.csv"], "report": ["report"]}
            rest = [] if what == "predictions" else ["model.sks"]
            assert cli.main([*names[what], *rest, "-q", "-o", str(path)]) == 0
            assert path not in before or before[path] == path.read_bytes()
        assert [p.name for p in here.iterdir() if p.name.startswith(".")] == []
        tally("writers killed", {"the file whole, nothing left after the next": 1})
