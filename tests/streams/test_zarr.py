"""Zarr stores, dense and as AnnData lays them out."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from sksketch import SourceError, open_rows

GENES = ["BRCA1", "TP53", "MYC", "EGFR"]
COUNTS = sp.random_array((60, 4), density=0.4, format="csr", rng=0)


def annotated(path, X=COUNTS, fmt=2):
    """Write what AnnData writes, without AnnData."""
    root = zarr.open_group(path, mode="w", zarr_format=fmt)
    root.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
    if sp.issparse(X):
        group = root.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "shape": list(X.shape)})
        for name in ("data", "indices", "indptr"):
            group.create_array(name, data=getattr(X, name), chunks=(16,))
    else:
        root.create_array("X", data=X, chunks=(9, 4))
    var = root.create_group("var")
    var.attrs.update({"encoding-type": "dataframe", "_index": "gene"})
    var.create_array("gene", data=np.array(GENES, dtype="<U8"))
    obs = root.create_group("obs")
    obs.create_array("age", data=np.arange(60.0))
    obs.create_array("batch", data=np.array(["x"] * 60, dtype="<U1"))
    return path


def gather(source, start_row=0):
    X, y = zip(*source.blocks(start_row), strict=True)
    stacked = sp.vstack(X).toarray() if sp.issparse(X[0]) else np.concatenate(X)
    return stacked, None if y[0] is None else np.concatenate(y)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return annotated(tmp_path_factory.mktemp("zarr") / "cells.zarr")


def test_annotated_sparse_rows_stay_sparse(store):
    source = open_rows(store, target="age")
    assert source.feature_names == GENES
    assert (source.n_rows, source.n_features, source.target_names) == (60, 4, ["age"])
    assert sp.issparse(next(source.blocks()).X)
    X, y = gather(source)
    np.testing.assert_array_equal(X, COUNTS.toarray())
    np.testing.assert_array_equal(y, np.arange(60.0))
    X, _ = gather(open_rows(store, columns=["MYC", "BRCA1"]))
    np.testing.assert_array_equal(X, COUNTS.toarray()[:, [2, 0]])


@settings(max_examples=15)
@given(start=st.integers(0, 59), batch_rows=st.integers(1, 60))
def test_reading_goes_on_after_any_row(store, start, batch_rows):
    X, _ = gather(open_rows(store, batch_rows=batch_rows), start)
    np.testing.assert_array_equal(X, COUNTS.toarray()[start:])


def test_a_csr_group_alone_and_dense_rows(store, tmp_path):
    np.testing.assert_array_equal(gather(open_rows(store / "X"))[0], COUNTS.toarray())
    dense = annotated(tmp_path / "dense.zarr", COUNTS.toarray())
    source = open_rows(dense)
    assert source.feature_names == GENES
    np.testing.assert_array_equal(gather(source, 7)[0], COUNTS.toarray()[7:])
    rows = zarr.open(dense, mode="r")["X"]
    np.testing.assert_array_equal(gather(open_rows(rows, target=[0]))[1], COUNTS.toarray()[:, [0]])


def test_blocks_follow_the_chunks(tmp_path):
    path = tmp_path / "rows.zarr"
    zarr.create_array(path, data=np.zeros((5000, 1000), np.float32), chunks=(700, 500))
    sizes = [len(block.X) for block in open_rows(path).blocks()]
    assert sizes == [1400, 1400, 1400, 800]


def test_a_user_mistake_is_explained(store, tmp_path):
    zarr.create_array(tmp_path / "line.zarr", data=np.zeros(9))
    zarr.open_group(tmp_path / "empty.zarr", mode="w")
    (tmp_path / "void.zarr").mkdir()
    broken = COUNTS.copy()
    broken.indices[40] = 9
    annotated(tmp_path / "broken.zarr", broken)
    for path, options, message in (
        (tmp_path / "line.zarr", {}, "line.zarr: holds float64 of shape"),
        (tmp_path / "empty.zarr", {}, "empty.zarr: expected an array, a CSR group"),
        (tmp_path / "void.zarr", {}, "void.zarr: not a Zarr store"),
        (tmp_path / "broken.zarr", {}, "broken.zarr, rows 0 to 60: broken sparse rows"),
        (store, {"columns": ["nope"]}, "no column 'nope'; it has BRCA1"),
        (store, {"target": "nope"}, "no target 'nope'"),
        (store, {"target": "batch"}, "target 'batch' is not numeric"),
        ([store, store], {}, "open one Zarr store at a time"),
    ):
        with pytest.raises(SourceError, match=message) as caught:
            list(open_rows(path, **options).blocks())
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("victim", ["X", "var/gene", "obs/age"])
@pytest.mark.parametrize("where", ["filters", "compressor"])
def test_a_store_that_would_run_code_is_refused(tmp_path, victim, where):
    path = annotated(tmp_path / "cells.zarr", X=np.ones((60, 4)))
    described = path / victim / ".zarray"
    facts = json.loads(described.read_text())
    pickled = {"id": "pickle", "protocol": 5}
    text = victim == "var/gene"
    facts["dtype"] = "|O" if text else facts["dtype"]
    facts["filters"] = [{"id": "vlen-utf8"}] if text else None
    if where == "filters":
        # zarr takes the first filter for the type, and decodes by all of them.
        facts["filters"] = [*(facts["filters"] or []), pickled]
    else:
        facts["compressor"] = pickled
    described.write_text(json.dumps(facts))
    mark = tmp_path / "mark"
    bomb = f"cposix\nsystem\n(S'touch {mark}'\ntR.".encode()
    for chunk in (path / victim).iterdir():
        if not chunk.name.startswith("."):
            chunk.write_bytes(bomb)
    with pytest.raises(SourceError, match=r"cells\.zarr: .*(is pickled|not a Zarr store)"):
        list(open_rows(path, target="age").blocks())
    assert not mark.exists()
