"""Law 3 on every option set: the bound is true, at any moment and after merges in any order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _support import laws, zoo

pytestmark = pytest.mark.usefixtures("short_tiles")

each_sketch = pytest.mark.parametrize("name", laws.SKETCHES)


@each_sketch
@given(seed=st.integers(0, 2**16), weighted=st.booleans())
@settings(max_examples=6)
def test_law_3_the_bound_is_true(name, seed, weighted):
    # The block solver's bounds fail with probability 0.01, and at these fixed seeds they do not.
    rng = np.random.default_rng(seed)
    X = zoo.draw(rng)
    sketch, rows = laws.random_tree(laws.SKETCHES[name], X, rng, weighted=weighted)
    if sketch.n_features is None:
        sketch.update(X)
        rows.update(X, decay=sketch.decay)
    laws.bound_is_true(sketch, rows.last(sketch).matrix(centered=laws.is_centered(sketch)))


@each_sketch
def test_law_3_at_every_moment(name):
    X = zoo.SHAPES["drifting"](330, 40, seed=3)
    sketch, rows = laws.SKETCHES[name](), laws.Rows(40)
    centered = laws.is_centered(sketch)
    for piece in zoo.pieces(X, [1, 2, 3, 10, 56, 57, 112, 113, 200, 255, 256, 257, 300]):
        sketch.update(piece)
        rows.update(piece, decay=sketch.decay)
        laws.bound_is_true(sketch, rows.last(sketch).matrix(centered))


@each_sketch
def test_law_3_when_waiting_rows_are_shrunk_before_their_time(name):
    X = zoo.SHAPES["drifting"](330, 40, seed=3)
    sketch, rows = laws.SKETCHES[name]().compact(), laws.Rows(40)
    for piece in zoo.pieces(X, [1, 10, 57, 113, 255, 300]):
        sketch.update(piece).compact()
        rows.update(piece, decay=sketch.decay)
        laws.bound_is_true(sketch, rows.last(sketch).matrix(laws.is_centered(sketch)))
    assert sketch.n_rows_seen == min(len(X), getattr(sketch, "rows", None) or len(X))
    sketch._interrupted = True
    with pytest.raises(RuntimeError, match="interrupted"):
        sketch.compact()


@each_sketch
def test_law_3_on_the_zoo(name):
    broken = {}
    for animal, X in zoo.named().items():
        sketch = laws.SKETCHES[name]().update(X)
        rows = laws.Rows(X.shape[1]).update(X, decay=sketch.decay)
        A = rows.last(sketch).matrix(centered=laws.is_centered(sketch))
        if claims := laws.broken_bounds(sketch, A):
            broken[animal] = claims
    assert not broken
