"""Forged files through the commands, and runs that go on from forged checkpoints.

Whatever stands in a file with a right checksum: one line and code 2, or an answer. And whatever
size a number in it names: a file is loaded in the memory and the time that it deserves.
"""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from functools import cache, partial
from pathlib import Path
from random import Random

import numpy as np

import sksketch
from golden import write
from robustness import forging
from sksketch import cli
from sksketch.run.checkpoints import Checkpoint
from sksketch.state.persistence import State, read_state, to_bytes, write_state

SIZES = (30_000, 10**8, 10**10)
MOST_BYTES, MOST_SECONDS = 10**9, 2.0


def sized(source: Path, name: str, size: int, place: Path) -> str:
    """Load a file in which one number is another; memory counts, not only what is kept."""
    state = read_state(source)
    value = size if isinstance(state.meta[name], int) else float(size)
    target = place / source.name
    forged = State(state.kind, state.version, {**state.meta, name: value}, state.arrays)
    target.write_bytes(to_bytes(forged))
    Path("/proc/self/clear_refs").write_text("5")
    before, began = _resident("VmRSS"), time.process_time()
    said, loaded = forging._load(target)
    seconds, more = time.process_time() - began, _resident("VmHWM") - before
    del loaded
    if seconds > MOST_SECONDS or more > MOST_BYTES:
        return f"!{said} in {seconds:.1f} s and {more / 1e6:.0f} MB"
    return said


def _resident(name: str) -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition(f"{name}:")[2].split()[0])


def command(name: str, source: Path, place: Path, seed: int) -> str:
    """Let a command use a forged file."""
    target = place / source.name
    with np.errstate(all="ignore"):
        write_state(forging.forged(read_state(source), seed), target)
    rows, page = str(place / "rows.csv"), str(place / "out.html")
    arguments = {
        "info": ["info", str(target)],
        "json": ["info", str(target), "--json"],
        "report": ["report", str(target), "-o", page],
        "merge": ["merge", str(target), str(source), "-o", str(place / "merged.sks")],
        "apply": ["apply", str(target), rows, "-q", "-o", str(place / "out.csv")],
        "pca": ["pca", str(target), "-k", "1", "-o", str(place / "model.sks")],
    }[name]
    return _said(arguments)


def _said(arguments: list[str]) -> str:
    out, err = io.StringIO(), io.StringIO()
    began = time.process_time()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _silently():
            code = cli.main(arguments)
    except BaseException as error:  # noqa: BLE001 (any is a traceback for whoever runs it)
        return f"!{type(error).__name__}: {str(error)[:200]}"
    if time.process_time() - began > 5.0:
        return "!more than 5 s"
    lines = [line for line in err.getvalue().splitlines() if not line.startswith("merged ")]
    last = lines[-1] if lines else ""
    if code == 2 and last.startswith("sksketch: ") and len(last) < 1200:
        return "refused in one line"
    return "answered" if code == 0 else f"!exit {code}: {lines}"


@contextlib.contextmanager
def _silently():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


X = np.random.default_rng(0).standard_normal((60, 4))
Y = X[:, 0] - X[:, 1]
RUNS = {
    "pca": (lambda: sksketch.StreamingPCA(2, sketch="rfd", sketch_size=3), None),
    "svd": (lambda: sksketch.StreamingSVD(2, sketch="sfd", sketch_size=3), None),
    "ridge": (lambda: sksketch.StreamingRidge(), Y),
    "sketch": (lambda: sksketch.FrequentDirections(3), None),
    "online": (lambda: sksketch.OnlineNewtonRegressor(sketch_size=3), Y),
    "oja": (lambda: sksketch.OnlineNewtonRegressor("oja", sketch_size=2), Y),
    "kernel": (lambda: sksketch.StreamingKernelPCA(2, n_random_features=8), None),
    "reduction": (lambda: sksketch.SubspaceReduction(2), None),
}


@cache
def checkpoint(name: str, place: Path) -> State:
    """Return the checkpoint of a run that was stopped in the middle."""
    make, y = RUNS[name]
    path = place / f"{name}.half.sks"
    model = make()
    rows = sksketch.open_rows(X, target=y)
    keeper = Checkpoint(path, model, rows.fingerprint())
    keeper.restore(model, resume=True)
    half = X[:30]
    if isinstance(model, sksketch.Sketch):
        model.update(half)
    elif y is None:
        model.partial_fit(half)
    else:
        model.partial_fit(half, y[:30])
    keeper.write(model, 30)
    return read_state(path)


def resume(name: str, place: Path, seed: int) -> str:
    """Go on from a forged checkpoint."""
    make, y = RUNS[name]
    path = place / f"{name}.sks"
    with np.errstate(all="ignore"):
        write_state(forging.forged(checkpoint(name, place), seed), path)
    before = path.read_bytes()
    try:
        with _silently():
            rows = sksketch.open_rows(X, target=y)
            sksketch.fit_stream(make(), rows, checkpoint=path, progress=False)
    except ValueError:
        # Forged numbers may be noticed only when rows come to them.
        same = path.read_bytes() == before
        return "refused, the file as it was" if same else "refused later"
    except Exception as error:  # noqa: BLE001 (any other is what we look for)
        return f"!{type(error).__name__}: {str(error)[:200]}"
    return "gone on"


def trials(folder: str, n_commands: str, n_resumes: str, n_sizes: str):
    """Give every trial by its name."""
    place = Path(folder)
    np.savetxt(place / "rows.csv", write.rows(12), delimiter=",", comments="")
    chance = Random(0)
    fields = [
        (path, name, size)
        for path in forging.GOLDEN
        for name, value in read_state(path).meta.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
        for size in SIZES
    ]
    chance.shuffle(fields)
    for path, name, size in fields[: int(n_sizes)]:
        yield f"sizes {path.name} {name} {size}", partial(sized, path, name, size, place)
    names = ("info", "json", "report", "merge", "apply", "pca")
    for seed in range(int(n_commands)):
        path, name = forging.GOLDEN[seed % len(forging.GOLDEN)], chance.choice(names)
        yield f"{name} {path.name} seed {seed}", partial(command, name, path, place, seed)
    for seed in range(int(n_resumes)):
        name = list(RUNS)[seed % len(RUNS)]
        yield f"resume {name} seed {seed}", partial(resume, name, place, seed)
