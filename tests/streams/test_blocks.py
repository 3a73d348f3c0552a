from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sksketch.exceptions import StreamExhaustedError
from sksketch.streams import ArraySource, Block, BlockSource, IterableSource, as_source, reblock


def rows_of(source):
    return np.concatenate([block.X for block in source.blocks()])


@given(st.integers(0, 40), st.integers(1, 50))
def test_an_array_source_gives_all_rows_in_order_and_again(n_rows, batch_rows):
    X = np.arange(n_rows * 3.0).reshape(n_rows, 3)
    source = ArraySource(X, np.arange(n_rows), batch_rows)
    for _ in range(2):
        blocks = list(source.blocks())
        assert all(len(block.X) == batch_rows for block in blocks[:-1])
        assert sum(len(block.X) for block in blocks) == n_rows
        for block in blocks:
            np.testing.assert_array_equal(block.X[:, 0] / 3, block.y)
            assert np.shares_memory(block.X, X)


def test_blocks_are_sized_by_bytes():
    wide, narrow = np.zeros((3000, 1000), np.float32), np.zeros((3000, 10), np.float32)
    assert ArraySource(wide).batch_rows == 8 * 2**20 // 4000
    assert len(list(ArraySource(narrow).blocks())) == 1
    # A sparse row costs what it stores, not what it spans.
    sparse = sp.random_array((3000, 10_000), density=1e-3, format="csr", rng=0)
    assert ArraySource(sparse).batch_rows > 10_000


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "csc_matrix", "coo_array"])
def test_sparse_rows_come_as_csr(kind):
    dense = np.diag(np.arange(1.0, 6.0))
    source = as_source(getattr(sp, kind)(dense), batch_rows=2)
    blocks = [block.X for block in source.blocks()]
    assert all(block.format == "csr" for block in blocks)
    np.testing.assert_array_equal(np.concatenate([block.toarray() for block in blocks]), dense)


def test_a_memory_map_is_sliced(tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((10, 2)))
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    block = next(as_source(X, batch_rows=4).blocks())
    assert np.shares_memory(block.X, X)


def test_frames_become_numbers_or_say_why_not():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5]})
    source = as_source(frame, pd.Series([1, 2, 3]), batch_rows=2)
    assert source.n_features == 2
    np.testing.assert_array_equal(rows_of(source), frame.to_numpy())
    np.testing.assert_array_equal(next(source.blocks()).y, [1, 2])
    with pytest.raises(ValueError, match="not numbers; encode or drop"):
        as_source(frame.assign(c=["x", "y", "z"]))


@pytest.mark.parametrize(
    "items",
    [
        [np.ones((2, 3)), np.ones((1, 3))],
        [Block(np.ones((2, 3)), np.zeros(2)), Block(np.ones((1, 3)), np.zeros(1))],
        [(np.ones((2, 3)), np.zeros(2)), (np.ones((1, 3)), np.zeros(1))],
        [np.ones(3), np.ones(3), np.ones(3)],
        [(np.ones(3), 0.0), (np.ones(3), 1.0), (np.ones(3), 2.0)],
        [[[1, 1, 1]], [[1, 1, 1], [1, 1, 1]]],
        [pd.DataFrame(np.ones((3, 3)))],
    ],
)
def test_an_iterable_source_reads_every_kind_of_item_once(items):
    source = as_source(item for item in items)
    assert source.n_features == 3
    blocks = list(source.blocks())
    np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), np.ones((3, 3)))
    assert all(block.y is None or len(block.y) == len(block.X) for block in blocks)
    with pytest.raises(StreamExhaustedError, match=r"read only once.*build the source again"):
        source.blocks()


def test_a_sparse_item_stays_sparse():
    source = IterableSource(iter([sp.csr_array(np.eye(3)), sp.csr_array(np.eye(3))]))
    (block,) = reblock(source.blocks(), 6)
    np.testing.assert_array_equal(block.X.toarray(), np.vstack([np.eye(3), np.eye(3)]))


def test_an_iterable_is_refused_when_empty_or_when_its_columns_change():
    with pytest.raises(ValueError, match="gave no block"):
        IterableSource(iter([]))
    source = IterableSource(iter([np.ones((2, 3)), np.ones((2, 4))]))
    with pytest.raises(ValueError, match="block 1 has 4 features and the first block had 3"):
        list(source.blocks())
    with pytest.raises(ValueError, match="tuple of 4"):
        IterableSource(iter([(1.0, 2.0, 3.0, 4.0)]))


def test_as_source_tells_arrays_from_iterables():
    assert isinstance(as_source([[1.0, 2.0], [3.0, 4.0]]), ArraySource)
    assert isinstance(as_source([(1.0, 2.0), (3.0, 4.0)]), ArraySource)
    assert isinstance(as_source([np.ones((2, 2)), np.ones((2, 2))]), IterableSource)
    assert isinstance(as_source([(np.ones((2, 2)), np.ones(2))]), IterableSource)
    source = ArraySource(np.ones((2, 2)))
    assert as_source(source) is source
    assert isinstance(source, BlockSource)
    cut = as_source((np.ones((5, 2)) for _ in range(3)), batch_rows=4)
    assert [len(block.X) for block in cut.blocks()] == [4, 4, 4, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones(3),), "reshape one row"),
        ((np.ones((2, 2, 2)),), "expected"),
        ((np.ones((3, 2)), np.ones(2)), "3 rows came with targets of shape"),
        ((np.ones((3, 2)), None, 0), "batch_rows is 0"),
        ((ArraySource(np.ones((3, 2))), np.ones(3)), "brings its own"),
        ((iter([np.ones((3, 2))]), np.ones(3)), "pairs"),
        ((np.array([["a", "b"]]),), "not numbers"),
    ],
)
def test_a_users_mistake_is_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        as_source(*arguments)


@given(st.lists(st.integers(0, 7), max_size=8), st.integers(1, 9), st.booleans())
def test_reblock_changes_nothing_but_the_cuts(sizes, rows, with_targets):
    total = sum(sizes)
    X = np.arange(total * 2.0).reshape(total, 2)
    edges = np.cumsum([0, *sizes])
    parts = [
        Block(X[a:b].copy(), X[a:b, 0].copy() if with_targets else None) for a, b in pairwise(edges)
    ]
    blocks = list(reblock(parts, rows))
    assert [len(block.X) for block in blocks[:-1]] == [rows] * (len(blocks) - 1)
    assert all(0 < len(block.X) <= rows for block in blocks)
    np.testing.assert_array_equal(np.concatenate([X[:0], *(block.X for block in blocks)]), X)
    for block in blocks:
        assert (block.y is not None) == with_targets
        if with_targets:
            np.testing.assert_array_equal(block.y, block.X[:, 0])


def test_reblock_survives_a_producer_that_uses_its_buffer_again():
    def producer():
        buffer = np.empty((3, 1))
        for value in range(4):
            buffer[:] = value
            yield Block(buffer)

    cut = np.concatenate([block.X.copy() for block in reblock(producer(), 2)])
    np.testing.assert_array_equal(cut.ravel(), np.repeat(np.arange(4.0), 3))


def test_reblock_refuses_targets_that_come_and_go():
    blocks = [Block(np.ones((1, 2)), np.ones(1)), Block(np.ones((1, 2)))]
    with pytest.raises(ValueError, match="all or none"):
        list(reblock(blocks, 2))
