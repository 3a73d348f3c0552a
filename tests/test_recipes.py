"""The recipes of CONTRIBUTING are tried: their code runs, keeps the laws and passes the checks."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from _support import laws, zoo
from sksketch.sketches import catalog
from sksketch.streams.columns import Choice
from sksketch.streams.source import RowSource

GUIDE = Path(__file__).parents[1] / "CONTRIBUTING.md"
pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="CONTRIBUTING.md is not here")


@pytest.fixture(scope="module")
def recipes():
    """Return the names that the code of all recipes defines."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    names = {"__name__": __name__}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)  # noqa: S102
    return names


def test_the_sketch_keeps_the_laws(recipes):
    make = recipes["EnergySketch"]
    X = zoo.SHAPES["drifting"](120, 10, seed=1)
    cuts = [3, 40, 41]
    laws.splitting_is_invisible(make, X, cuts)
    laws.reading_has_no_consequences(make, X, cuts)
    laws.saving_is_invisible(make, X, cuts)
    laws.inputs_are_left_alone(make, X)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sketch, rows = laws.random_tree(make, zoo.draw(rng), rng, weighted=True)
        if sketch.n_features is not None:
            laws.bound_is_true(sketch, rows.matrix(centered=False))


def test_the_estimator_learns_saves_and_merges(recipes, monkeypatch):
    X = np.random.default_rng(0).standard_normal((50, 4))
    model = recipes["StreamingCondition"](alpha=0.5)
    exact = np.linalg.cond(X.T @ X + 0.5 * np.eye(4))
    assert clone(model).fit(X).condition_ == pytest.approx(exact)
    left, right = clone(model).partial_fit(X[:20]), clone(model).partial_fit(X[20:])
    assert left.merge(right).condition_ == pytest.approx(exact)
    assert type(model).from_state(left.state()).condition_ == left.condition_
    with pytest.raises(ValueError, match="alpha is -1; give a number from 0 on"):
        clone(model).set_params(alpha=-1).fit(X)
    assert catalog.KINDS["exact-covariance"] is type(left.sketch_)


def test_the_format_is_cut_checked_and_resumed(recipes, tmp_path):
    X = np.random.default_rng(0).standard_normal((7, 3))
    X[4, 1] = np.nan
    file = tmp_path / "rows.hex"
    file.write_text("\n".join(" ".join(x.hex() for x in row) for row in X.tolist()))
    now = {"in_background": False, "options": {}}
    reader = recipes["HexReader"]([file], Choice(None, None, None, None, None))
    found = [block.X for block in RowSource(reader, batch_rows=2, missing="drop", **now).blocks(3)]
    np.testing.assert_array_equal(np.concatenate(found), X[[3, 5, 6]])
    with pytest.raises(ValueError, match=r"rows\.hex, row 5"):
        list(RowSource(reader, batch_rows=2, missing="error", **now).blocks())
