"""Bad input: one clear sentence, and afterwards the same answer as before."""

import json
import subprocess
import sys

import numpy as np
import pytest

import sksketch
from _support import hostile, laws

GOOD = np.random.default_rng(0).standard_normal((90, hostile.WIDTH)) + 1.0
SKETCHES = [
    *("fd exact uniform", "fd block uniform", "fd covariance uniform", "fd exact decay"),
    *("fd exact energy", "exact covariance", "centered fd exact uniform"),
    *("centered fd block uniform", "centered exact covariance"),
    *("sfd boosted", "sfd half", "2lfd small", "2lfd sampled"),
    *("gaussian 20", "sign 20", "countsketch 20", "srht 20", "sample 20"),
]
# Rows and weights are checked before a sketch does anything with them that is its own: these two
# get every bad input, and all of them get two.
THOROUGH = ("fd exact uniform", "centered fd block uniform")
BAD_ROWS = [
    *((name, kind) for name in THOROUGH for kind in hostile.REFUSED_BY_SKETCHES),
    *((name, kind) for name in SKETCHES if name not in THOROUGH for kind in ("NaN", "too wide")),
]
BAD_WEIGHTS = [
    *((name, kind) for name in THOROUGH for kind in hostile.BAD_WEIGHTS),
    *((name, kind) for name in SKETCHES if name not in THOROUGH for kind in ("NaN", "too few")),
]
STRANGERS = (None, "sketch", np.eye(hostile.WIDTH), sksketch.StreamingPCA())


def bad_rows(kind):
    return (hostile.REFUSED_BY_SKETCHES | hostile.EITHER)[kind](np.random.default_rng(0))


def bad_weights(kind):
    return hostile.BAD_WEIGHTS[kind](np.random.default_rng(0), len(GOOD))


def learned_twice(name):
    return (laws.SKETCHES[name]().update(GOOD) for _ in range(2))


def refuses(act, errors=(ValueError, TypeError)):
    """Assert that the action fails with one readable sentence."""
    with pytest.raises(errors) as caught:
        act()
    message = str(caught.value)
    assert 10 < len(message) < 300, message
    assert "\n" not in message, message
    # What the user reads comes from us, not from deep inside an array library.
    for leak in ("ufunc", "setting an array element", "broadcast", "assert", "LAPACK", "LinAlg"):
        assert leak not in message, message


def is_unchanged(before, after):
    laws.assert_same_bits(before, after)
    laws.assert_same_bits(before.update(GOOD), after.update(GOOD))


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize(("name", "kind"), BAD_ROWS)
def test_sketches_refuse_bad_rows_and_stay_as_they_were(name, kind):
    sketch, twin = learned_twice(name)
    refuses(lambda: sketch.update(bad_rows(kind)))
    is_unchanged(twin, sketch)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("name", THOROUGH)
def test_an_empty_sketch_stays_empty(name):
    # It does not know its width yet.
    sketch = laws.SKETCHES[name]()
    for kind in hostile.ABSOLUTE:
        refuses(lambda kind=kind: sketch.update(bad_rows(kind)))
        assert sketch.n_features is None
        assert sketch.n_rows_seen == 0
    laws.assert_same_bits(sketch.update(GOOD), laws.SKETCHES[name]().update(GOOD))


@pytest.mark.parametrize(("name", "kind"), BAD_WEIGHTS)
def test_sketches_refuse_bad_weights_and_stay_as_they_were(name, kind):
    sketch, twin = learned_twice(name)
    refuses(lambda: sketch.update(GOOD, bad_weights(kind)))
    is_unchanged(twin, sketch)


@pytest.mark.parametrize("name", SKETCHES)
def test_bad_rows_at_the_end_of_a_long_block_leave_nothing_behind(name):
    sketch, twin = learned_twice(name)
    long = np.tile(GOOD, (400, 1))
    long[-1, -1] = np.nan
    refuses(lambda: sketch.update(long))
    is_unchanged(twin, sketch)


@pytest.mark.parametrize("name", SKETCHES)
def test_sketches_refuse_to_merge_strangers(name):
    sketch, twin = learned_twice(name)
    for other in STRANGERS:
        refuses(lambda other=other: sketch.merge(other))
    is_unchanged(twin, sketch)


# Estimators

ESTIMATORS = {
    "pca": lambda: sksketch.StreamingPCA(2),
    "pca rfd": lambda: sksketch.StreamingPCA(2, sketch="rfd", sketch_size=3),
    "svd": lambda: sksketch.StreamingSVD(2),
    "svd fd": lambda: sksketch.StreamingSVD(2, sketch=laws.fd(laws.EXACT)),
}
# scikit-learn's validation turns dates into numbers.
FOR_ESTIMATORS = [kind for kind in hostile.REFUSED_BY_SKETCHES if kind != "dates"]
BAD_FOR_ESTIMATORS = [
    *((name, kind) for name in ("pca", "svd fd") for kind in FOR_ESTIMATORS),
    *((name, kind) for name in ("pca rfd", "svd") for kind in ("NaN", "too wide")),
]


def readings(estimator):
    rows = [estimator.components_, estimator.explained_variance_, estimator.singular_values_]
    rows += [estimator.transform(GOOD), estimator.inverse_transform(np.ones((1, 2)))]
    return [np.array(row) for row in rows]


def assert_same_readings(estimator, before):
    for left, right in zip(before, readings(estimator), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize(("name", "kind"), BAD_FOR_ESTIMATORS)
def test_estimators_refuse_bad_rows_and_stay_as_they_were(name, kind):
    estimator = ESTIMATORS[name]().fit(GOOD)
    before = readings(estimator)
    methods = [estimator.partial_fit]
    if kind not in hostile.OVERFLOW:
        methods.append(estimator.transform)
    if kind in hostile.ABSOLUTE:
        # A new fit may have any width, and leaves the former one if it fails.
        methods.append(estimator.fit)
    for method in methods:
        with pytest.raises((ValueError, TypeError)) as caught:
            method(bad_rows(kind))
        # scikit-learn's own messages can be longer, but the first line says it.
        assert len(str(caught.value).splitlines()[0]) < 300
        assert_same_readings(estimator, before)
    assert estimator.n_samples_seen_ == 90


def test_a_failed_fit_of_another_width_leaves_the_former_one():
    estimator = sksketch.StreamingPCA(2).fit(GOOD)
    before = readings(estimator)
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(np.full((8, 3), np.nan))
    assert_same_readings(estimator, before)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_refuse_bad_weights_and_stay_as_they_were(name):
    estimator = ESTIMATORS[name]().fit(GOOD)
    before = readings(estimator)
    for kind in hostile.BAD_WEIGHTS:
        for method in (estimator.partial_fit, estimator.fit):
            refuses(lambda method=method, kind=kind: method(GOOD, sample_weight=bad_weights(kind)))
            assert_same_readings(estimator, before)


# The same, as a user at a terminal sees it

ONE_LINERS = (
    "FrequentDirections(2).update([[1.0, float('nan')]])",
    "ExactCovariance().update([[1e200, 1.0]])",
    "FrequentDirections(2).update([[1.0, 2.0]]).update([[1.0]])",
    "StreamingPCA(1).fit([[1.0, 2.0], [float('inf'), 3.0]])",
    "load('nowhere.sks')",
)
# Prints what the interpreter prints when a line fails, for one line after the other.
SHOW_EACH = """
import json, sys, traceback
from sksketch import *
for line in json.loads(sys.argv[1]):
    try:
        exec(line)
    except Exception:
        traceback.print_exc()
    print("end of", line, file=sys.stderr)
"""


def test_one_liners_end_in_one_clear_sentence(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SHOW_EACH, json.dumps(ONE_LINERS)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    rest = done.stderr
    for line in ONE_LINERS:
        shown, ended, rest = rest.partition(f"end of {line}\n")
        assert ended
        last = shown.strip().splitlines()[-1]
        assert last.split(":")[0] in ("ValueError", "TypeError", "FileNotFoundError"), line
        assert len(last) < 300
        assert "Warning" not in shown
        assert "During handling" not in shown
        assert "direct cause" not in shown


def test_an_interrupted_update_is_not_passed_over(monkeypatch, tmp_path):
    rows = np.random.default_rng(0).standard_normal((200, 6))
    sketch = sksketch.FrequentDirections(4, solver="exact").update(rows)

    def interrupt(self, block, sparse):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sksketch.FrequentDirections, "_compressed", interrupt)
        with pytest.raises(KeyboardInterrupt):
            sketch.update(rows)
    for use in (
        sketch.summary,
        sketch.certificate,
        lambda: sketch.update(rows),
        lambda: sketch.merge(sksketch.FrequentDirections(4)),
        lambda: sksketch.FrequentDirections(4).merge(sketch),
        lambda: sketch.save(tmp_path / "half.sks"),
    ):
        with pytest.raises(RuntimeError, match="interrupted"):
            use()
    assert not list(tmp_path.iterdir())
