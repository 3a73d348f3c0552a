"""Bad input: one clear sentence, and afterwards the same answer as before."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sksketch
from _support import laws

WIDTH = 6
GOOD = np.random.default_rng(0).standard_normal((90, WIDTH)) + 1.0


def spoiled(value, dtype=np.float64):
    X = GOOD[:7].astype(dtype)
    X[4, 2] = value
    return X


def ragged():
    return [[1.0] * WIDTH, [1.0] * (WIDTH - 1)]


BAD_ROWS = {
    "NaN": lambda: spoiled(np.nan),
    "infinity": lambda: spoiled(np.inf),
    "minus infinity": lambda: spoiled(-np.inf),
    "NaN in float32": lambda: spoiled(np.nan, np.float32),
    "NaN beside infinity": lambda: np.where(np.eye(7, WIDTH) > 0, np.inf, spoiled(np.nan)),
    "squares overflow": lambda: spoiled(1e200),
    "squares overflow downwards": lambda: spoiled(-1e170),
    "text": lambda: np.full((3, WIDTH), "a"),
    "numbers as text": lambda: np.full((3, WIDTH), "b1"),
    "objects": lambda: np.full((3, WIDTH), {"a": 1}, dtype=object),
    "mixed objects": lambda: np.array([[1.0, "x", None, 2.0, 3.0, 4.0]], dtype=object),
    "ragged list": ragged,
    "too narrow": lambda: GOOD[:, :-1],
    "too wide": lambda: np.hstack([GOOD, GOOD]),
    "no rows": lambda: np.zeros((0, WIDTH)),
    "no columns": lambda: np.zeros((4, 0)),
    "three dimensions": lambda: np.zeros((2, 3, WIDTH)),
    "complex": lambda: GOOD + 1j,
    "frame with text": lambda: pd.DataFrame(np.full((3, WIDTH), "x")),
    "frame with missing values": lambda: pd.DataFrame(spoiled(np.nan)),
    "frame of the wrong width": lambda: pd.DataFrame(GOOD[:, :3]),
    "dates": lambda: np.full((2, WIDTH), np.datetime64("2020-01-01")),
    "sparse NaN": lambda: sp.csr_array(spoiled(np.nan)),
    "sparse infinity": lambda: sp.csc_array(spoiled(np.inf)),
    "sparse overflow": lambda: sp.coo_array(spoiled(1e200)),
    "sparse of the wrong width": lambda: sp.csr_matrix(GOOD[:, :3]),
    "sparse complex": lambda: sp.csr_array(GOOD + 1j),
    "nothing": lambda: None,
    "a word": lambda: "rows",
    "a dictionary": lambda: {"a": [1.0, 2.0]},
}

BAD_WEIGHTS = {
    "too few": np.ones(89),
    "too many": np.ones(91),
    "a column": np.ones((90, 1)),
    "negative": np.r_[-1.0, np.ones(89)],
    "NaN": np.r_[np.nan, np.ones(89)],
    "infinite": np.r_[np.inf, np.ones(89)],
    "text": np.full(90, "w"),
    "so large that squares overflow": np.full(90, 1e305),
}

SKETCHES = [
    *("fd exact uniform", "fd block uniform", "fd covariance uniform", "fd exact decay"),
    *("fd exact energy", "exact covariance", "centered fd exact uniform"),
    *("centered fd block uniform", "centered exact covariance"),
    *("sfd boosted", "sfd half", "2lfd small", "2lfd sampled"),
    *("gaussian 20", "sign 20", "countsketch 20", "srht 20", "sample 20"),
]


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


@pytest.mark.parametrize("bad", BAD_ROWS)
@pytest.mark.parametrize("name", SKETCHES)
def test_sketches_refuse_bad_rows_and_stay_as_they_were(name, bad):
    sketch, twin = (laws.SKETCHES[name]().update(GOOD) for _ in range(2))
    refuses(lambda: sketch.update(BAD_ROWS[bad]()))
    is_unchanged(twin, sketch)


# An empty sketch does not know its width yet.
ABSOLUTE = [bad for bad in BAD_ROWS if "width" not in bad and bad not in ("too narrow", "too wide")]


@pytest.mark.parametrize("bad", ABSOLUTE)
@pytest.mark.parametrize(
    "name", ["fd exact uniform", "exact covariance", "centered fd block uniform"]
)
def test_an_empty_sketch_stays_empty(name, bad):
    sketch = laws.SKETCHES[name]()
    refuses(lambda: sketch.update(BAD_ROWS[bad]()))
    assert sketch.n_features is None
    assert sketch.n_rows_seen == 0
    laws.assert_same_bits(sketch.update(GOOD), laws.SKETCHES[name]().update(GOOD))


@pytest.mark.parametrize("bad", BAD_WEIGHTS)
@pytest.mark.parametrize("name", SKETCHES)
def test_sketches_refuse_bad_weights_and_stay_as_they_were(name, bad):
    sketch, twin = (laws.SKETCHES[name]().update(GOOD) for _ in range(2))
    refuses(lambda: sketch.update(GOOD, BAD_WEIGHTS[bad]))
    is_unchanged(twin, sketch)


@pytest.mark.parametrize("name", SKETCHES)
def test_bad_rows_at_the_end_of_a_long_block_leave_nothing_behind(name):
    sketch, twin = (laws.SKETCHES[name]().update(GOOD) for _ in range(2))
    long = np.tile(GOOD, (400, 1))
    long[-1, -1] = np.nan
    refuses(lambda: sketch.update(long))
    is_unchanged(twin, sketch)


@pytest.mark.parametrize("name", SKETCHES)
@pytest.mark.parametrize("other", [None, "sketch", np.eye(WIDTH), sksketch.StreamingPCA()])
def test_sketches_refuse_to_merge_strangers(name, other):
    sketch, twin = (laws.SKETCHES[name]().update(GOOD) for _ in range(2))
    refuses(lambda: sketch.merge(other))
    is_unchanged(twin, sketch)


# Estimators

ESTIMATORS = {
    "pca": lambda: sksketch.StreamingPCA(2),
    "pca rfd": lambda: sksketch.StreamingPCA(2, sketch="rfd", sketch_size=3),
    "svd": lambda: sksketch.StreamingSVD(2),
    "svd fd": lambda: sksketch.StreamingSVD(2, sketch=laws.fd(laws.EXACT)),
}
# scikit-learn's validation turns dates into numbers.
FOR_ESTIMATORS = [bad for bad in BAD_ROWS if bad not in ("a dictionary", "dates")]


def readings(estimator):
    rows = [estimator.components_, estimator.explained_variance_, estimator.singular_values_]
    rows += [estimator.transform(GOOD), estimator.inverse_transform(np.ones((1, 2)))]
    return [np.array(row) for row in rows]


def assert_same_readings(estimator, before):
    for left, right in zip(before, readings(estimator), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("bad", FOR_ESTIMATORS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_refuse_bad_rows_and_stay_as_they_were(name, bad):
    estimator = ESTIMATORS[name]().fit(GOOD)
    before = readings(estimator)
    rows = BAD_ROWS[bad]()
    for method in (estimator.partial_fit, estimator.transform):
        if method == estimator.transform and "overflow" in bad:
            continue
        with pytest.raises((ValueError, TypeError)) as caught:
            method(rows)
        # scikit-learn's own messages can be longer, but the first line says it.
        assert len(str(caught.value).splitlines()[0]) < 300
        assert_same_readings(estimator, before)
    assert estimator.n_samples_seen_ == 90


@pytest.mark.parametrize("bad", [bad for bad in ABSOLUTE if bad in FOR_ESTIMATORS])
@pytest.mark.parametrize("name", ["pca", "svd fd"])
def test_a_failed_fit_leaves_the_former_one(name, bad):
    estimator = ESTIMATORS[name]().fit(GOOD)
    before = readings(estimator)
    rows = BAD_ROWS[bad]()
    with pytest.raises((ValueError, TypeError)):
        estimator.fit(rows)
    assert_same_readings(estimator, before)


def test_a_failed_fit_of_another_width_leaves_the_former_one():
    estimator = sksketch.StreamingPCA(2).fit(GOOD)
    before = readings(estimator)
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(np.full((8, 3), np.nan))
    assert_same_readings(estimator, before)


@pytest.mark.parametrize("bad", BAD_WEIGHTS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_refuse_bad_weights_and_stay_as_they_were(name, bad):
    estimator = ESTIMATORS[name]().fit(GOOD)
    before = readings(estimator)
    for method in (estimator.partial_fit, estimator.fit):
        refuses(lambda method=method: method(GOOD, sample_weight=BAD_WEIGHTS[bad]))
        assert_same_readings(estimator, before)


# The same, as a user at a terminal sees it

ONE_LINERS = {
    "NaN": "FrequentDirections(2).update([[1.0, float('nan')]])",
    "overflow": "ExactCovariance().update([[1e200, 1.0]])",
    "wrong width": "FrequentDirections(2).update([[1.0, 2.0]]).update([[1.0]])",
    "pca": "StreamingPCA(1).fit([[1.0, 2.0], [float('inf'), 3.0]])",
    "no file": "load('nowhere.sks')",
}


@pytest.mark.parametrize("name", ONE_LINERS)
def test_one_liners_end_in_one_clear_sentence(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", f"from sksketch import *; {ONE_LINERS[name]}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 1
    assert lines[-1].split(":")[0] in ("ValueError", "TypeError", "FileNotFoundError")
    assert len(lines[-1]) < 300
    assert "Warning" not in done.stderr
    assert "During handling" not in done.stderr
    assert "direct cause" not in done.stderr


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
