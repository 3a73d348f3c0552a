"""`State`: a sketch or learner as plain data, and the one file that holds it.

A ``.sks`` file is a safetensors file whose metadata has two texts: ``sksketch``,
a JSON header (format, kind, version, meta), and ``sha256``, a checksum of the
header and of every array. Reading one can never run code.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, NoReturn, TypeAlias

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load

from sksketch._typing import Array, PathLike
from sksketch.exceptions import StateFormatError
from sksketch.state.blame import reason
from sksketch.state.disk import replacing

FORMAT = 1
# The types of arrays as they lie in a file: wide ones first, so that all are aligned.
ORDER = ["U64", "I64", "F64", "F32", "U32", "I32", "F16", "U16", "I16", "I8", "U8", "BOOL"]

# What safetensors and numpy raise over types that numpy lacks and shapes that nothing has.
_FOREIGN = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RecursionError),
    *(SafetensorError, TypeError, ValueError),
)

Plain: TypeAlias = int | float | str | bool | None


@dataclass(frozen=True, eq=False)
class State:
    """Plain data from which a sketch or learner can be built again.

    Parameters
    ----------
    kind : str
        What it is a state of, such as ``"frequent-directions"``.
    version : int
        Version of that kind's fields.
    meta : mapping of names to numbers, strings, booleans or None
        NumPy scalars are converted. ``kind`` and ``version`` are taken names.
    arrays : mapping of names to arrays of booleans, integers or floats
        Kept as they are, without a copy.

    Examples
    --------
    >>> inner = State("exact", 1, {"n_rows_seen": 7}, {"gram": np.eye(2)})
    >>> outer = State("centered", 1, {}, {"mean": np.zeros(2)}).with_inner("sketch", inner)
    >>> sorted(outer.meta)
    ['sketch.kind', 'sketch.n_rows_seen', 'sketch.version']
    >>> outer.inner("sketch").meta
    {'n_rows_seen': 7}
    """

    kind: str
    version: int
    meta: Mapping[str, Plain]
    arrays: Mapping[str, Array]

    def __post_init__(self) -> None:
        meta = {name: _as_plain(name, value) for name, value in self.meta.items()}
        arrays = {name: _as_storable(name, value) for name, value in self.arrays.items()}
        for name in (*meta, *arrays):
            if not isinstance(name, str):
                raise TypeError(f"the name {name!r} is not a string; name every field by one")
        if taken := {"kind", "version"} & meta.keys() or {"__metadata__"} & arrays.keys():
            raise ValueError(f"the name {min(taken)!r} is taken; give the field another one")
        object.__setattr__(self, "meta", meta)
        object.__setattr__(self, "arrays", arrays)

    def with_more(self, meta: Mapping[str, Plain], arrays: Mapping[str, Array]) -> State:
        """Return this state with further fields."""
        return State(self.kind, self.version, {**self.meta, **meta}, {**self.arrays, **arrays})

    def behind(self, prefix: str) -> dict[str, Array]:
        """Return the arrays whose names begin with a prefix, without it."""
        arrays = self.arrays.items()
        return {name.removeprefix(prefix): v for name, v in arrays if name.startswith(prefix)}

    def array(self, name: str, *shape: int | None) -> Array:
        """Return an array, after a look at its shape; None is any length."""
        found = self.arrays.get(name)
        size = None if found is None else found.shape
        if (
            found is None
            or len(found.shape) != len(shape)
            or any(wanted not in (None, n) for n, wanted in zip(found.shape, shape, strict=True))
        ):
            raise StateFormatError(
                f"the array {name!r} of the {self.kind!r} has the shape {size}, expected {shape}; "
                "take another copy of the file or save it again"
            )
        return found

    def count(self, name: str) -> int:
        """Return a field, after a look whether it is a whole number from 1 on."""
        found = self.meta.get(name)
        if not isinstance(found, int) or found < 1:
            raise StateFormatError(f"{name!r} of the {self.kind!r} is {found!r}; save it again")
        return found

    def with_inner(self, prefix: str, inner: State) -> State:
        """Return this state with ``inner`` stored in it, its names behind ``prefix`` and a dot.

        >>> part = State("part", 1, {}, {"x": np.ones(1)})
        >>> list(State("whole", 1, {}, {}).with_inner("left", part).arrays)
        ['left.x']
        """
        if not prefix or "." in prefix or f"{prefix}.kind" in self.meta:
            raise ValueError(
                f"an inner state cannot be stored as {prefix!r}; give a word that has no dot and "
                "is not used yet"
            )
        return self.with_all({prefix: inner})

    def with_all(self, inner: Mapping[str, State]) -> State:
        """Return this state with many others stored in it, as by `with_inner`."""
        meta, arrays = dict(self.meta), dict(self.arrays)
        for prefix, state in inner.items():
            identity: dict[str, Plain] = {"kind": state.kind, "version": state.version}
            meta |= _prefixed(prefix, {**identity, **state.meta})
            arrays |= _prefixed(prefix, state.arrays)
        return State(self.kind, self.version, meta, arrays)

    def require(self, version: int) -> None:
        """Refuse a state that a newer release has written."""
        if self.version > version:
            raise StateFormatError(
                f"state version {self.version} of {self.kind!r} is newer than this release reads "
                f"({version}); upgrade sksketch"
            )

    def inner(self, prefix: str) -> State:
        """Return the state that `with_inner` stored as ``prefix``."""
        meta = _behind(prefix, self.meta)
        kind, version = meta.pop("kind", None), meta.pop("version", None)
        if not isinstance(kind, str) or not isinstance(version, int):
            raise StateFormatError(
                f"the state of kind {self.kind!r} has no inner state {prefix!r}; "
                "it was not written by this class"
            )
        return State(kind, version, meta, _behind(prefix, self.arrays))

    def all_inner(self, prefixes: Iterable[str]) -> list[State]:
        """Return many states that `with_all` has stored, in one look at the names."""
        metas, arrays = _grouped(self.meta), _grouped(self.arrays)
        return [
            State(self.kind, self.version, metas.get(name, {}), arrays.get(name, {})).inner(name)
            for name in prefixes
        ]


def write_state(state: State, path: PathLike) -> None:
    """Write ``state`` to ``path``: the whole new file stands there, or what stood there before.

    The file is written under a temporary name beside its target, brought to
    disk and then renamed. Arrays are written from where they are. A file that is
    written again keeps its rights. What a writer that was killed has left beside
    the target is removed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_state(State("demo", 1, {"n": 3}, {"x": np.ones(2)}), f"{folder}/a.sks")
    ...     read_state(f"{folder}/a.sks").arrays["x"]
    array([1., 1.])
    """
    try:
        with replacing(path) as file:
            dump(state, file)
    except OSError as error:
        _fail_to_write(path, error)


def dump(state: State, file: IO[bytes]) -> None:
    """Write the bytes of a state's file to one that is open."""
    for part in _parts(state):
        file.write(part)


def to_bytes(state: State) -> bytes:
    """Return the bytes of the file that `write_state` would write.

    >>> from_bytes(to_bytes(State("demo", 1, {"n": 3}, {"x": np.ones(2)}))).meta
    {'n': 3}
    """
    return b"".join(_parts(state))


def from_bytes(data: bytes) -> State:
    """Return the state that `to_bytes` was given, down to the last bit."""
    try:
        length = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + length])["__metadata__"]
        arrays = {name: np.require(x, requirements="W") for name, x in load(data).items()}
    except _FOREIGN as error:
        raise StateFormatError(f"these bytes are not a saved state ({reason(error)})") from error
    return _checked("the bytes of a state", metadata, arrays)


def _parts(state: State) -> Iterator[bytes | memoryview]:
    """Yield a state as safetensors lays it out: a header, then every array from where it is.

    Not by its own writer, which renames a temporary file that nobody else knows, orders the texts
    by chance and copies all arrays to give bytes.
    """
    facts = {"format": FORMAT, "kind": state.kind, "version": state.version}
    meta = {name: _encode(value) for name, value in state.meta.items()}
    text = json.dumps({**facts, "meta": meta}, allow_nan=False)
    arrays = {name: _little_endian(array) for name, array in state.arrays.items()}
    header: dict[str, Any] = {"__metadata__": {"sha256": _checksum(text, arrays), "sksketch": text}}
    order = sorted(arrays, key=lambda name: (ORDER.index(_code(arrays[name])), name))
    start = 0
    for name in order:
        array = arrays[name]
        stop = start + array.nbytes
        header[name] = {
            "dtype": _code(array),
            "shape": array.shape,
            "data_offsets": [start, stop],
        }
        start = stop
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    yield len(head).to_bytes(8, "little")
    yield head
    for name in order:
        yield arrays[name].reshape(-1).view(np.uint8).data


def _code(array: Array) -> str:
    """Return what safetensors calls a type.

    >>> _code(np.zeros(1, np.float32)), _code(np.zeros(1, bool))
    ('F32', 'BOOL')
    """
    kind = array.dtype.kind
    return "BOOL" if kind == "b" else f"{kind.upper()}{8 * array.itemsize}"


def read_state(path: PathLike) -> State:
    """Read a state that `write_state` has written, down to the last bit.

    The arrays are new, writable ones. A file that is truncated, foreign,
    changed or of a newer format raises `StateFormatError`.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(
            errno.ENOENT, "there is no saved state here; check the path", str(path)
        )
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "a saved state is a file, not a directory", str(path))
    if not stat.S_ISREG(os.stat(path).st_mode):
        # To open a pipe might wait for ever.
        raise StateFormatError(f"{os.fspath(path)!r} is no file; name one that sksketch has saved")
    # Tells an unreadable file from a damaged one.
    with open(path, "rb"):
        pass
    try:
        with safe_open(os.fspath(path), framework="np") as file:
            metadata = file.metadata() or {}
            _read_header(path, metadata)
            arrays = {
                name: np.require(file.get_tensor(name), requirements=["C", "A", "W"])
                for name in file.keys()  # noqa: SIM118 (not a mapping)
            }
    except StateFormatError:
        raise
    except _FOREIGN as error:
        raise StateFormatError(
            f"{os.fspath(path)!r} is not a saved state, or is cut short ({reason(error)}); "
            "save it again, or name a file that sksketch has written"
        ) from error
    return _checked(path, metadata, arrays)


def _checked(path: PathLike, metadata: Mapping[str, str], arrays: dict[str, Array]) -> State:
    """Return the state of a file's texts and arrays, if they belong together."""
    header = _read_header(path, metadata)
    if metadata.get("sha256") != _checksum(metadata["sksketch"], arrays):
        raise StateFormatError(
            f"{os.fspath(path)!r} was changed after it was saved: its checksum does not match; "
            "take another copy of it or save it again"
        )
    try:
        meta = {name: _decode(value) for name, value in header["meta"].items()}
        return State(header["kind"], header["version"], meta, arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise StateFormatError(
            f"{os.fspath(path)!r} has fields that no state has ({error}); save it again"
        ) from None


def _read_header(path: PathLike, metadata: Mapping[str, str]) -> dict[str, Any]:
    try:
        header = json.loads(metadata.get("sksketch", ""))
        written = int(header["format"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise StateFormatError(
            f"{os.fspath(path)!r} is a safetensors file without the header of a saved state; "
            "name a file that sksketch has written"
        ) from None
    if written > FORMAT:
        raise StateFormatError(
            f"{os.fspath(path)!r} has state format {written}, which is newer than this release "
            f"reads ({FORMAT}); upgrade sksketch"
        )
    wanted = {"kind": str, "version": int, "meta": dict}
    if not all(isinstance(header.get(name), kind) for name, kind in wanted.items()):
        raise StateFormatError(
            f"{os.fspath(path)!r} has an incomplete header; take another copy or save it again"
        )
    return dict(header)


def _fail_to_write(path: PathLike, error: OSError) -> NoReturn:
    folder = os.path.dirname(os.path.realpath(path))
    if isinstance(error, IsADirectoryError):
        reason = "cannot write a state over a directory"
    elif not os.path.isdir(folder):
        reason = f"cannot save the state, because the directory {folder!r} does not exist"
    else:
        reason = f"cannot save the state ({error.strerror or error})"
    raise OSError(error.errno or errno.EIO, reason, os.fspath(path)) from error


def _checksum(header: str, arrays: Mapping[str, Array]) -> str:
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype.name} {array.shape}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _little_endian(array: Array) -> Array:
    """Return the array as it lies in the file; a copy only of what lies otherwise in memory."""
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _as_storable(name: str, array: object) -> Array:
    storable: Array = np.asarray(array)
    if storable.dtype.kind not in "biuf" or storable.itemsize > 8:
        raise TypeError(
            f"array {name!r} has dtype {storable.dtype}, and a state holds booleans, integers and "
            "floats up to 64 bits; convert it, or store text in meta"
        )
    return storable


def _as_plain(name: str, value: Any) -> Plain:
    plain: Plain = value.item() if isinstance(value, np.generic) else value
    if plain is None or type(plain) in (bool, int, float, str):
        return plain
    raise TypeError(
        f"meta {name!r} is a {type(value).__name__}, and a state holds numbers, strings, booleans "
        "and None; convert it, or store it as an array"
    )


def _encode(value: Plain) -> Plain | dict[str, str]:
    """Write what JSON has no number for, as {"float": "inf"}."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def _decode(value: Any) -> Plain:
    return float(value["float"]) if isinstance(value, dict) else value


def _prefixed(prefix: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{name}": value for name, value in fields.items()}


def _grouped(fields: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return fields by the first word of their names."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in fields.items():
        found.setdefault(name.partition(".")[0], {})[name] = value
    return found


def _behind(prefix: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    start = f"{prefix}."
    return {name[len(start) :]: value for name, value in fields.items() if name.startswith(start)}
