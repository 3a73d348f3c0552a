"""Saved files by another hand: damaged bytes, and fields that do not fit behind a right checksum.

Damaged bytes must be refused, or give what the file held. A forged file has a checksum that is
right, so it may hold anything: it must be refused or be read, and whatever is read must not bring
the process down when it is used.
"""

from __future__ import annotations

import json
import warnings
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

import sksketch
from golden import write
from robustness import damage
from sksketch.state.persistence import State, _checksum, read_state, write_state

# Every kind as it is written now, and the first files, which have fewer fields.
FOLDERS = [
    Path(__file__).parents[1] / "golden" / name for name in ("0.1.0-early", sksketch.__version__)
]
GOLDEN = [path for folder in FOLDERS for path in sorted(folder.glob("*.sks"))]
NUMBERS = (0, 1, -1, -7, 2, 3, 10**6, 10**12, 2**63, 10**30, 0.5, -0.5, 1e308, float("nan"))
# Options that say how much to do: a file may ask for work without end, as its owner may.
WORK = ("n_power_iterations", "n_power_iter", "max_tries", "n_steps", "n_passes")
VALUES = (*NUMBERS, float("inf"), None, True, "", "auto", "nonsense", "[]", "{}", "[1, 2]")


def assert_same(left: State, right: State) -> None:
    """Assert that two states are equal to the last bit."""
    assert (left.kind, left.version) == (right.kind, right.version)
    assert repr(sorted(left.meta.items())) == repr(sorted(right.meta.items()))
    assert left.arrays.keys() == right.arrays.keys()
    for name, array in left.arrays.items():
        other = right.arrays[name]
        assert (array.dtype, array.shape) == (other.dtype, other.shape), name
        assert array.tobytes() == other.tobytes(), name


def attempt_damaged(source: Path, place: Path, seed: int) -> str:
    target = place / source.name
    target.write_bytes(damage.spoil(source.read_bytes(), seed))
    try:
        state = read_state(target)
        sksketch.load(target)
    except sksketch.StateFormatError as error:
        return "refused" if target.name in str(error) else f"!unclear: {error}"
    except Exception as error:  # noqa: BLE001 (any other is what we look for)
        return f"!{type(error).__name__}: {str(error)[:300]}"
    try:
        assert_same(state, read_state(source))
    except AssertionError as error:
        return f"!another state: {error}"
    return "read, as it was saved"


def forged(state: State, seed: int) -> State:
    """Return a state with one to three fields that are not what they should be."""
    chance = Random(seed)
    kind, version = state.kind, state.version
    meta, arrays = dict(state.meta), dict(state.arrays)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        what = chance.random()
        if what < 0.03:
            kind = chance.choice(("", "exact", "pca", "frequent-directions", "checkpoint"))
        elif what < 0.06:
            version = chance.choice((-1, 0, 2, 10**9))
        elif what < 0.5 and meta:
            name = chance.choice(sorted(meta))
            if chance.random() < 0.15:
                del meta[name]
            elif name.rpartition(".")[2] in WORK:
                meta[name] = chance.choice((0, -1, None, "many"))
            else:
                meta[name] = chance.choice(VALUES)
        elif arrays:
            name = chance.choice(sorted(arrays))
            other = FORGERIES[chance.randrange(len(FORGERIES))](arrays[name], chance)
            if other is None:
                del arrays[name]
            else:
                arrays[name] = other
    return State(kind, version, meta, arrays)


def _spoil_some(array, chance):
    array = np.array(array)
    if array.size:
        if array.dtype.kind == "f":
            value = chance.choice((np.nan, np.inf, -1.0, 1e308))
        else:
            value = chance.choice((0, 1)) if array.dtype.kind == "b" else chance.choice((-1, 10**6))
        if array.dtype.kind == "u":
            value = abs(value)
        with np.errstate(all="ignore"):
            array.flat[chance.randrange(array.size)] = np.asarray(value).astype(array.dtype)
    return array


FORGERIES = (
    lambda array, chance: None,
    _spoil_some,
    _spoil_some,
    lambda array, chance: array.T,
    lambda array, chance: array[: len(array) // 2] if array.ndim else array.reshape(1),
    lambda array, chance: np.concatenate([array, array]) if array.ndim else array,
    lambda array, chance: array.reshape(-1),
    lambda array, chance: array[None],
    lambda array, chance: np.zeros((0, *array.shape[1:]), array.dtype),
    lambda array, chance: array.astype(chance.choice(("f4", "f8", "i8", "u1", "b1", "f2"))),
    lambda array, chance: np.zeros((), array.dtype),
)


def attempt_forged(source: Path, place: Path, seed: int) -> str:
    target = place / source.name
    with np.errstate(all="ignore"):
        write_state(forged(read_state(source), seed), target)
    said, loaded = _load(target)
    if loaded is None:
        return said
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            repr(loaded)
            write.answers(loaded)
            write.fed(loaded, write.rows(70))
            write.answers(loaded)
        except Exception:  # noqa: BLE001 (a forged file may hold nonsense, but must not crash)
            return "read, an error when used"
    return "read and used"


HEADERS = (
    *("[]", "3", "null", "{}", '"format"', "[" * 10**5, '{"format": Infinity}', "{", "NaN"),
    *('{"format": []}', '{"format": "x"}', '{"format": 1}', '{"format": -1}', '{"format": 1e400}'),
)
PARTS = {
    "format": ("1", "true", "1.5", "-3", "null", "[1]"),
    "kind": ("null", "3", "[]", '"exact"', '"no such thing"', '{"float": "1"}'),
    "version": ("null", "1.5", "-1", "true", '"1"', "1e99", "Infinity"),
    "meta": ("null", "[]", "3", '{"a": []}', '{"a": {}}', '{"a": {"float": "x"}}', '{"kind": "x"}'),
}


def attempt_header(source: Path, place: Path, seed: int) -> str:
    """Write any JSON as the header, with the checksum that belongs to it."""
    chance = Random(seed)
    target = place / source.name
    with safe_open(source, framework="np") as file:
        header = json.loads(file.metadata()["sksketch"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if seed < len(HEADERS):
        text = HEADERS[seed]
    else:
        name = chance.choice(sorted(PARTS))
        fields = {key: json.dumps(value) for key, value in header.items()}
        fields[name] = chance.choice(PARTS[name])
        text = "{" + ", ".join(f'"{key}": {value}' for key, value in fields.items()) + "}"
    save_file(arrays, target, {"sksketch": text, "sha256": _checksum(text, arrays)})
    return _load(target)[0]


def _load(target: Path):
    try:
        loaded = sksketch.load(target)
    except sksketch.StateFormatError as error:
        clear = len(str(error)) < 500 and "\n" not in str(error)
        return "refused" if clear else f"!unclear: {error}", None
    except Exception as error:  # noqa: BLE001 (any other is what we look for)
        return f"!{type(error).__name__}: {str(error)[:300]}", None
    return "read", loaded


def trials(folder: str, n_damaged: str, n_forged: str):
    """Give every trial of every golden file by its name."""
    place = Path(folder)
    for path in GOLDEN:
        for seed in range(int(n_damaged)):
            yield f"damaged {path.name} seed {seed}", partial(attempt_damaged, path, place, seed)
        for seed in range(int(n_forged)):
            yield f"forged {path.name} seed {seed}", partial(attempt_forged, path, place, seed)
    for seed in range(max(50, int(n_forged))):
        path = GOLDEN[seed % len(GOLDEN)]
        yield f"header {path.name} seed {seed}", partial(attempt_header, path, place, seed)
