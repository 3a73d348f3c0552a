"""Files of every released version are read forever."""

import json
from pathlib import Path

import numpy as np
import pytest

import sksketch
from _support import laws
from golden import write
from sksketch.run.loading import ESTIMATORS
from sksketch.sketches.catalog import KINDS

# The files were written in short tiles, so that few rows make small files.
pytestmark = pytest.mark.usefixtures("short_tiles")

FOLDER = Path(__file__).parent / "golden"
FILES = sorted(FOLDER.glob("*/*.sks"))
IDS = [f"{path.parent.name} {path.stem}" for path in FILES]
each_file = pytest.mark.parametrize("path", FILES, ids=IDS)


def expected(path):
    # Of files from before a release had counted all roundings there are no bounds.
    return json.loads((path.parent / "expected.json").read_text())[path.stem]


def assert_same_answers(found, wanted, rtol):
    assert wanted.keys() <= found.keys()
    for name, value in wanted.items():
        if isinstance(value, str):
            assert found[name] == value, name
            continue
        atol = rtol * np.abs(value).max(initial=0.0)
        if name == "error_bound":
            # What is allowed for roundings may be counted in another way.
            atol = max(atol, 1e-12 * found["squared_norm"])
        np.testing.assert_allclose(found[name], value, rtol=rtol, atol=atol, err_msg=name)


@each_file
def test_old_files_give_their_old_answers(path):
    # float32 components are compared as such.
    rtol = 1e-5 if "float32" in path.stem else 1e-9
    assert_same_answers(write.answers(sksketch.load(path)), expected(path), rtol)


@each_file
def test_old_files_continue(path):
    loaded = sksketch.load(path)
    n_rows = expected(path)["n_rows_seen"]
    n_more = 300
    X = write.rows(n_rows + n_more)
    if hasattr(loaded, "n_features_y_") and hasattr(loaded, "sketch_"):
        # Its sketch has both views side by side.
        never_saved = write.make(path.stem)
        found, wanted = (write.answers(write.fed(m, X[n_rows:])) for m in (loaded, never_saved))
        assert_same_answers(found, wanted, 1e-9)
        return
    if "finished" in path.stem:
        with pytest.raises(sksketch.NotMergeableError, match="saved finished"):
            write.fed(loaded, X[n_rows:])
        return
    fed = write.fed(loaded, X[n_rows:])
    if hasattr(fed, "learners_"):
        assert fed.n_samples_seen_ == n_rows + n_more
        np.testing.assert_allclose(fed.coef_, write.fed(write.make(path.stem), X[n_rows:]).coef_)
        return
    if not hasattr(fed, "sketch_") and not isinstance(fed, sksketch.Sketch):
        # As a model that was never saved; what learns in one call does so anew.
        never_saved = write.fed(write.make(path.stem), X[n_rows:])
        assert_same_answers(write.answers(fed), write.answers(never_saved), 1e-6)
        return
    sketch = getattr(fed, "sketch_", fed)
    assert write.total_rows(fed) == n_rows + n_more
    if "float32" in path.stem:
        X = X.astype(np.float32)
    seen = laws.Rows(write.WIDTH).update(X, decay=sketch.decay)
    A = seen.last(getattr(fed, "_sketch", fed)).matrix(centered=laws.is_centered(sketch))
    laws.bound_is_true(sketch, A.astype(X.dtype))


@each_file
def test_files_are_small(path):
    assert path.stat().st_size < 64_000


def test_every_kind_has_a_file():
    kinds = {expected(path)["kind"] for path in FILES if path.parent.name == sksketch.__version__}
    assert set(KINDS) <= kinds
    assert set(ESTIMATORS) <= kinds
    assert set(write.MAKERS) <= {path.stem for path in FILES}


@pytest.mark.parametrize("name", write.MAKERS)
def test_this_release_writes_what_it_has_written(name):
    wanted = json.loads((FOLDER / sksketch.__version__ / "expected.json").read_text())[name]
    found = write.answers(write.make(name))
    for key in ("error_bound", "squared_norm", "n_rows_seen", "loss"):
        if key in wanted:
            # Directions in single precision differ between BLAS libraries.
            assert found[key] == pytest.approx(wanted[key], rel=1e-4, abs=1e-9)
