"""Frequent and distinct values of a stream: their bounds against exact counts, after any merges."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sksketch.tables.distinct import DistinctValues
from sksketch.tables.frequent import FrequentValues
from sksketch.tables.numbers import NumberSummary
from sksketch.tables.texts import MOST_VALUES, TILE_ROWS, TextSummary, hashes_of

WORDS = st.lists(st.text("abc", max_size=3), max_size=60)
STREAMS = st.lists(WORDS, min_size=1, max_size=6)


def counted(words, capacity):
    values = FrequentValues(capacity)
    for word in words:
        values.add([(word, 1)])
    return values


@given(streams=STREAMS, capacity=st.integers(1, 8), order=st.randoms(use_true_random=False))
def test_counts_of_frequent_values_are_within_their_bound(streams, capacity, order):
    parts = [counted(words, capacity) for words in streams]
    while len(parts) > 1:
        order.shuffle(parts)
        other = parts.pop()
        before = dict(other.counts), other.error
        parts[0].merge(other)
        assert (other.counts, other.error) == before
    (found,) = parts
    exact = Counter(word for words in streams for word in words)
    n = sum(exact.values())
    assert found.error <= n / (capacity + 1)
    assert len(found.counts) <= capacity
    for word, count in exact.items():
        assert count - found.error <= found.counts.get(word, 0) <= count
    if len(exact) <= capacity:
        assert found.counts == exact
        assert found.error == 0


@given(
    parts=st.lists(st.lists(st.integers(0, 60), max_size=50), min_size=1, max_size=5),
    size=st.sampled_from([8, 64]),
)
def test_distinct_values_and_repeats(parts, size):
    hashes = np.random.default_rng(0).integers(0, 2**64, 61, dtype=np.uint64)
    merged, whole = DistinctValues(size), DistinctValues(size)
    for part in parts:
        one = DistinctValues(size)
        one.add(hashes[np.array(part, dtype=int)])
        whole.add(hashes[np.array(part, dtype=int)])
        merged.merge(one)
    exact = Counter(value for part in parts for value in part)
    np.testing.assert_array_equal(merged.hashes, whole.hashes)
    np.testing.assert_array_equal(merged.counts, whole.counts)
    smallest = sorted((int(hashes[value]), n) for value, n in exact.items())[:size]
    # A value of the sample is counted whenever it comes, whatever else did.
    assert list(zip(whole.hashes.tolist(), whole.counts.tolist(), strict=True)) == smallest
    assert whole.repeats == any(n > 1 for _, n in smallest)
    if len(exact) < size:
        assert whole.estimate == len(exact)


def test_the_number_of_many_values_is_as_close_as_the_sample_is_large():
    for seed in range(5):
        values = DistinctValues()
        rng = np.random.default_rng(seed)
        hashes = rng.integers(0, 2**64, 300_000, dtype=np.uint64)
        for start in range(0, len(hashes), 50_000):
            values.add(hashes[start : start + 50_000])
            values.add(hashes[start : start + 1_000])
        # Four standard deviations.
        assert abs(values.estimate / len(hashes) - 1.0) < 4.0 * 4096**-0.5
        assert values.repeats


def test_names_beyond_those_remembered():
    rng = np.random.default_rng(0)
    ranks = rng.zipf(1.3, 60_000)
    names = pa.array([f"n{rank}" for rank in ranks], pa.large_string())
    exact = Counter(names.to_pylist())
    assert len(exact) > MOST_VALUES
    text = TextSummary()
    for start in range(0, len(names), TILE_ROWS):
        text.add(names[start : start + TILE_ROWS], start)
        text.end_tile()
    values = text.values()
    assert values.error <= len(names) / (MOST_VALUES + 1)
    for name, count in exact.most_common(50):
        assert count - values.error <= values.counts[name] <= count
    assert abs(values.n_distinct / len(exact) - 1.0) < 4.0 * 4096**-0.5
    assert not values.all_differ
    assert values.n_words == 1.0


def test_identifiers_of_any_number_are_told():
    names = pa.array([f"id {i}" for i in range(3 * TILE_ROWS)], pa.large_string())
    text = TextSummary()
    for start in range(0, len(names), TILE_ROWS):
        text.add(names[start : start + TILE_ROWS], start)
        text.end_tile()
    values = text.values()
    assert values.all_differ
    assert values.n_words == 2.0
    assert len(values.counts) <= MOST_VALUES
    # One of them once more, and in a sample of them it is seen to repeat.
    text.add(names, 0)
    assert not text.values().all_differ


def test_hashes_are_of_the_text_and_not_of_its_place():
    texts = pa.array(["b", None, "longer than eight bytes", "", "b", "é é"], pa.large_string())
    hashes, n_spaces = hashes_of(texts)
    again, _ = hashes_of(pa.concat_arrays([texts[3:], texts])[3:])
    np.testing.assert_array_equal(hashes, again)
    np.testing.assert_array_equal(hashes[2:], hashes_of(texts[3:])[0])
    assert n_spaces == 4
    assert hashes[0] == hashes[3]
    assert len(set(hashes.tolist())) == 4


NUMBERS = st.lists(
    st.one_of(st.floats(-1e6, 1e6), st.integers(-5, 5).map(float), st.just(np.nan)), max_size=40
)


@given(parts=st.lists(NUMBERS, min_size=1, max_size=5), shift=st.sampled_from([0.0, 1e7]))
def test_numbers_in_parts(parts, shift):
    merged, at, streamed = NumberSummary(), 0, NumberSummary()
    for part in parts:
        values = np.array(part, dtype=float) + shift
        one = NumberSummary()
        assert one.add(values, 0) == -1
        merged.merge(one)
        streamed.add(values, at)
        at += len(values)
    values = np.array([x for part in parts for x in part], dtype=float) + shift
    known = values[~np.isnan(values)]
    for found in (merged, streamed):
        assert found.n_known == len(known)
        if len(known):
            scale = np.abs(known).max() + 1e-300
            assert abs(found.mean - known.mean()) <= 1e-12 * scale
            assert abs(found.deviation(len(known)) - known.std()) <= 1e-7 * scale
            assert (found.low, found.high) == (known.min(), known.max())
            assert found.is_constant == (len(set(known.tolist())) == 1)


@given(start=st.integers(-1000, 10**9), n=st.integers(3, 200), seed=st.integers(0, 99))
def test_row_numbers_are_told_in_any_order(start, n, seed):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.arange(start, start + n)).astype(float)
    numbers = NumberSummary()
    numbers.add(rows, 0)
    assert numbers.counts_rows
    other = rows.copy()
    other[rng.integers(n)] += 1.0
    numbers = NumberSummary()
    numbers.add(other, 0)
    assert not numbers.counts_rows
