"""Law 2 on pairs of options: looking changes nothing that comes later."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _support import laws, pairwise, zoo

pytestmark = pytest.mark.usefixtures("short_tiles")

each_sketch = pytest.mark.parametrize("name", pairwise.SKETCHES)


@each_sketch
@given(data=st.data())
@settings(max_examples=3)
def test_law_2_reading_has_no_consequences(name, data):
    X = data.draw(zoo.matrices())
    cuts = data.draw(zoo.splits(len(X)))[:12]
    laws.reading_has_no_consequences(pairwise.SKETCHES[name], X, cuts)
