"""Law 5 on pairs of options: memory does not grow with the rows seen."""

import pytest

from _support import laws, pairwise, zoo

pytestmark = pytest.mark.usefixtures("short_tiles")

each_sketch = pytest.mark.parametrize("name", pairwise.SKETCHES)


@each_sketch
def test_law_5_memory_is_flat(name):
    laws.memory_is_flat(pairwise.SKETCHES[name], zoo.SHAPES["flat"](101, 30))
