"""An infinite value is named as a missing one is: file, line and column."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from sksketch import SourceError, StreamingPCA, fit_stream, open_rows


def refused(source, message, **options):
    with pytest.raises(SourceError, match=message) as caught:
        list(open_rows(source, **options).blocks())
    return caught.value


@pytest.mark.parametrize("missing", ["error", "mean", "drop"])
def test_csv(tmp_path, missing):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n3,-inf\n5,\n")
    error = refused(path, "rows.csv, line 3: infinite value in column 'b'", missing=missing)
    assert error.column == "b"
    with pytest.raises(SourceError, match="line 3: infinite value in column 'b'"):
        fit_stream(StreamingPCA(1), path, progress=False)


def test_parquet_targets_and_arrays(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": [0.0, np.inf]}), path)
    refused(
        path, "rows.parquet, row group 0, row 1 of it: infinite value in target 'y'", target="y"
    )
    refused(np.array([[1.0, np.inf], [-np.inf, 1.0]]), "the array, row 0: infinite value in column")
    refused(
        sp.csr_array([[0.0, 0.0], [0.0, np.inf]]), "row 1: infinite value in column 1 of sparse"
    )


def test_a_sum_that_overflows_is_not_infinite():
    X = np.full((3, 2), 1e308)
    assert [len(block.X) for block in open_rows(X).blocks()] == [3]
