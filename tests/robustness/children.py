"""Work in a process of its own, so that a crash, a hang or a flood of memory is an outcome."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import sksketch

SOURCE = Path(sksketch.__file__).parents[1]
TESTS = Path(__file__).parents[1]

# Address space beyond what the process has when it starts to work, and seconds for one trial.
ROOM = 3 * 2**30
PATIENCE = 60


def environment(**more: str) -> dict[str, str]:
    """Return what a child needs to find the package and the tests."""
    path = os.pathsep.join([str(SOURCE), str(TESTS)])
    return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", **more}


def python(code: str, *arguments: str, timeout: float = 300, **more: str):
    """Run Python code to its end and return the finished process."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment(**more),
        check=False,
    )


def outcomes(module: str, *arguments: str, timeout: float = 3000) -> Counter[tuple[str, str]]:
    """Run ``module.trials(*arguments)`` in a child, and count what it says of every trial.

    A trial has a name, which tells how to repeat it, and an outcome; counted are the first word of
    the name with the outcome. A child that dies, hangs or runs out of memory is told with the trial
    it was at. Outcomes that begin with "!" fail.
    """
    code = f"from robustness import children, {module}; children.work({module}.trials)"
    done = python(code, *arguments, timeout=timeout)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = Counter((name.split()[0], said) for name, said in lines if said is not None)
    bad = [(name, outcome) for name, outcome in lines if outcome and outcome[0] == "!"]
    assert not bad, f"{len(bad)} of {sum(found.values())}: {bad[:10]}"
    at = lines[-1] if lines else "the start"
    assert done.returncode == 0, f"exit {done.returncode} at {at}: {done.stderr[-2000:]}"
    return found


def work(trials) -> None:
    """Do the trials of a child: one line before each and one after it."""
    import faulthandler
    import warnings

    limit_memory(ROOM)
    warnings.simplefilter("ignore")
    for name, act in trials(*sys.argv[1:]):
        _say(name, None)
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        outcome = act()
        faulthandler.cancel_dump_traceback_later()
        _say(name, outcome)


def limit_memory(room: int) -> None:
    """Let the address space grow by so many bytes and no more."""
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))


def _say(name: str, outcome: str | None) -> None:
    sys.stdout.write(json.dumps([name, outcome]) + "\n")
    sys.stdout.flush()
