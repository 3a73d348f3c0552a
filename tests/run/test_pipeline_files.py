"""Files of pipelines that somebody else wrote: refused by name, and no code of theirs is run."""

from __future__ import annotations

import json
from contextlib import suppress

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from _support import messy
from sksketch import StateFormatError, StreamingPCA, StreamingRidge, TableEncoder, load
from sksketch.models.pipelines.plain_states import state_of
from sksketch.state.persistence import State, write_state

TABLE = messy.messy_table(80, seed=4).select(["power", "city", "signed_up", "price"])
RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 3))


def pipeline():
    model = make_pipeline(
        TableEncoder(), FrozenEstimator(MinMaxScaler()), StandardScaler(), StreamingPCA(1)
    )
    rows = model[0].fit(TABLE).transform(TABLE)
    rows = model[1].estimator.fit(rows).transform(rows)
    model[3].fit(model[2].fit(rows).transform(rows))
    return model


STATE = state_of(pipeline())


def changed(name, value):
    return State(STATE.kind, STATE.version, {**STATE.meta, name: value}, STATE.arrays)


def refused(state, path):
    write_state(state, path)
    with pytest.raises(StateFormatError):
        load(path)


@pytest.mark.parametrize(
    "steps",
    [
        *("", "[]", "null", "{}", "[1]", '["a", true]', '[["a"]]', '[["a", true, 1]]'),
        '[["a", true], ["a", true], ["a", true], ["a", true]]',
        json.dumps([["a", True]] * 9),
        json.dumps([[f"s{i}", True] for i in range(9)]),
        json.dumps([["a__b", True], ["steps", False]]),
    ],
)
def test_steps_that_are_not_there(steps, tmp_path):
    refused(changed("steps", steps), tmp_path / "forged.sks")


@pytest.mark.parametrize(
    "kind",
    [
        *("scikit-learn.FunctionTransformer", "scikit-learn.os", "scikit-learn.", "nothing"),
        *("checkpoint", "scikit-learn._data", "pipeline", "frozen", "table-encoder"),
    ],
)
def test_kinds_that_are_not_on_the_list(kind, tmp_path):
    for name in ("step2.kind", "step1.estimator.kind"):
        assert name in STATE.meta, sorted(STATE.meta)
        refused(changed(name, kind), tmp_path / "forged.sks")


@pytest.mark.parametrize(
    "params",
    ['{"func": 1}', "[]", "3", '{"with_mean": {"call": "os.system"}}', '{"__class__": 1}', "{"],
)
def test_parameters_that_are_none(params, tmp_path):
    refused(changed("step2.params", params), tmp_path / "forged.sks")


@pytest.mark.parametrize("name", ["__class__", "fit", "_x_", "__dict__", "with_mean"])
def test_what_no_scaler_learns(name, tmp_path):
    path = tmp_path / "forged.sks"
    refused(changed("step2.facts", json.dumps({name: "x"})), path)
    arrays = {**STATE.arrays, f"step2.learned.{name}": np.ones(3)}
    refused(State(STATE.kind, STATE.version, STATE.meta, arrays), path)


def test_a_newer_version_is_refused(tmp_path):
    refused(changed("step2.version", 99), tmp_path / "forged.sks")
    refused(State(STATE.kind, 99, STATE.meta, STATE.arrays), tmp_path / "forged.sks")


def test_pipelines_in_pipelines_without_end(tmp_path):
    meta, name = {}, ""
    for _ in range(3_000):
        meta |= {f"{name}steps": '[["a", true]]'}
        name += "step0."
        meta |= {f"{name}kind": "pipeline", f"{name}version": 2}
    refused(State("pipeline", 2, meta, {}), tmp_path / "forged.sks")


JUNK = ["", "x", "{}", "[]", "null", -1, 0, 10**18, 1e308, "NaN", "[null]", '{"a": [1]}']


def test_anything_in_the_place_of_anything(tmp_path):
    path = tmp_path / "forged.sks"
    for name in STATE.meta:
        for value in JUNK:
            write_state(changed(name, value), path)
            try:
                model = load(path)
            except StateFormatError:
                continue
            # A parameter or count that could have been so.
            assert [step for step, _ in model.steps] == [step for step, _ in pipeline().steps]


def test_arrays_of_other_shapes(tmp_path):
    path = tmp_path / "forged.sks"
    for name in STATE.arrays:
        for value in (np.empty(0), np.zeros((2, 2)), np.array(-5), np.array([2**62, -1])):
            arrays = {**STATE.arrays, name: value}
            write_state(State(STATE.kind, STATE.version, STATE.meta, arrays), path)
            # What is wrong in itself is refused at once, what does not fit the rest by its user.
            with suppress(StateFormatError, ValueError):
                load(path).transform(TABLE)


def test_a_pipeline_is_no_pickle(tmp_path):
    path = tmp_path / "pipeline.sks"
    write_state(STATE, path)
    assert b"sklearn.preprocessing" not in path.read_bytes()
    ridge = make_pipeline(StandardScaler(), StreamingRidge()).fit(X, X[:, 0])
    write_state(state_of(ridge), path)
    np.testing.assert_array_equal(load(path).predict(X), ridge.predict(X))
