import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _support import laws, zoo

pytestmark = pytest.mark.usefixtures("short_tiles")

WIDTH = 30
each_sketch = pytest.mark.parametrize("name", laws.SKETCHES)


def test_every_sketch_has_laws():
    # A new subclass of Sketch must be added to laws.SKETCHES.
    covered = {type(make()) for make in laws.SKETCHES.values()}
    library = {kind for kind in laws.concrete_classes() if kind.__module__.startswith("sksketch")}
    assert library
    assert library <= covered


def test_block_routes_of_the_laws_do_run_the_block_solver():
    # 60 rows of buffer are more than 4 sketch sizes, so shrinks of full buffers are block shrinks.
    sketch = laws.fd(laws.BLOCK).update(np.random.default_rng(0).standard_normal((200, WIDTH)))
    assert sketch.n_shrinks >= 3
    assert sketch.summary().confidence < 1


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
def test_law_1_row_by_row_on_a_long_wide_stream(name):
    X = zoo.SHAPES["drifting"](600, 70)
    laws.splitting_is_invisible(laws.SKETCHES[name], X, list(range(1, 600)))


@each_sketch
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_law_1_in_both_precisions(name, dtype):
    X = zoo.SHAPES["power law"](310, 45).astype(dtype)
    laws.splitting_is_invisible(laws.SKETCHES[name], X, [1, 2, 60, 61, 185, 309])


@each_sketch
@given(data=st.data())
@settings(max_examples=3)
def test_law_2_reading_has_no_consequences(name, data):
    X = data.draw(zoo.matrices())
    cuts = data.draw(zoo.splits(len(X)))[:12]
    laws.reading_has_no_consequences(laws.SKETCHES[name], X, cuts)


@each_sketch
@given(seed=st.integers(0, 2**16), weighted=st.booleans())
@settings(max_examples=6)
def test_law_3_the_bound_is_true(name, seed, weighted):
    # Some sixty option sets, six trees each. The block solver's bounds fail with probability 0.01,
    # and at these fixed seeds they do not.
    rng = np.random.default_rng(seed)
    X = zoo.draw(rng)
    sketch, rows = laws.random_tree(laws.SKETCHES[name], X, rng, weighted=weighted)
    if sketch.n_features is None:
        sketch.update(X)
        rows.update(X, decay=laws.decay(sketch))
    laws.bound_is_true(sketch, rows.matrix(centered=laws.is_centered(sketch)))


@each_sketch
def test_law_3_at_every_moment(name):
    X = zoo.SHAPES["drifting"](330, 40, seed=3)
    sketch, rows = laws.SKETCHES[name](), laws.Rows(40)
    centered = laws.is_centered(sketch)
    for piece in zoo.pieces(X, [1, 2, 3, 10, 56, 57, 112, 113, 200, 255, 256, 257, 300]):
        sketch.update(piece)
        rows.update(piece, decay=laws.decay(sketch))
        laws.bound_is_true(sketch, rows.matrix(centered))


@each_sketch
def test_law_3_when_waiting_rows_are_shrunk_before_their_time(name):
    X = zoo.SHAPES["drifting"](330, 40, seed=3)
    sketch, rows = laws.SKETCHES[name]().compact(), laws.Rows(40)
    for piece in zoo.pieces(X, [1, 10, 57, 113, 255, 300]):
        sketch.update(piece).compact()
        rows.update(piece, decay=laws.decay(sketch))
        laws.bound_is_true(sketch, rows.matrix(laws.is_centered(sketch)))
    assert sketch.n_rows_seen == len(X)
    sketch._interrupted = True
    with pytest.raises(RuntimeError, match="interrupted"):
        sketch.compact()


@each_sketch
def test_law_3_on_the_zoo(name):
    broken = {}
    for animal, X in zoo.named().items():
        sketch = laws.SKETCHES[name]().update(X)
        rows = laws.Rows(X.shape[1]).update(X, decay=laws.decay(sketch))
        A = rows.matrix(centered=laws.is_centered(sketch))
        if claims := laws.broken_bounds(sketch, A):
            broken[animal] = claims
    assert not broken


@each_sketch
@given(data=st.data())
@settings(max_examples=3)
def test_law_4_saving_is_invisible(name, data):
    X = data.draw(zoo.matrices())
    cuts = data.draw(zoo.splits(len(X)))[:12]
    laws.saving_is_invisible(laws.SKETCHES[name], X, cuts)


@each_sketch
def test_law_4_through_a_file(name, tmp_path):
    X = zoo.SHAPES["power law"](200, WIDTH).astype(np.float32)
    laws.saving_is_invisible(laws.SKETCHES[name], X, [1, 70, 71, 150], tmp_path / "sketch.sks")


@each_sketch
def test_law_4_for_an_empty_sketch(name):
    make = laws.SKETCHES[name]
    empty = make()
    again = type(empty).from_state(empty.state())
    X = zoo.SHAPES["flat"](90, 20)
    laws.assert_same_bits(again.update(X), make().update(X))


@each_sketch
def test_law_5_memory_is_flat(name):
    laws.memory_is_flat(laws.SKETCHES[name], zoo.SHAPES["flat"](101, WIDTH))


@each_sketch
@given(X=zoo.matrices())
@settings(max_examples=3)
def test_law_6_inputs_are_left_alone(name, X):
    laws.inputs_are_left_alone(laws.SKETCHES[name], X)
