"""What `TableEncoder` refuses: one clear error, and nothing changed."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

from _support import messy
from sksketch import StateFormatError, TableEncoder, load
from sksketch.state.persistence import to_bytes

TABLE = messy.messy_table(120, seed=2)
MIXED = pd.DataFrame({"a": ["x", 1, 2.5, None]})


def replaced(name, values):
    return TABLE.set_column(TABLE.schema.get_field_index(name), name, values)


def endless(name="ratio"):
    values = TABLE[name].to_numpy().copy()
    values[17] = -np.inf
    return replaced(name, pa.array(values))


BAD_BLOCKS = {
    "infinite": (endless(), "column 'ratio' holds an infinite value, first in row 17"),
    "text for a number": (replaced("power", TABLE["city"]), "'power' is of the kind 'text'"),
    "number for a text": (replaced("city", TABLE["power"]), "'city' is of the kind 'number'"),
    "date for a number": (replaced("count", TABLE["birthday"]), "'count' is of the kind 'date'"),
    "lost column": (TABLE.drop(["city"]), "columns are missing: 'city'"),
    "no rows": (TABLE[:0], "no rows"),
    "same names": (TABLE.append_column("city", TABLE["city"]), "same name"),
    "one row of numbers": (np.ones(3), "1-D"),
    "array of another width": (np.ones((3, 2)), "X has 2 features"),
}


@pytest.mark.parametrize("what", BAD_BLOCKS)
def test_bad_blocks_change_nothing(what):
    block, message = BAD_BLOCKS[what]
    encoder = TableEncoder().fit(TABLE)
    before, answers = to_bytes(encoder.state()), encoder.transform(TABLE[:9]).toarray()
    with pytest.raises(ValueError, match=message):
        encoder.partial_fit(block)
    assert to_bytes(encoder.state()) == before
    if what != "no rows":
        with pytest.raises(ValueError, match=message):
            encoder.transform(block)
    np.testing.assert_array_equal(encoder.transform(TABLE[:9]).toarray(), answers)


def test_a_new_column_is_refused_where_it_would_be_learned():
    encoder = TableEncoder().fit(TABLE)
    with pytest.raises(ValueError, match="the column 'new', which was not there before"):
        encoder.partial_fit(TABLE.append_column("new", TABLE["city"]))
    assert encoder.n_samples_seen_ == 120


@pytest.mark.parametrize("what", ["infinite", "no rows", "same names", "one row of numbers"])
def test_a_refused_fit_leaves_nothing(what):
    block, message = BAD_BLOCKS[what]
    encoder = TableEncoder()
    before = dict(vars(encoder))
    for method in (encoder.fit, encoder.partial_fit):
        with pytest.raises(ValueError, match=message):
            method(block)
        assert vars(encoder) == before


@pytest.mark.parametrize("columns", [["ratio"], None], ids=["dense", "sparse"])
def test_infinite_numbers_are_named_by_their_column(columns):
    names = columns or TABLE.column_names
    encoder = TableEncoder().fit(TABLE.select(names))
    assert sp.issparse(encoder.transform(TABLE.select(names))) == (columns is None)
    with pytest.raises(ValueError, match="column 'ratio' holds an infinite value, first in row 17"):
        encoder.transform(endless().select(names))


def test_a_text_that_is_no_date_is_named_by_its_column():
    encoder = TableEncoder().fit(TABLE)
    for rest in (["soon"] * 120, ["2024-01-01"] * 119 + ["2024-02-30"]):
        with pytest.raises(ValueError, match="'signed_up'.* no date"):
            encoder.transform(replaced("signed_up", pa.array(rest)))


@pytest.mark.parametrize(
    "bad",
    [
        MIXED,
        MIXED.to_numpy(),
        np.array([[1.0, {"a": 1}], [2.0, 3.0]], dtype=object),
        np.ones((3, 2)) + 1j,
        np.ones((2, 2, 2)),
        np.empty((3, 0)),
    ],
    ids=["mixed frame", "mixed array", "objects", "complex", "3-D", "no columns"],
)
def test_what_is_no_table(bad):
    with pytest.raises(ValueError, match="type|omplex|3-D|0 feature"):
        TableEncoder().fit(bad)


def test_sparse_matrices_are_no_tables():
    for method in (TableEncoder().fit, TableEncoder().fit([[1.0], [2.0]]).transform):
        with pytest.raises(TypeError, match="sparse"):
            method(sp.csr_array(np.eye(3)))


def test_holes_can_be_refused():
    encoder = TableEncoder(missing="error")
    with pytest.raises(ValueError, match="'power' has no value in row"):
        encoder.fit(TABLE)
    whole = pa.Table.from_pandas(TABLE.drop(["nothing"]).to_pandas().dropna(), preserve_index=False)
    encoder.fit(whole)
    assert not any("missing" in str(plan) for plan in encoder.columns_.values())
    with pytest.raises(ValueError, match="'power' has no value in row"):
        encoder.transform(TABLE)


def test_a_table_of_which_nothing_is_left():
    table = TABLE.select(list(messy.DROPPED))
    encoder = TableEncoder().fit(table)
    for read in (lambda: encoder.columns_, lambda: encoder.transform(table)):
        with pytest.raises(ValueError, match="no column is left to learn from: 'row' dropped"):
            read()
    # More rows can make them useful.
    encoder.partial_fit(table.set_column(3, "release", pa.array(np.arange(120) * 7)))
    assert encoder.columns_["release"].kind == "number"


@pytest.mark.parametrize(
    "options", [{"numeric": "no"}, {"max_categories": 0}, {"missing": None}, {"text": 1}]
)
def test_parameters_that_mean_nothing(options):
    with pytest.raises(ValueError, match=f"^{next(iter(options))} is "):
        TableEncoder(**options).fit(TABLE)


def test_names_of_made_columns_are_all_different():
    table = pa.table({"a": ["b", "c", "(missing)", None], "a=b": [1.0, 2.0, 3.0, 5.0]})
    for most in (2, 3, 50):
        encoder = TableEncoder(max_categories=most).fit(table)
        names = encoder.get_feature_names_out().tolist()
        assert len(set(names)) == len(names) == encoder.transform(table).shape[1]


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "encoder.sks"
    TableEncoder().fit(TABLE).save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(whole), rng.integers(1, 4)):
            damaged[at] = rng.integers(256)
        path.write_bytes(bytes(damaged)[: rng.choice([len(whole), rng.integers(len(whole))])])
        try:
            encoder = load(path)
        except StateFormatError:
            continue
        # What nobody can tell from a true one answers, or refuses the rows.
        with suppress(ValueError, StateFormatError):
            encoder.transform(TABLE)
