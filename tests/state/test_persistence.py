import errno
import json
import math
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import safe_open
from safetensors.numpy import load_file, save, save_file

import sksketch.state.persistence as persistence
from sksketch.exceptions import StateFormatError
from sksketch.state.persistence import State, from_bytes, read_state, to_bytes, write_state

EXAMPLE = State(
    "demo",
    2,
    {"size": 3, "bound": math.inf, "name": "π", "centered": True, "half_life": None},
    {"matrix": np.arange(6.0).reshape(2, 3), "count": np.array(7)},
)

HEADER = json.dumps({"format": 1, "kind": "demo", "version": 1, "meta": {}})

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
names = st.text(min_size=1).filter(lambda name: name not in ("kind", "version", "__metadata__"))
some_arrays = st.sampled_from(["bool", "<f8", ">f8", "<f4", "<f2", "<i8", "<u1", ">u4"]).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
)


def assert_same(left, right):
    assert (left.kind, left.version) == (right.kind, right.version)
    # repr tells True from 1, 1 from 1.0, -0.0 from 0.0 and holds every digit of a float.
    assert {k: repr(v) for k, v in left.meta.items()} == {k: repr(v) for k, v in right.meta.items()}
    assert left.arrays.keys() == right.arrays.keys()
    for name, array in left.arrays.items():
        assert array.dtype.newbyteorder("=") == right.arrays[name].dtype.newbyteorder("=")
        np.testing.assert_array_equal(array, right.arrays[name])


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(names, plain, max_size=4),
    st.dictionaries(names, some_arrays, max_size=3),
)
def test_a_state_comes_back_to_the_last_bit(tmp_path_factory, meta, arrays):
    path = tmp_path_factory.getbasetemp() / "round-trip.sks"
    state = State("demo", 1, meta, arrays)
    write_state(state, path)
    back = read_state(path)
    assert_same(state, back)
    for array in back.arrays.values():
        assert array.flags.writeable
        assert array.flags.aligned
        assert array.flags.c_contiguous


def test_arrays_of_any_layout_are_stored_by_value(tmp_path):
    X = np.arange(24.0).reshape(4, 6)
    arrays = {"fortran": np.asfortranarray(X), "strided": X[::2, ::-1], "transposed": X.T}
    write_state(State("demo", 1, {}, arrays), tmp_path / "a.sks")
    for name, array in read_state(tmp_path / "a.sks").arrays.items():
        np.testing.assert_array_equal(array, arrays[name])


def test_numpy_scalars_become_plain_values():
    meta = {"n": np.int64(3), "x": np.float32(0.5), "b": np.bool_(True), "s": np.str_("a")}
    state = State("demo", 1, meta, {})
    assert [type(value) for value in state.meta.values()] == [int, float, bool, str]


@pytest.mark.parametrize("value", [[1], {"a": 1}, np.ones(2), 1j, b"bytes", object()])
def test_meta_holds_nothing_but_plain_values(value):
    with pytest.raises(TypeError, match=r"meta 'x' is a .*convert it"):
        State("demo", 1, {"x": value}, {})


@pytest.mark.parametrize("array", [np.array([None]), np.array(["a"]), np.ones(2, complex)])
def test_arrays_hold_nothing_but_numbers(array):
    with pytest.raises(TypeError, match="array 'x' has dtype"):
        State("demo", 1, {}, {"x": array})


def test_names_that_would_be_lost_are_refused():
    with pytest.raises(ValueError, match="'kind' is taken"):
        State("demo", 1, {"kind": "x"}, {})
    with pytest.raises(ValueError, match="'__metadata__' is taken"):
        State("demo", 1, {}, {"__metadata__": np.ones(1)})
    with pytest.raises(TypeError, match="is not a string"):
        State("demo", 1, {3: 1}, {})


def test_states_nest_and_come_apart_again(tmp_path):
    middle = State("middle", 3, {"n": 1}, {"mean": np.zeros(2)}).with_inner("inner", EXAMPLE)
    outer = State("outer", 1, {"n": 2}, {}).with_inner("left", middle).with_inner("right", EXAMPLE)
    write_state(outer, tmp_path / "nested.sks")
    back = read_state(tmp_path / "nested.sks")
    assert back.meta["left.inner.kind"] == "demo"
    assert_same(back.inner("left"), middle)
    assert_same(back.inner("left").inner("inner"), EXAMPLE)
    assert_same(back.inner("right"), EXAMPLE)
    with pytest.raises(StateFormatError, match="no inner state 'up'"):
        back.inner("up")
    for prefix in ("left", "a.b", ""):
        with pytest.raises(ValueError, match="cannot be stored as"):
            outer.with_inner(prefix, EXAMPLE)


def test_the_file_is_a_safetensors_file_with_a_json_header(tmp_path):
    path = tmp_path / "a.sks"
    write_state(EXAMPLE, path)
    assert set(load_file(path)) == {"matrix", "count"}
    with safe_open(path, framework="np") as file:
        header = json.loads(
            file.metadata()["sksketch"],
            parse_constant=lambda name: pytest.fail(f"{name} is not JSON"),
        )
    assert (header["format"], header["kind"], header["version"]) == (1, "demo", 2)


def test_equal_states_are_equal_files(tmp_path):
    # safetensors orders its metadata by chance, so once would prove little.
    files = set()
    for _ in range(12):
        write_state(EXAMPLE, tmp_path / "a.sks")
        files.add((tmp_path / "a.sks").read_bytes())
    assert len(files) == 1


def rewrite(path, **changes):
    """Change texts of the metadata, leaving the arrays as they are."""
    arrays = load_file(path)
    with safe_open(path, framework="np") as file:
        metadata = {**file.metadata(), **changes}
    save_file(arrays, path, metadata=metadata)


def test_every_truncation_is_noticed(tmp_path):
    path = tmp_path / "a.sks"
    write_state(EXAMPLE, path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(StateFormatError, match="not a saved state, or is cut short"):
            read_state(path)


def test_every_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "a.sks"
    write_state(EXAMPLE, path)
    whole = path.read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        try:
            back = read_state(path)
        except StateFormatError:
            continue
        assert_same(back, EXAMPLE)  # such as in the padding of the header


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PK\x03\x04" + bytes(99), bytes(4096)])
def test_a_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "foreign.sks"
    path.write_bytes(content)
    with pytest.raises(StateFormatError, match="name a file that sksketch has written"):
        read_state(path)


@pytest.mark.parametrize(
    "metadata", [None, {"format": "pt"}, {"sksketch": "[]"}, {"sksketch": "{}"}, {"sksketch": "x"}]
)
def test_a_safetensors_file_of_others_is_refused(tmp_path, metadata):
    path = tmp_path / "model.safetensors"
    save_file({"weight": np.ones(3)}, path, metadata=metadata)
    with pytest.raises(StateFormatError, match="without the header of a saved state"):
        read_state(path)


def test_a_newer_format_asks_for_an_upgrade(tmp_path):
    path = tmp_path / "a.sks"
    write_state(EXAMPLE, path)
    rewrite(path, sksketch=json.dumps({"format": 3, "unknown": "fields"}))
    with pytest.raises(StateFormatError, match=r"state format 3.*newer.*\(1\); upgrade sksketch"):
        read_state(path)


def test_a_changed_header_or_array_fails_the_checksum(tmp_path):
    path = tmp_path / "a.sks"
    write_state(EXAMPLE, path)
    rewrite(path, sksketch=json.dumps({"format": 1, "kind": "demo", "version": 1, "meta": {}}))
    with pytest.raises(StateFormatError, match="checksum"):
        read_state(path)
    rewrite(path, sksketch=json.dumps({"format": 1, "kind": "demo"}))
    with pytest.raises(StateFormatError, match="incomplete header"):
        read_state(path)


def test_missing_files_and_directories_are_named(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"no saved state here; check the path.*absent\.sks"
    ):
        read_state(tmp_path / "absent.sks")
    with pytest.raises(IsADirectoryError, match="not a directory"):
        read_state(tmp_path)
    with pytest.raises(IsADirectoryError, match="over a directory"):
        write_state(EXAMPLE, tmp_path)
    with pytest.raises(OSError, match="does not exist"):
        write_state(EXAMPLE, tmp_path / "no" / "such" / "a.sks")


def test_an_unwritable_directory_is_named(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(
        PermissionError, match=r"cannot save the state \(Permission denied\).*a\.sks"
    ):
        write_state(EXAMPLE, tmp_path / "a.sks")


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step, error):
    path = tmp_path / "a.sks"
    write_state(EXAMPLE, path)

    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        write_state(EXAMPLE, path)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["a.sks"]
    assert_same(read_state(path), EXAMPLE)


@pytest.mark.skipif(os.name == "nt", reason="POSIX rights and links")
def test_rights_and_links_are_those_of_a_plain_file(tmp_path):
    (tmp_path / "plain").touch()
    (tmp_path / "link.sks").symlink_to("real.sks")
    write_state(EXAMPLE, tmp_path / "link.sks")
    assert (tmp_path / "link.sks").is_symlink()
    assert (tmp_path / "real.sks").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(os.name == "nt", reason="POSIX rights")
def test_a_private_file_stays_private(tmp_path):
    path = tmp_path / "a.sks"
    for rights in (0o600, 0o640, 0o444):
        path.touch()
        path.chmod(rights)
        write_state(EXAMPLE, path)
        assert path.stat().st_mode & 0o777 == rights


@pytest.mark.skipif(os.name == "nt", reason="POSIX files")
def test_what_is_no_file_is_never_replaced(tmp_path):
    pipe, plain = tmp_path / "pipe", tmp_path / "a.sks"
    os.mkfifo(pipe)
    write_state(EXAMPLE, plain)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        write_state(EXAMPLE, pipe)
        assert reader.stdout.read() == plain.read_bytes()
    assert pipe.is_fifo()
    with pytest.raises(StateFormatError, match="is no file"):
        read_state(pipe)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match="neither a file nor a pipe"):
            write_state(EXAMPLE, tmp_path / "socket")
        assert (tmp_path / "socket").is_socket()
    if Path("/dev/full").is_char_device():
        with pytest.raises(OSError, match=r"cannot save the state \(No space left.*/dev/full") as e:
            write_state(EXAMPLE, "/dev/full")
        assert e.value.errno == errno.ENOSPC
        assert Path("/dev/full").is_char_device()


def test_files_are_those_of_safetensors_own_writer():
    arrays = {f"x{kind}": np.arange(3).astype(kind) for kind in np.typecodes["AllInteger"] + "efd?"}
    state = State("demo", 1, {"text": "π\x01"}, {**arrays, "e\n": np.zeros((0, 3))})
    data = to_bytes(state)
    metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    # It writes the two texts in either order.
    assert any(save(dict(state.arrays), metadata) == data for _ in range(100))


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("BF16", [3]), ("F8_E4M3", [6]), ("F8_E5M2", [6]), ("F64", [0, 0, 2**64 - 1])],
)
def test_types_and_shapes_that_numpy_lacks_are_refused(tmp_path, dtype, shape):
    size = 0 if 0 in shape else 6
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}
    header = json.dumps({"__metadata__": {"sksketch": HEADER, "sha256": "0"}, "x": entry}).encode()
    data = len(header).to_bytes(8, "little") + header + bytes(size)
    (tmp_path / "a.sks").write_bytes(data)
    with pytest.raises(StateFormatError, match=r"a\.sks"):
        read_state(tmp_path / "a.sks")
    with pytest.raises(StateFormatError):
        from_bytes(data)


WRITER = """
import sys
import numpy as np
from sksketch.state.persistence import State, write_state
for number in range(10**6):
    state = State("demo", 1, {"number": number}, {"x": np.full((1000, 1000), float(number))})
    write_state(state, sys.argv[1])
    print(number, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX signals")
def test_a_writer_killed_at_any_time_leaves_a_whole_file(tmp_path):
    path = tmp_path / "a.sks"
    write_state(State("demo", 1, {"number": -1}, {"x": np.full((1000, 1000), -1.0)}), path)
    source = Path(persistence.__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    chance = random.Random(0)
    numbers = []
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)],
            env=environment,
            stdout=subprocess.PIPE,
        ) as writer:
            writer.stdout.readline()
            time.sleep(chance.uniform(0.0, 0.1))
            writer.kill()
        back = read_state(path)
        assert np.all(back.arrays["x"] == back.meta["number"])
        numbers.append(back.meta["number"])
    assert max(numbers) > 0


@pytest.mark.skipif(os.name == "nt", reason="POSIX locks")
def test_only_what_no_living_writer_holds_is_swept(tmp_path):
    path = tmp_path / "a.sks"
    dead, held = (tmp_path / f".a.sks.{name}.tmp" for name in ("0123abcd", "4567cdef"))
    other = tmp_path / ".b.sks.0123abcd.tmp"
    for file in (dead, held, other):
        file.touch()
    holder = (
        "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_RDWR); fcntl.flock(f, fcntl.LOCK_EX);"
        "print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", holder, str(held)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        process.stdout.readline()
        write_state(EXAMPLE, path)
        assert (dead.exists(), held.exists(), other.exists()) == (False, True, True)
        process.stdin.close()
    write_state(EXAMPLE, path)
    assert not held.exists()
