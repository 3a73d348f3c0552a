"""Law 6 on pairs of options: what is passed in stays as it was."""

import pytest
from hypothesis import given, settings

from _support import laws, pairwise, zoo

pytestmark = pytest.mark.usefixtures("short_tiles")

each_sketch = pytest.mark.parametrize("name", pairwise.SKETCHES)


@each_sketch
@given(X=zoo.matrices())
@settings(max_examples=3)
def test_law_6_inputs_are_left_alone(name, X):
    laws.inputs_are_left_alone(pairwise.SKETCHES[name], X)
