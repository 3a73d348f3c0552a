"""Signals at any moment of a command: no traceback, the code of the signal, and a way to go on."""

from __future__ import annotations

import os
import random
import signal
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

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="POSIX signals")

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
# Ctrl-C is tried every time.
each_signal = pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=() if n == signal.SIGINT else pytest.mark.slow) for n in SIGNALS],
)
SCRIPT = Path(sys.executable).with_name("sksketch")


def start(*arguments, command=(sys.executable, "-m", "sksketch"), **options):
    # Shells let what runs in the background ignore Ctrl-C; this is not one of those.
    def listen():
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(
        [*command, *map(str, arguments)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=children.environment(),
        preexec_fn=listen,
        **options,
    )


@each_signal
@pytest.mark.parametrize("command", ["-m", "script"])
def test_a_signal_during_the_imports_is_no_traceback(number, command, full, tally):
    if command == "script" and not SCRIPT.exists():
        pytest.skip("the command is not installed beside this Python")
    how = (sys.executable, "-m", "sksketch") if command == "-m" else (sys.executable, SCRIPT)
    for delay in (0.15, 0.3, 0.5, 0.7, 0.9) if full else (0.4,):
        with start("info", "/", command=how) as process:
            time.sleep(delay)
            process.send_signal(number)
            _, err = process.communicate(timeout=60)
        # It may have ended before; the handlers come a moment after the interpreter.
        assert process.returncode in (SIGNALS[number], 2, -number), err
        assert "Traceback" not in err
        if process.returncode == -number:
            assert delay < 0.2
        tally("signals during the imports", {f"exit {process.returncode}": 1})


def write_rows(path: Path, n_rows: int) -> None:
    rows = np.random.default_rng(0).standard_normal((n_rows, 30)).round(4)
    np.savetxt(path, rows, delimiter=",", fmt="%g")


@each_signal
def test_a_signal_leaves_a_checkpoint_to_go_on_from(number, tmp_path, tally):
    rows, model = tmp_path / "rows.csv", tmp_path / "model.sks"
    write_rows(rows, 12_000)
    options = [rows, "--no-header", "--sketch", "rfd", "--sketch-size", "10", "-q"]
    checkpoint = tmp_path / "model.sks.checkpoint"
    with start("pca", *options, "--every", "500", "-o", model) as process:
        while not checkpoint.exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.001)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == SIGNALS[number], err
    assert "Traceback" not in err
    assert "Run the same command again" in err
    assert cli.main([str(x) for x in ("pca", *options, "--every", "500", "-o", model)]) == 0
    alone = tmp_path / "alone.sks"
    assert cli.main([str(x) for x in ("pca", *options, "--every", "500", "-o", alone)]) == 0
    assert model.read_bytes() == alone.read_bytes()
    left = {p.name for p in tmp_path.iterdir()}
    assert left == {"rows.csv", "model.sks", "alone.sks"}
    tally("signals during a run", {"a checkpoint, and the same bytes": 1})


@pytest.mark.slow
def test_an_ignored_signal_stays_ignored(tmp_path):
    # As nohup starts commands.
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'sksketch', 'info', sys.argv[1]])\n"
    )
    path = tmp_path / "a.sks"
    sksketch.StreamingPCA(1).fit(np.eye(3)).save(path)
    command = (sys.executable, "-c", code)
    with start(path, command=command) as process:
        for _ in range(20):
            time.sleep(0.1)
            process.send_signal(signal.SIGHUP)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "rows seen" in out


def test_importing_the_package_leaves_signals_alone():
    code = (
        "import signal; before = [signal.getsignal(n) for n in (1, 2, 15)]\n"
        "import sksketch; from sksketch import cli\n"
        "assert before == [signal.getsignal(n) for n in (1, 2, 15)]\n"
        "assert cli.main(['info', '/']) == 2\n"
        "assert before == [signal.getsignal(n) for n in (1, 2, 15)]"
    )
    done = children.python(code)
    assert done.returncode == 0, done.stderr


def test_fit_stream_holds_the_signals_that_the_program_handles(tmp_path):
    class Stopping(sksketch.StreamingPCA):
        def partial_fit(self, X, y=None, **options):
            os.kill(os.getpid(), signal.SIGTERM)
            return super().partial_fit(X, y, **options)

    def handle(number, frame):
        raise SystemExit(number)

    path = tmp_path / "run.sks"
    former = signal.signal(signal.SIGTERM, handle)
    try:
        with pytest.raises(SystemExit):
            sksketch.fit_stream(
                Stopping(1),
                sksketch.open_rows(np.random.default_rng(0).random((100, 3)), batch_rows=10),
                checkpoint=path,
                progress=False,
            )
        assert signal.getsignal(signal.SIGTERM) is handle
    finally:
        signal.signal(signal.SIGTERM, former)
    assert sksketch.state.persistence.read_state(path).meta["rows_done"] == 10


@pytest.mark.slow
def test_an_error_in_csv_ends_with_its_own_code(tmp_path, full, tally):
    """Threads of Arrow may still be at work on the next block when the command ends."""
    path = tmp_path / "inf.csv"
    write_rows(path, 60_000)
    lines = path.read_text().split("\n")
    lines[5000] = "inf," + lines[5000].partition(",")[2]
    path.write_text("\n".join(lines))
    found, chance = Counter(), random.Random(0)
    waiting = []
    for _ in range(100 if full else 4):
        waiting.append(start("pca", path, "--no-header", "-k", "2", "-q", "-o", tmp_path / "x.sks"))
        if len(waiting) < 2:
            continue
        process = waiting.pop(chance.randrange(2))
        _, err = process.communicate(timeout=60)
        assert process.returncode == 2, (process.returncode, err)
        assert len(err.splitlines()) == 1
        found["one line and code 2"] += 1
    for process in waiting:
        process.communicate(timeout=60)
        assert process.returncode == 2
    tally("errors while CSV is parsed ahead", found)
