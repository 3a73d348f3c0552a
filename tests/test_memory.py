"""The stream of a million rows keeps memory flat, measured."""

import tracemalloc

import numpy as np
import pytest

from sksketch import Centered, ExactCovariance, FrequentDirections, StreamingPCA

N_ROWS, BLOCK_ROWS, WIDTH = 1_000_000, 10_000, 20


def state_bytes(sketch):
    return sum(array.nbytes for array in sketch.state().arrays.values())


def test_a_million_rows_need_no_more_memory_than_the_first_few():
    block = np.random.default_rng(0).standard_normal((BLOCK_ROWS, WIDTH)).astype(np.float32)
    # Enough rows at a time that a million of them take seconds.
    sketch = Centered(FrequentDirections(6, solver="block", buffer_rows=4000))
    for _ in range(3):
        sketch.update(block)
        sketch.error_bound()
    tracemalloc.start()
    try:
        for _ in range(3):
            sketch.update(block)
            sketch.error_bound()
        first = tracemalloc.get_traced_memory()[1]
        for _ in range(N_ROWS // BLOCK_ROWS - 6):
            sketch.update(block)
        sketch.error_bound()
        last = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sketch.n_rows_seen == N_ROWS
    assert last - first < 1e6
    # The whole is a small part of the 80 MB that the rows would take.
    assert last < 8e6


@pytest.mark.parametrize(
    "make",
    [
        lambda: Centered(FrequentDirections(6, solver="block", buffer_rows=100)),
        lambda: FrequentDirections(6, solver="exact", buffer_rows=100),
        lambda: FrequentDirections(6, solver="covariance"),
        ExactCovariance,
    ],
)
@pytest.mark.usefixtures("short_tiles")
def test_the_saved_state_does_not_grow(make, tmp_path):
    rng = np.random.default_rng(0)
    sketch = make()
    sizes = []
    # 94 rows fill the buffers above, 256 a short tile and 512 the exact buffer: all are empty at
    # their common multiples.
    stretch = 94 * 256
    for _ in range(3):
        sketch.update(rng.standard_normal((stretch, WIDTH)))
        sketch.save(tmp_path / "sketch.sks")
        sizes.append((state_bytes(sketch), (tmp_path / "sketch.sks").stat().st_size))
    assert sizes[2][0] == sizes[1][0] == sizes[0][0]
    # Digits of counters.
    assert abs(sizes[2][1] - sizes[0][1]) < 200


def test_an_estimator_holds_no_rows():
    rng = np.random.default_rng(0)
    pca = StreamingPCA(3, sketch="rfd", sketch_size=8)
    tracemalloc.start()
    try:
        for _ in range(20):
            pca.partial_fit(rng.standard_normal((2000, WIDTH)))
            assert len(pca.components_) == 3
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # 20 blocks of 320 kB have come by.
    assert peak < 5e6
