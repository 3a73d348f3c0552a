"""Memory of others: what arrives in it is copied once, and what was passed in is never kept."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

from robustness import abuse, everyone
from sksketch.run.loading import restore

pytestmark = everyone.QUIET

NAMES = [*everyone.SKETCHES, *everyone.ESTIMATORS]
REDUCED = [*abuse.SKETCHES, "regression", *everyone.ESTIMATORS]
HALF = everyone.N_ROWS // 2


@pytest.fixture(scope="module")
def names(full):
    return NAMES if full else REDUCED


def learned(name, n_rows=HALF):
    second = (part[:n_rows] for part in everyone.second_of(name))
    return everyone.learn(everyone.make(name), everyone.X[:n_rows], *second)


def gone_on(model, name):
    """Return all that is read after the other half of the rows."""
    if everyone.streams(name):
        second = (part[HALF:] for part in everyone.second_of(name))
        everyone.learn(model, everyone.X[HALF:], *second)
    return read(model, name)


def read(model, name):
    second = (part[:9] for part in everyone.second_of(name))
    return everyone.digest(everyone.answers(model, everyone.X[:9], *second))


def displaced(array, offset=1):
    """Return the same numbers at an odd address, read-only."""
    raw = np.zeros(array.nbytes + 16, np.uint8)
    start = -raw.ctypes.data % 8 + offset
    moved = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    moved[...] = array
    moved.flags.writeable = False
    return moved


def test_every_public_class_is_here():
    here = {type(everyone.make(name)) for name in NAMES}
    assert everyone.classes() <= here, everyone.classes() - here


def test_models_in_a_read_only_map_go_on(names, tmp_path, tally):
    for name in names:
        model = learned(name)
        joblib.dump(model, tmp_path / "model.joblib")
        mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
        written = (tmp_path / "model.joblib").read_bytes()
        assert gone_on(mapped, name) == gone_on(copy.deepcopy(model), name), name
        assert (tmp_path / "model.joblib").read_bytes() == written, name
        tally("foreign memory", {"read-only map": 1})


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_buffers_beside_a_pickle_stay_as_they_are(kind, names, tally):
    for name in names:
        model, buffers = learned(name), []
        data = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
        # At odd addresses, as a network gives them.
        held = [kind(b"\0" * 3 + buffer.raw().tobytes()) for buffer in buffers]
        before = [bytes(part) for part in held]
        first, second = (
            pickle.loads(data, buffers=[memoryview(part)[3:] for part in held]) for _ in range(2)
        )
        assert gone_on(first, name) == gone_on(copy.deepcopy(model), name), name
        assert [bytes(part) for part in held] == before, name
        assert read(second, name) == read(model, name), name
        tally("foreign memory", {f"buffers beside a pickle, {kind.__name__}": 1})


def test_a_state_is_not_written_through(names, tally):
    for name in names:
        state = learned(name).state()
        arrays = {key: displaced(array, 4) for key, array in state.arrays.items()}
        foreign = replace(state, arrays=arrays)
        before = everyone.digest(arrays)
        first, second = restore(foreign), restore(foreign)
        assert gone_on(first, name) == gone_on(restore(state), name), name
        assert everyone.digest(arrays) == before, name
        assert read(second, name) == read(restore(state), name), name
        # The same for arrays that could be written.
        first, second = restore(state), restore(state)
        expected = read(second, name)
        gone_on(first, name)
        assert read(restore(state), name) == read(second, name) == expected, name
        tally("foreign memory", {"states, unaligned and shared": 1})


def blocks(name, sizes=(50, 3, 67)):
    start = 0
    for size in sizes:
        part = slice(start, start + size)
        yield everyone.X[part], *(view[part] for view in everyone.second_of(name))
        start += size


def through_a_buffer(name, sparse):
    """Learn from blocks that come in the same memory, and are gone after each call."""
    model = everyone.make(name)
    for given in blocks(name) if everyone.streams(name) else [next(blocks(name, (120,)))]:
        held = [np.array(part) for part in given]
        if sparse:
            held[0] = sp.csr_array(held[0])
        everyone.learn(model, *held)
        for part in held:
            numbers = part.data if sp.issparse(part) else part
            numbers[...] = numbers[::-1].copy() * 0 + 1
    return model


def untouched(name, sparse):
    model = everyone.make(name)
    for given in blocks(name) if everyone.streams(name) else [next(blocks(name, (120,)))]:
        held = [np.array(part) for part in given]
        everyone.learn(model, *([sp.csr_array(held[0]), *held[1:]] if sparse else held))
    return model


def takes_sparse(name):
    return "regression" not in name.split()[0] and name not in ("MultiviewMixture", "TableEncoder")


@pytest.mark.parametrize("sparse", [False, True])
def test_law_6_rows_are_not_kept(sparse, names, tally):
    for name in names:
        if sparse and not takes_sparse(name):
            continue
        assert read(through_a_buffer(name, sparse), name) == read(untouched(name, sparse), name), (
            name
        )
        tally("foreign memory", {"rows that change after the call": 1})


def test_law_6_given_landmarks_are_not_kept(tally):
    landmarks = everyone.X[:20].copy()
    found = []
    for spoil in (False, True):
        given = landmarks.copy()
        model = abuse.sksketch.StreamingKernelPCA(2, landmarks=given, solver="sketch")
        model.fit(everyone.X)
        if spoil:
            given[...] = 0.0
        found.append(model.transform(everyone.X[:9]))
    np.testing.assert_array_equal(*found)
    tally("foreign memory", {"rows that change after the call": 1})
