"""What holds for every public estimator: one base, one table of parameters, one encoding."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

import sksketch
from sksketch import FrequentDirections, NotMergeableError, StreamingPCA
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.constraints import FLAG, ROWS, check_parameters, number, one_of, whole
from sksketch.models.parameters import parameters_of, with_parameters
from sksketch.models.protocols import Measuring, Piloted, SeveralPasses, Shardable
from sksketch.models.sketched import SketchEstimator
from sksketch.state.persistence import State

PUBLIC = [getattr(sksketch, name) for name in sksketch.__all__]
ESTIMATORS = [kind for kind in PUBLIC if inspect.isclass(kind) and issubclass(kind, BaseEstimator)]
MOST_BASES = 6
each_estimator = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)


def test_few_classes_stand_above_all_estimators():
    above = {base for kind in ESTIMATORS for base in kind.__mro__ if base not in ESTIMATORS}
    own = {base.__name__ for base in above if base.__module__.startswith("sksketch.")}
    assert len(own) <= MOST_BASES, own
    assert len(ESTIMATORS) >= 16


@each_estimator
def test_every_parameter_is_in_the_table_and_its_default_is_allowed(kind):
    model = kind()
    assert set(kind._constraints) == set(model.get_params(deep=False))
    check_parameters(model.get_params(deep=False), kind._constraints)


@each_estimator
def test_no_parameter_takes_anything(kind):
    for name in kind().get_params(deep=False):
        with pytest.raises(ValueError, match=f"^{name} is .*; give "):
            kind(**{name: object()})._check_params()


@each_estimator
def test_columns_that_are_not_numbers_are_named(kind):
    if kind.__name__ in ("TableEncoder", "FormulaEncoder"):
        pytest.skip("takes tables")
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.random((30, 3)), columns=list("abc"))
    table = numbers.assign(city=["Zug", "Bern"] * 15, when=pd.Timestamp("2026-01-01"))
    y = numbers["a"] > 0.5 if "Classifier" in kind.__name__ else numbers["a"]
    views = (numbers, numbers) if kind is sksketch.MultiviewMixture else (y,)
    with pytest.raises(ValueError, match=r"not numbers: 'city' \(\w+\), 'when' \(datetime\); drop"):
        kind().fit(table, *views)


def test_columns_of_arrow_that_are_not_numbers_are_named():
    table = pa.table({"a": [1.0, 2.0, 3.0], "city": ["Zug", "Bern", "Chur"]})
    with pytest.raises(ValueError, match=r"not numbers: 'city' \(string\); drop"):
        sksketch.StreamingPCA(1).fit(table)


def test_what_else_is_wrong_with_a_table_is_said():
    numbers = pd.DataFrame({"a": ["1", "2"], "b": [np.nan, 1.0]})
    with pytest.raises(ValueError, match="NaN"):
        sksketch.StreamingRidge().fit(numbers, [0.0, 1.0])
    model = sksketch.StreamingRidge().fit(numbers[["a"]], [0.0, 1.0])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(numbers.assign(c="x"))


@each_estimator
def test_runners_find_their_protocol(kind):
    model = kind()
    assert isinstance(model, Shardable)
    measuring = issubclass(kind, SketchEstimator) and hasattr(model, "standardize")
    assert isinstance(model, Measuring) == measuring
    assert isinstance(model, Piloted) == (measuring or kind is sksketch.StreamingKernelPCA)
    several = {sksketch.StreamingGLM, sksketch.StreamingKernelPCA, sksketch.SubspaceReduction}
    assert isinstance(model, SeveralPasses) == (measuring or kind in several)
    with pytest.raises(NotMergeableError):
        sksketch.ReducedRegressor().shard_template()


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        2.5,
        float("inf"),
        "auto",
        [0.1, 1.0],
        (1.0, "median"),
        {0: 1.0, 1: 2.0},
        {"nu": 1.5, "coefficients": [1.0, 0.5]},
    ],
)
def test_parameters_come_back_as_they_were(value):
    state = with_parameters(State("some", 2, {}, {}), {"given": value})
    found = parameters_of(state)
    assert found == {"given": value}
    assert type(found["given"]) is type(value)
    assert list(state.meta) == ["params"]


def test_rows_and_sketches_among_the_parameters_come_back():
    landmarks = (np.eye(3), sp.csr_array(np.eye(2)))
    given = {"landmarks": landmarks, "one": np.ones((2, 2)), "sketch": FrequentDirections(7)}
    found = parameters_of(with_parameters(State("some", 2, {}, {}), given))
    np.testing.assert_array_equal(found["landmarks"][0], landmarks[0])
    np.testing.assert_array_equal(found["landmarks"][1].toarray(), landmarks[1].toarray())
    np.testing.assert_array_equal(found["one"], given["one"])
    assert found["sketch"].sketch_size == 7


@pytest.mark.parametrize(
    ("kind", "meta"),
    [
        ("streaming-ridge", {"param.alpha": 2.0, "param.sketch": "auto"}),
        ("online-newton-regressor", {"param.alpha": "2.0", "param.sketch": '"auto"'}),
    ],
)
def test_both_encodings_of_version_1_are_read(kind, meta):
    assert parameters_of(State(kind, 1, meta, {})) == {"alpha": 2.0, "sketch": "auto"}


def test_class_weights_of_version_1_are_read():
    pairs = State("reduced-classifier", 1, {"param.class_weight": "[[0, 1.0], [1, 2.0]]"}, {})
    assert parameters_of(pairs) == {"class_weight": {0: 1.0, 1: 2.0}}
    text = json.dumps({"pairs": [["no", 1.0]]})
    online = State("online-newton-classifier", 1, {"param.class_weight": text}, {})
    assert parameters_of(online) == {"class_weight": {"no": 1.0}}


@pytest.mark.parametrize(
    ("constraint", "good", "bad"),
    [
        (whole(2), [2, np.int64(5)], [1, 2.0, True, None, "2"]),
        (number(0.0, 1.0, bounds="(]"), [0.5, 1, np.float32(0.1)], [0.0, 1.5, np.nan, True, "1"]),
        (number(0.0), [0.0, 7], [-1.0, np.inf]),
        (one_of("a", None), ["a", None], ["b", ["a"], {}]),
        (FLAG, [True, False, np.True_, 0], [None, "yes", 2]),
        (ROWS, [np.eye(2), [[1.0]], sp.eye_array(2)], [np.ones(3), 3, "rows", None]),
    ],
)
def test_constraints(constraint, good, bad):
    assert [value for value in good if not constraint.accepts(value)] == []
    assert [value for value in bad if constraint.accepts(value)] == []


def test_a_refused_call_leaves_all_as_it_was():
    model = StreamingPCA(1).fit(np.eye(3))
    before = dict(vars(model))
    done = []
    with (  # noqa: PT012
        pytest.raises(KeyboardInterrupt),
        or_as_before(model, [lambda: done.append("undone")]),
    ):
        model.sketch_ = model.more_ = None
        raise KeyboardInterrupt
    assert vars(model) == before
    assert done == ["undone"]


def test_the_base_alone_is_not_an_estimator():
    with pytest.raises(TypeError, match="abstract"):
        Estimator()


def _private_uses(path):
    """Yield private names that a module reads from what is not its own object."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            owner = node.value
            if not (isinstance(owner, ast.Name) and owner.id in ("self", "cls")):
                yield node.attr


@pytest.mark.parametrize("folder", ["run", "cli", "present"])
def test_no_private_name_of_an_estimator_is_used_above(folder):
    private = {name for kind in ESTIMATORS for name in dir(kind) if not name.startswith("__")}
    private |= {"_shard", "_answers", "_learner", "_vocabulary", "_power", "_reservoir"}
    root = Path(sksketch.__file__).parent / folder
    used = {name for path in root.rglob("*.py") for name in _private_uses(path)}
    assert not used & {name for name in private if name.startswith("_")}
