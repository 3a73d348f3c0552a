"""`TableEncoder` against scikit-learn and pandas in memory, for every kind of column and table."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from _support import messy
from sksketch import TableEncoder, load

# The roundings of sums over some hundred rows.
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


@pytest.fixture(scope="module")
def table():
    return messy.messy_table()


@pytest.fixture(scope="module")
def expected(table):
    return messy.expected(table)


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else np.asarray(rows)


def named(encoder, table):
    """Return the rows that an encoder makes, with names."""
    rows = dense(encoder.transform(table))
    return pd.DataFrame(rows, columns=encoder.get_feature_names_out())


def assert_equal_frames(found, wanted):
    assert sorted(found) == sorted(wanted)
    np.testing.assert_allclose(found, wanted[found.columns], **CLOSE)


def test_every_kind_of_column_as_in_memory(table, expected):
    encoder = TableEncoder().fit(table)
    assert_equal_frames(named(encoder, table), expected)
    for name, why in messy.DROPPED.items():
        assert encoder.columns_[name].kind == "dropped"
        assert encoder.columns_[name].features == ()
        assert why in str(encoder.columns_[name])
    assert encoder.n_features_out_ == expected.shape[1]
    assert encoder.n_samples_seen_ == len(table)
    assert encoder.n_features_in_ == table.num_columns
    assert encoder.feature_names_in_.tolist() == table.column_names
    assert list(encoder.columns_) == table.column_names
    assert encoder.columns_["city"].kind == "categories"
    assert encoder.columns_["seen_at"].kind == "date"
    assert encoder.columns_["active"].kind == "boolean"


@pytest.mark.parametrize("most", [2, 3, 10])
def test_few_categories_as_in_memory(table, most):
    encoder = TableEncoder(max_categories=most).fit(table)
    found = named(encoder, table)
    wanted = messy.expected(table, most)
    names = [n for n in wanted if n.startswith(("city=", "product="))]
    np.testing.assert_allclose(found[names], wanted[names], **CLOSE)
    for name in ("city", "product", "tier"):
        assert len(encoder.columns_[name].features) <= most
    assert "product=(other)" in found


def test_one_category_is_none(table):
    encoder = TableEncoder(max_categories=1).fit(table.select(["city", "price"]))
    assert encoder.get_feature_names_out().tolist() == ["price"]
    assert "none of them frequent" in str(encoder.columns_["city"])


def test_ties_and_unknown_names_are_those_of_scikit_learn():
    learned = np.array(["a", "b", None, "c", "c", "b", "d", "e"], dtype=object)[:, None]
    new = np.array(["c", "zz", None, "d"], dtype=object)[:, None]
    # With exactly as many columns as values scikit-learn still puts one value among the others.
    for most in (2, 3, 4, 5, 7):
        theirs = OneHotEncoder(
            max_categories=most, sparse_output=False, handle_unknown="infrequent_if_exist"
        ).fit(learned)
        ours = TableEncoder(max_categories=most).fit(learned)
        for rows in (learned, new):
            found, wanted = (dense(one.transform(rows)) for one in (ours, theirs))
            # Columns come in the order of their counts, and not of the alphabet.
            assert sorted(found.T.tolist()) == sorted(wanted.T.tolist())
    assert len(TableEncoder(max_categories=6).fit(learned).columns_["x0"].features) == 6


def test_numbers_as_they_are_with_holes_filled(table):
    encoder = TableEncoder(numeric="passthrough").fit(table)
    found = named(encoder, table)
    frame = table.to_pandas()
    frame["single"] = frame["single"].astype(float)
    for name in (*messy.NUMBERS, messy.OFTEN_MISSING):
        np.testing.assert_allclose(found[name], frame[name].fillna(frame[name].mean()), rtol=1e-12)
    parts = messy.date_parts(frame[messy.DATES])
    for name in parts:
        wanted = parts[name].fillna(parts[name].mean())
        np.testing.assert_allclose(found[name], wanted, rtol=1e-12)


def test_an_indicator_for_every_column_with_holes(table):
    encoder = TableEncoder(missing="indicator").fit(table)
    found, frame = named(encoder, table), table.to_pandas()
    holed = [*messy.NUMBERS, messy.OFTEN_MISSING, "active", *messy.DATES]
    for name in holed:
        there = f"{name}=(missing)" in found
        assert there == frame[name].isna().any(), name
        if there:
            np.testing.assert_array_equal(found[f"{name}=(missing)"], frame[name].isna())


def test_texts_and_dates_can_be_left_out(table, expected):
    encoder = TableEncoder(text="drop", dates="drop").fit(table)
    rest = [n for n in expected if "#" not in n and ":" not in n]
    assert_equal_frames(named(encoder, table), expected[rest])
    assert isinstance(encoder.transform(table), np.ndarray)
    assert "not wanted" in str(encoder.columns_["note"])
    assert "not wanted" in str(encoder.columns_["signed_up"])


def test_wide_rows_are_sparse_and_equal_to_dense_ones(table):
    encoder = TableEncoder().fit(table)
    rows = encoder.transform(table)
    assert rows.format == "csr"
    assert rows.has_sorted_indices
    parts = [encoder.transform(table[i : i + 77]).toarray() for i in range(0, len(table), 77)]
    np.testing.assert_array_equal(rows.toarray(), np.concatenate(parts))
    np.testing.assert_array_equal(
        rows.toarray(),
        dense_rows(encoder, table),
    )


def dense_rows(encoder, table):
    used = [one for one in encoder._encodings if one.plan.features]
    return encoder._dense(used, encoder._cells(table.select(encoder.columns_used())), len(table))


def as_polars(table):
    return pl.from_arrow(table)


def as_batch(table):
    return table.combine_chunks().to_batches()[0]


def with_other_dictionaries(table):
    """Return a table whose chunks have dictionaries of their own."""
    tier = table.schema.get_field_index("tier")
    plain = table.set_column(tier, "tier", table["tier"].cast(pa.string()))
    parts = [plain[:100], plain[100:101], plain[101:]]
    coded = [part["tier"].combine_chunks().dictionary_encode() for part in parts]
    return pa.concat_tables(
        [
            part.set_column(tier, "tier", code.chunk(0) if hasattr(code, "chunk") else code)
            for part, code in zip(parts, coded, strict=True)
        ]
    )


def with_views(table):
    """Return a table with texts of other types."""
    types = {"city": pa.string_view(), "note": pa.large_string()}
    return table.cast(
        pa.schema([(f.name, types.get(f.name, f.type)) for f in table.schema]), safe=False
    )


FORMS = {
    "pandas": lambda table: table.to_pandas(),
    "pandas with its own types": messy.as_frame,
    "polars": as_polars,
    "record batch": as_batch,
    "other dictionaries": with_other_dictionaries,
    "other texts": with_views,
    "slice": lambda table: pa.concat_tables([table[:5], table])[5:],
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_from_every_library(table, form):
    given = FORMS[form](table)
    encoder = TableEncoder().fit(given)
    reference = TableEncoder().fit(table)
    assert encoder.get_feature_names_out().tolist() == reference.get_feature_names_out().tolist()
    assert dict(encoder.columns_) == dict(reference.columns_)
    np.testing.assert_array_equal(
        dense(encoder.transform(given)), dense(reference.transform(table))
    )
    # And learned from one kind, for another.
    np.testing.assert_array_equal(
        dense(reference.transform(given)), dense(reference.transform(table))
    )


def test_arrays_have_numbered_columns():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)) * [1.0, 1e6, 1e-6]
    X[3, 1] = np.nan
    encoder = TableEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    assert not hasattr(encoder, "feature_names_in_")
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    wanted = (filled - filled.mean(axis=0)) / filled.std(axis=0)
    np.testing.assert_allclose(encoder.transform(X), wanted, **CLOSE)
    words = np.array([["a", "1"], ["b", "2"], ["a", "3"]])
    found = TableEncoder().fit(words).get_feature_names_out().tolist()
    assert found == ["x0=a", "x0=b", "x1=3", "x1=2", "x1=1"]


def test_output_as_frames(table):
    few = table.select(["power", "city", "seen_at"])
    encoder = TableEncoder().set_output(transform="pandas").fit(few)
    frame = encoder.transform(few.to_pandas())
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == encoder.get_feature_names_out().tolist()
    np.testing.assert_array_equal(frame, TableEncoder().fit(few).transform(few))


def test_columns_in_another_order_and_further_ones(table):
    encoder = TableEncoder().fit(table)
    rows = dense(encoder.transform(table))
    turned = table.select(table.column_names[::-1]).append_column("more", table["city"])
    np.testing.assert_array_equal(dense(encoder.transform(turned)), rows)


def test_times_durations_and_decimals_are_numbers():
    table = pa.table(
        {
            "time": pa.array([datetime.time(6), datetime.time(18, 30), None]),
            "span": pa.array([datetime.timedelta(hours=1), None, datetime.timedelta(hours=3)]),
            "money": pa.array(["1.50", "2.50", "9.00"]).cast(pa.decimal128(10, 2)),
            "list": pa.array([[1], [2], [3]]),
        }
    )
    encoder = TableEncoder(numeric="passthrough").fit(table)
    found = named(encoder, table)
    assert found["time"].tolist() == [6.0, 18.5, 12.25]
    assert found["span"].tolist() == [3600.0, 7200.0, 10800.0]
    assert found["money"].tolist() == [1.5, 2.5, 9.0]
    assert "lists and structures" in str(encoder.columns_["list"])


def test_times_of_a_zone_are_those_of_its_clocks():
    moments = pd.Series(pd.date_range("2024-03-30", periods=50, freq="h", tz="Europe/Rome"))
    frame = pd.DataFrame({"when": moments})
    found = named(TableEncoder(numeric="passthrough").fit(frame), frame)
    np.testing.assert_array_equal(found["when:hour"], moments.dt.hour)
    np.testing.assert_array_equal(found["when:weekday"], moments.dt.day_of_week)


@parametrize_with_checks([TableEncoder()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_columns_that_were_dropped_may_be_missing(table):
    encoder = TableEncoder(text="drop").fit(table)
    used = encoder.columns_used()
    assert used == [name for name in table.column_names if encoder.columns_[name].features]
    assert set(used) < set(table.column_names)
    np.testing.assert_array_equal(encoder.transform(table.select(used)), encoder.transform(table))
    with pytest.raises(ValueError, match=f"columns are missing: '{used[0]}'"):
        encoder.transform(table.select(used[1:]))


def test_numbers_written_otherwise_are_named():
    comma = pa.array([f"{i},5" for i in range(20)] * 3)
    marked = pa.array([f"{i}.5" for i in range(29)] + ["n.a.", None] + [str(i) for i in range(29)])
    codes = pa.array([f"{8000 + i % 9}" for i in range(60)])
    encoder = TableEncoder().fit(pa.table({"comma": comma, "marked": marked[:60], "zip": codes}))
    words = encoder.columns_
    assert 'read them with decimal ","' in words["comma"].text
    assert "but for 'n.a.': read it as missing" in words["marked"].text
    assert words["zip"].text == "9 categories"


def test_dates_of_files_of_text_and_of_arrow_are_the_same():
    moments = pd.date_range("2026-01-01", periods=300, freq="7h")
    dates = pd.DataFrame({"when": moments, "a": np.arange(300.0)})
    texts = dates.assign(when=dates["when"].dt.strftime("%Y-%m-%d %H:%M:%S"))
    for learned, other in ((dates, texts), (texts, dates)):
        encoder = TableEncoder().fit(learned)
        assert encoder.columns_["when"].kind == "date"
        np.testing.assert_array_equal(encoder.transform(other), encoder.transform(learned))
    with pytest.raises(ValueError, match="of the kind 'text' here and was 'date' before"):
        TableEncoder().fit(dates).transform(texts.assign(when="soon"))


@pytest.mark.parametrize("most", [50, 3])
def test_a_reference_has_no_column(most, tmp_path):
    names = np.repeat(["b", "a", "c", "d"], [50, 30, 15, 5])
    table = pd.DataFrame({"name": names, "hole": np.where(names == "a", None, names)})
    plain = TableEncoder(max_categories=most).fit(table)
    encoder = TableEncoder(max_categories=most, reference=True).fit(table[:60])
    encoder.merge(TableEncoder(max_categories=most, reference=True).fit(table[60:]))
    encoder.save(tmp_path / "encoder.sks")
    encoder = load(tmp_path / "encoder.sks")
    kept = [name for name in plain.get_feature_names_out() if not name.endswith("=b")]
    assert encoder.get_feature_names_out().tolist() == kept
    assert "'b' is the reference" in encoder.columns_["name"].text
    unknown = pd.DataFrame({"name": ["z", "b"], "hole": ["z", None]})
    for rows in (table, unknown):
        columns = [i for i, one in enumerate(plain.get_feature_names_out()) if one in kept]
        expected = np.asarray(plain.transform(rows))[:, columns]
        np.testing.assert_array_equal(encoder.transform(rows), expected)
