"""Law 4 on pairs of options: a state that was saved and loaded continues as if nothing happened."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _support import laws, pairwise, zoo

pytestmark = pytest.mark.usefixtures("short_tiles")

each_sketch = pytest.mark.parametrize("name", pairwise.SKETCHES)


@each_sketch
@given(data=st.data())
@settings(max_examples=3)
def test_law_4_saving_is_invisible(name, data):
    X = data.draw(zoo.matrices())
    cuts = data.draw(zoo.splits(len(X)))[:12]
    laws.saving_is_invisible(pairwise.SKETCHES[name], X, cuts)


@each_sketch
def test_law_4_through_a_file(name, tmp_path):
    X = zoo.SHAPES["power law"](200, 30).astype(np.float32)
    laws.saving_is_invisible(pairwise.SKETCHES[name], X, [1, 70, 71, 150], tmp_path / "sketch.sks")


@each_sketch
def test_law_4_for_an_empty_sketch(name):
    make = pairwise.SKETCHES[name]
    empty = make()
    again = type(empty).from_state(empty.state())
    X = zoo.SHAPES["flat"](90, 20)
    laws.assert_same_bits(again.update(X), make().update(X))
