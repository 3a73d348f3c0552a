"""Later passes over tables in files: only what the encoder has kept is read again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from sklearn.pipeline import make_pipeline

from _support import messy
from sksketch import StreamingPCA, TableEncoder, fit_stream, open_rows
from sksketch.models.pipelines.plain_states import state_of
from sksketch.state.persistence import to_bytes

N_ROWS = 500
TABLE = messy.messy_table(N_ROWS, seed=3)


def bits(pipeline):
    return to_bytes(state_of(pipeline))


@pytest.mark.parametrize("pilot", [None, 130])
def test_a_table_in_files_is_read_again_without_what_was_dropped(tmp_path, pilot, monkeypatch):
    for i in range(0, N_ROWS, 170):
        parquet.write_table(TABLE[i : i + 170], tmp_path / f"{i:03}.parquet", row_group_size=60)
    read = []
    groups = parquet.ParquetFile.read_row_groups

    def spied(self, row_groups, columns=None, **options):
        read.append(set(columns))
        return groups(self, row_groups, columns=columns, **options)

    monkeypatch.setattr(parquet.ParquetFile, "read_row_groups", spied)
    pipeline = make_pipeline(TableEncoder(text="drop"), StreamingPCA(4))
    fit_stream(pipeline, tmp_path, pilot=pilot, progress=False)
    encoder = pipeline[0]
    dropped = {name for name, plan in encoder.columns_.items() if not plan.features}
    passes = [bool(columns & dropped) for columns in read]
    assert passes == sorted(passes, reverse=True)
    assert passes[0]
    assert not passes[-1]
    expected = make_pipeline(TableEncoder(text="drop"), StreamingPCA(4))
    fit_stream(expected, TABLE, pilot=pilot, progress=False)
    assert bits(pipeline) == bits(expected)


def test_which_rows_are_dropped_is_decided_by_all_columns(tmp_path):
    ids = [None if i % 5 == 0 else f"row {i}" for i in range(N_ROWS)]
    table = pa.table({"a": np.arange(N_ROWS) % 7, "b": np.arange(N_ROWS) % 11, "id": pa.array(ids)})
    parquet.write_table(table, tmp_path / "rows.parquet")
    pipeline = make_pipeline(TableEncoder(max_categories=5), StreamingPCA(2))
    rows = open_rows(tmp_path / "rows.parquet", raw=True, missing="drop")
    fit_stream(pipeline, rows, progress=False)
    assert not pipeline[0].columns_["id"].features
    assert pipeline[-1].n_samples_seen_ == pipeline[0].n_samples_seen_ == 4 * N_ROWS // 5
