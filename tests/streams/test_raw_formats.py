"""Tables as they are, for encoders, from every format and source of tables."""

import json

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.feather
import pyarrow.orc
import pytest

from sksketch import open_rows

FRAME = pd.DataFrame(
    {"a": np.arange(20.0), "t": ["x", "y", None, "z"] * 5, "label": ["no", "yes"] * 10}
)
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)


def feather(folder):
    pyarrow.feather.write_feather(TABLE, folder / "x.feather", chunksize=6)
    return folder / "x.feather"


def orc(folder):
    pyarrow.orc.write_table(TABLE, folder / "x.orc")
    return folder / "x.orc"


def json_lines(folder):
    (folder / "x.jsonl").write_text("\n".join(json.dumps(row) for row in TABLE.to_pylist()))
    return folder / "x.jsonl"


def csv(folder):
    FRAME.to_csv(folder / "x.csv", index=False, sep=";", decimal=",")
    return folder / "x.csv"


def hive(folder):
    for start in range(20):
        row = FRAME[start : start + 1]
        place = folder / f"n={start:02}" / f"label={row['label'].item()}"
        place.mkdir(parents=True)
        row[["a", "t"]].to_parquet(place / "x.parquet")
    return folder


SOURCES = {
    "feather": feather,
    "orc": orc,
    "jsonl": json_lines,
    "csv": csv,
    "hive": hive,
    "lazy frame": lambda folder: pl.from_arrow(TABLE).lazy(),
    "relation": lambda folder: duckdb.connect().from_arrow(TABLE),
    "dataset": lambda folder: pds.dataset(TABLE),
    "dicts": lambda folder: TABLE.to_pylist(),
}


@pytest.mark.parametrize("name", SOURCES)
def test_columns_of_any_type_and_names_of_classes(tmp_path, name):
    options = {"decimal": ","} if name == "csv" else {}
    source = open_rows(
        SOURCES[name](tmp_path), columns=["a", "t"], target="label", raw=True, **options
    )
    for start in (0, 7):
        blocks = list(source.blocks(start))
        table = pa.concat_tables([block.X for block in blocks], promote_options="permissive")
        assert table["a"].to_pylist() == FRAME["a"].tolist()[start:]
        assert table["t"].to_pylist() == TABLE["t"].to_pylist()[start:]
        assert [y for block in blocks for y in block.y] == FRAME["label"].tolist()[start:]
    assert set(np.concatenate(list(source.targets()))) == {"no", "yes"}
