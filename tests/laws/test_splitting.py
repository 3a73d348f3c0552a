"""Law 1 on every option set: how rows are cut into blocks makes no difference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _support import laws, zoo

pytestmark = pytest.mark.usefixtures("short_tiles")

each_sketch = pytest.mark.parametrize("name", laws.SKETCHES)


@each_sketch
@given(data=st.data())
@settings(max_examples=6)
def test_law_1_splitting_is_invisible(name, data):
    X = data.draw(zoo.matrices())
    cuts = data.draw(zoo.splits(len(X)))
    weights = None
    if data.draw(st.booleans()):
        weights = np.random.default_rng(len(cuts)).choice([0.0, 0.5, 1.0, 3.0], len(X))
    laws.splitting_is_invisible(laws.SKETCHES[name], X, cuts, weights)


@each_sketch
def test_law_1_row_by_row(name):
    # More rows than a tile and than any buffer.
    X = zoo.SHAPES["drifting"](300, 40)
    laws.splitting_is_invisible(laws.SKETCHES[name], X, list(range(1, 300)))


@each_sketch
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_law_1_in_both_precisions(name, dtype):
    X = zoo.SHAPES["power law"](310, 45).astype(dtype)
    laws.splitting_is_invisible(laws.SKETCHES[name], X, [1, 2, 60, 61, 185, 309])
