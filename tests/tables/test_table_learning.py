"""`TableEncoder` in parts: any cut into blocks, any tree of merges, copies and files."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import sksketch
from _support import messy
from sksketch import NotMergeableError, TableEncoder
from sksketch.state.persistence import to_bytes
from sksketch.tables import texts

N_ROWS = 400
TABLE = messy.messy_table(N_ROWS, seed=1)


@pytest.fixture(scope="module", autouse=True)
def short_tiles():
    """Let names be given on after few rows, and few of them be remembered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "TILE_ROWS", 64)
        patch.setattr("sksketch.tables.column_summary.TILE_ROWS", 64)
        patch.setattr(texts, "MOST_VALUES", 30)
        yield


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else np.asarray(rows)


def learned(table, cuts):
    encoder = TableEncoder()
    for start, stop in zip([0, *cuts], [*cuts, len(table)], strict=True):
        if stop > start:
            encoder.partial_fit(table[start:stop])
    return encoder


def bits(encoder):
    return to_bytes(encoder.state())


CUTS = st.lists(st.integers(0, N_ROWS), max_size=8).map(sorted)


@given(cuts=CUTS)
def test_the_same_bits_for_any_cut(cuts):
    assert bits(learned(TABLE, cuts)) == bits(TableEncoder().fit(TABLE))


def broken_dates(n_rows):
    """Return dates of which one, late, is none; texts that begin with holes; and changing types."""
    days = pd.date_range("2024-01-01", periods=n_rows).strftime("%Y-%m-%d").astype(object)
    dates = days.to_numpy().copy()
    dates[n_rows // 2] = "soon"
    late = np.array([None] * (n_rows // 3) + ["a", "b", None] * n_rows, dtype=object)[:n_rows]
    truth = np.array([None, None, True, False] * n_rows, dtype=object)[:n_rows]
    return pd.DataFrame({"dates": dates, "late": late, "truth": truth, "days": days})


@given(cuts=st.lists(st.integers(0, 50), max_size=50).map(sorted))
@example(cuts=list(range(50)))
def test_the_same_bits_for_any_cut_of_a_frame_that_changes(cuts):
    frame = broken_dates(50)
    assert bits(learned(frame, cuts)) == bits(TableEncoder().fit(frame))


@given(cuts=CUTS, read=st.booleans())
def test_saving_and_reading_between_blocks_changes_nothing(cuts, read):
    encoder = TableEncoder()
    ways = [
        copy.deepcopy,
        lambda one: pickle.loads(pickle.dumps(one)),
        lambda one: TableEncoder.from_state(one.state()),
        copy.copy,
    ]
    for i, (start, stop) in enumerate(zip([0, *cuts], [*cuts, N_ROWS], strict=True)):
        if stop > start:
            encoder.partial_fit(TABLE[start:stop])
            if read:
                assert encoder.columns_
            before = bits(encoder)
            taken = ways[i % len(ways)](encoder)
            assert bits(encoder) == bits(taken) == before
            encoder = taken
    assert bits(encoder) == bits(TableEncoder().fit(TABLE))


def test_a_saved_encoder_answers_the_same(tmp_path):
    encoder = TableEncoder(max_categories=7, missing="indicator").fit(TABLE)
    encoder.save(tmp_path / "encoder.sks")
    for loaded in (
        sksketch.load(tmp_path / "encoder.sks"),
        TableEncoder.from_state(encoder.state()),
    ):
        assert loaded.get_params() == encoder.get_params()
        assert loaded.columns_ == encoder.columns_
        assert loaded.feature_names_in_.tolist() == TABLE.column_names
        np.testing.assert_array_equal(
            dense(loaded.transform(TABLE)), dense(encoder.transform(TABLE))
        )
    fresh = clone(encoder)
    assert fresh.get_params() == encoder.get_params()
    with pytest.raises(NotFittedError):
        fresh.transform(TABLE)


def test_reading_between_blocks_forgets_nothing():
    encoder = TableEncoder().partial_fit(TABLE[:50])
    first = encoder.columns_
    encoder.partial_fit(TABLE[50:])
    assert encoder.columns_ == TableEncoder().fit(TABLE).columns_
    assert encoder.columns_ != first


def merged(encoders, order):
    """Merge all in some tree."""
    encoders = list(encoders)
    for i in order:
        if len(encoders) > 1:
            other = encoders.pop(i % len(encoders))
            into = encoders[(i * 7) % len(encoders)]
            before = bits(other)
            into.merge(other)
            assert bits(other) == before
    (first, *rest) = encoders
    for other in rest:
        first.merge(other)
    return first


@given(cuts=CUTS, order=st.lists(st.integers(0, 20), max_size=8))
def test_merges_in_any_tree(cuts, order):
    # The product has more values than are remembered, and the row numbers are out of order.
    parts = [
        TableEncoder().fit(TABLE[start:stop])
        for start, stop in zip([0, *cuts], [*cuts, N_ROWS], strict=True)
        if stop > start
    ]
    found, whole = merged(parts, order), TableEncoder().fit(TABLE)
    assert found.n_samples_seen_ == N_ROWS
    for name, column in whole.summaries.items():
        other = found.summaries[name]
        assert (other.kind, other.n_rows, other.n_missing) == (
            column.kind,
            column.n_rows,
            column.n_missing,
        )
        for mine, theirs in zip(other.numbers, column.numbers, strict=True):
            np.testing.assert_allclose(mine.mean, theirs.mean, rtol=1e-12, atol=1e-12)
            wanted = theirs.deviation(N_ROWS)
            np.testing.assert_allclose(mine.deviation(N_ROWS), wanted, rtol=1e-10, atol=1e-300)
        if column.text is not None:
            exact = TABLE[name].cast(pa.string()).value_counts()
            assert_within(
                other.text.values(), {v["values"]: v["counts"] for v in exact.to_pylist()}
            )
    for name in ("row", "unit", "release", "nothing", "customer"):
        assert found.columns_[name] == whole.columns_[name]
    exact_columns = ["power", "city", "tier", "churn", "seen_at", "signed_up"]
    for name in exact_columns:
        assert found.columns_[name] == whole.columns_[name]


def assert_within(values, exact):
    """Check counts of values against the exact ones."""
    exact.pop(None, None)
    for value, count in exact.items():
        assert count - values.error <= values.counts.get(value, 0) <= count
    assert set(values.counts) <= set(exact)
    # Below the size of the sample the number of values is exact.
    assert values.n_distinct == len(exact)
    assert values.all_differ == (max(exact.values()) == 1)


def test_merged_rows_are_encoded_as_those_of_one_run():
    parts = [TableEncoder().fit(TABLE[i : i + 100]) for i in range(0, N_ROWS, 100)]
    few = ["power", "city", "seen_at", "price", "active", "rating"]
    one = TableEncoder().fit(TABLE)
    found = merged(parts, [])
    names = one.get_feature_names_out().tolist()
    places = [i for i, n in enumerate(names) if n.startswith(tuple(few))]
    others = [found.get_feature_names_out().tolist().index(names[i]) for i in places]
    np.testing.assert_allclose(
        dense(found.transform(TABLE))[:, others],
        dense(one.transform(TABLE))[:, places],
        rtol=1e-10,
        atol=1e-12,
    )


def test_what_does_not_merge():
    one = TableEncoder().fit(TABLE)
    for other in (
        TableEncoder().fit(TABLE.drop(["price"])),
        TableEncoder().fit(TABLE.set_column(2, "power", TABLE["city"])),
        TableEncoder().fit(np.ones((3, 2))),
        sksketch.StreamingPCA(1).fit(np.eye(3)),
    ):
        before = bits(one), bits(other)
        with pytest.raises((NotMergeableError, ValueError)):
            one.merge(other)
        assert (bits(one), bits(other)) == before


def test_a_merged_part_may_have_only_holes():
    late = pa.table({"a": pa.array([1.0, 2.0, 4.0]), "t": ["x", "y", "x"], "d": [None] * 3})
    early = pa.table({"a": pa.nulls(2), "t": pa.nulls(2), "d": pa.array([1, 2])})
    for first, second in ((early, late), (late, early)):
        found = TableEncoder().fit(first).merge(TableEncoder().fit(second))
        whole = TableEncoder().partial_fit(first).partial_fit(second)
        assert found.columns_ == whole.columns_
        assert found.n_samples_seen_ == 5
        rows = found.transform(late)
        assert rows.shape == (3, found.n_features_out_)
