"""Saved files that were damaged or forged: refused, or read as what they are."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import sksketch
from robustness import children, damage, forging
from sksketch.state.persistence import State, read_state, write_state


def test_damaged_and_forged_files_do_no_harm(tmp_path, full, tally):
    n_damaged, n_forged = (400, 300) if full else (6, 4)
    found = children.outcomes("forging", str(tmp_path), str(n_damaged), str(n_forged))
    for (how, outcome), n in found.items():
        tally(f"{how} state files", {outcome: n})
    assert found["damaged", "refused"] > 0.99 * n_damaged * len(forging.GOLDEN)


@pytest.mark.parametrize("path", forging.GOLDEN[::5], ids=lambda path: path.stem)
def test_every_byte_counts(path, tmp_path, full, tally):
    data = bytearray(path.read_bytes())
    target = tmp_path / "a.sks"
    found = Counter()
    for position in range(0, len(data), 1 if full else 41):
        data[position] ^= 1 << position % 8
        target.write_bytes(data)
        data[position] ^= 1 << position % 8
        with pytest.raises(sksketch.StateFormatError):
            sksketch.load(target)
        found["refused"] += 1
    tally("state files with one bit flipped", found)


def test_a_damaged_checkpoint_stops_the_run_and_stays(tmp_path, full, tally):
    X = np.random.default_rng(0).standard_normal((60, 4))
    path = tmp_path / "run.sks"
    pca = sksketch.StreamingPCA(2)
    sksketch.fit_stream(pca, X, checkpoint=path, progress=False)
    # It stays after the end of a run, for rows that may be added to the source.
    good = path.read_bytes()
    found = Counter()
    for seed in range(1000 if full else 40):
        bad = damage.spoil(good, seed)
        path.write_bytes(bad)
        with pytest.raises(sksketch.StateFormatError):
            sksketch.fit_stream(sksketch.StreamingPCA(2), X, checkpoint=path, progress=False)
        assert path.read_bytes() == bad
        found["refused"] += 1
    tally("damaged checkpoints", found)


def test_nothing_in_a_file_is_run(tmp_path):
    # A pickle that would make a file when loaded, under the name of a state.
    mark = tmp_path / "mark"
    text = f"cposix\nsystem\n(S'touch {mark}'\ntR."
    for name in ("a.sks", "b.npy", "c.npz"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        with pytest.raises(ValueError, match=r"a\.sks|b\.npy|c\.npz"):
            sksketch.load(path) if name == "a.sks" else sksketch.open_rows(path)
    objects = tmp_path / "objects.npy"
    np.save(objects, np.array([[Path, print]], dtype=object))
    with pytest.raises(sksketch.SourceError, match="objects"):
        sksketch.open_rows(objects)
    assert not mark.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_forged_files_get_one_line_from_every_command(tmp_path, full, tally):
    sizes = ("4000", "9000", "100000") if full else ("24", "30", "60")
    found = children.outcomes("using", str(tmp_path), *sizes)
    for (how, outcome), n in found.items():
        themes = {"sizes": "saved numbers of any size", "resume": "forged checkpoints"}
        tally(themes.get(how, "forged files through commands"), {outcome: n})


def test_a_small_file_can_not_ask_for_gigabytes(tmp_path):
    path = tmp_path / "a.sks"
    sksketch.RandomReduction(4, operator="gaussian").fit(np.eye(9)).save(path)
    state = read_state(path)
    params = json.loads(state.meta["params"]) | {"n_components": 10**8}
    meta = {**state.meta, "params": json.dumps(params)}
    write_state(State(state.kind, state.version, meta, {}), path)
    assert path.stat().st_size < 400
    with pytest.raises(sksketch.StateFormatError, match="asks for 100,000,000 components"):
        sksketch.load(path)
