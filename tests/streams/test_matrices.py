"""Matrices of science: HDF5, AnnData, xarray and NetCDF."""

import sys

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr

from sksketch import SourceError, StreamingPCA, fit_stream, open_rows

GENES = [f"gene{i}" for i in range(5)]
ROWS = sp.random_array((47, 5), density=0.4, rng=np.random.default_rng(0), format="csr").toarray()
AGES = (np.arange(47) % 7).astype(np.float64)
KINDS = np.array(["B", "T", "NK"])[np.arange(47) % 3]


def gather(blocks):
    X, y = zip(*blocks, strict=True)
    dense = [part.toarray() if sp.issparse(part) else np.asarray(part) for part in X]
    return np.concatenate(dense), None if y[0] is None else np.concatenate(y)


def matrix_to(parent, name, X, kind):
    """Write a matrix as the published layout of AnnData has it."""
    if kind == "dense":
        node = parent.create_dataset(name, data=X, chunks=(8, X.shape[1]))
        node.attrs["encoding-type"] = "array"
        return
    S = sp.csr_array(X) if kind == "csr" else sp.csc_array(X)
    node = parent.create_group(name)
    for part in ("data", "indices", "indptr"):
        node[part] = getattr(S, part)
    node.attrs["encoding-type"] = f"{kind}_matrix"
    node.attrs["encoding-version"] = "0.1.0"
    node.attrs["shape"] = np.array(S.shape)


def h5ad(path, kind):
    with h5py.File(path, "w") as opened:
        opened.attrs["encoding-type"] = "anndata"
        matrix_to(opened, "X", ROWS, kind)
        matrix_to(opened.create_group("layers"), "counts", 2.0 * ROWS, kind)
        obs, var = opened.create_group("obs"), opened.create_group("var")
        for frame, names in ((obs, [f"cell{i}" for i in range(47)]), (var, GENES)):
            frame.attrs["_index"] = "_index"
            frame["_index"] = names
        obs["age"] = AGES
        obs["lab"] = [f"lab {k}" for k in KINDS]
        kinds = obs.create_group("kind")
        kinds["categories"] = ["B", "NK", "T"]
        kinds["codes"] = np.array([["B", "NK", "T"].index(k) for k in KINDS], np.int8)


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_annotated_files(tmp_path, kind):
    path = tmp_path / "cells.h5ad"
    h5ad(path, kind)
    source = open_rows(path, target="age")
    assert (source.n_rows, source.n_features, source.n_targets) == (47, 5, 1)
    assert source.feature_names == GENES
    for start in (0, 0, 13):
        X, y = gather(source.blocks(start))
        np.testing.assert_array_equal(X, ROWS[start:])
        np.testing.assert_array_equal(y, AGES[start:])
    assert source.fingerprint() == open_rows(path, target="age").fingerprint()
    chosen = open_rows(path, key="layers/counts", columns=["gene3", 0], target="kind")
    X, y = gather(chosen.blocks())
    np.testing.assert_array_equal(X, 2.0 * ROWS[:, [3, 0]])
    assert y.tolist() == KINDS.tolist()
    assert gather(open_rows(path, target="lab").blocks())[1].tolist() == [f"lab {k}" for k in KINDS]
    assert fit_stream(StreamingPCA(2), path, progress=False).n_samples_seen_ == 47
    for options, message in (
        ({"key": "layers/x"}, "there is no 'layers/x'; it has X, layers/counts"),
        ({"target": "size"}, "cells.h5ad has no target 'size'; give an annotation in obs"),
        ({"columns": ["gene9"]}, "has no column 'gene9'"),
    ):
        if kind == "dense" or "key" not in options:
            with pytest.raises(SourceError, match=message):
                open_rows(path, **options)


def test_plain_hdf5(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as opened:
        opened["run/data"] = ROWS
        opened["run/times"] = np.arange(47.0)
    source = open_rows(path, target=4)
    X, y = gather(source.blocks(3))
    np.testing.assert_array_equal(np.column_stack([X, y]), ROWS[3:])
    assert gather(open_rows(path, target="run/times").blocks())[1].tolist() == list(range(47))
    with h5py.File(path, "a") as opened:
        opened["other"] = ROWS
    with pytest.raises(SourceError, match=r"x.h5: 2 matrices; pass key='other' or 'run/data'"):
        open_rows(path)
    np.testing.assert_array_equal(gather(open_rows(path, key="run/data").blocks())[0], ROWS)
    with pytest.raises(SourceError, match="run/times: holds float64 of shape"):
        open_rows(path, key="run/times")


def test_damaged_hdf5(tmp_path):
    path = tmp_path / "cells.h5ad"
    h5ad(path, "csr")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(SourceError, match="cells.h5ad: cut short, damaged or not HDF5"):
        open_rows(path)
    path.write_bytes(data)
    with h5py.File(path, "a") as opened:
        opened["X/indices"][7] = 99
    with pytest.raises(SourceError, match=r"cells.h5ad, /X, rows 0 to 47: the rows are damaged"):
        list(open_rows(path).blocks())
    with h5py.File(path, "w") as opened:
        opened["text"] = "nothing"
    with pytest.raises(SourceError, match="holds no 2-D dataset"):
        open_rows(path)


def test_without_h5py(tmp_path, monkeypatch):
    h5ad(tmp_path / "x.h5ad", "csr")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match="HDF5 files need h5py: pip install"):
        open_rows(tmp_path / "x.h5ad")


def test_a_layer_of_a_zarr_store(tmp_path):
    group = zarr.open_group(tmp_path / "x.zarr", mode="w")
    for name, X in (("X", ROWS), ("layers/counts", 2.0 * ROWS)):
        group.create_array(name, data=X)
    source = open_rows(tmp_path / "x.zarr", key="layers/counts")
    np.testing.assert_array_equal(gather(source.blocks())[0], 2.0 * ROWS)
    with pytest.raises(SourceError, match="has no 'raw'; it has X, layers"):
        open_rows(tmp_path / "x.zarr", key="raw")


# AnnData


class AnnData:
    """What is used of the class of that name, in memory."""

    is_view, filename, raw = False, None, None

    def __init__(self, X):
        self.X, self.layers, self.obsm = X, {"counts": 2.0 * X}, {}
        self.obs = pd.DataFrame({"age": AGES, "kind": pd.Categorical(KINDS)})
        self.var_names = pd.Index(GENES)


def check_annotated(data):
    source = open_rows(data, target="age", batch_rows=10)
    assert source.feature_names == GENES
    for start in (0, 13):
        X, y = gather(source.blocks(start))
        np.testing.assert_array_equal(X, ROWS[start:])
        np.testing.assert_array_equal(y, AGES[start:])
    X, y = gather(open_rows(data, key="layers/counts", target="kind").blocks())
    np.testing.assert_array_equal(X, 2.0 * ROWS)
    assert y.tolist() == KINDS.tolist()
    with pytest.raises(SourceError, match="the AnnData has no 'layers/x'; it has X, layers/counts"):
        open_rows(data, key="layers/x")
    with pytest.raises(SourceError, match="has no target 'size'"):
        open_rows(data, target="size")


@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_array, sp.csc_array])
def test_objects_like_anndata(as_matrix):
    check_annotated(AnnData(as_matrix(ROWS)))


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_anndata_itself(tmp_path, kind):
    anndata = pytest.importorskip("anndata")
    make = {"dense": np.asarray, "csr": sp.csr_matrix, "csc": sp.csc_matrix}[kind]
    data = anndata.AnnData(
        make(ROWS),
        obs=pd.DataFrame(
            {"age": AGES, "kind": pd.Categorical(KINDS)}, index=[f"cell{i}" for i in range(47)]
        ),
        var=pd.DataFrame(index=GENES),
        layers={"counts": make(2.0 * ROWS)},
    )
    check_annotated(data)
    np.testing.assert_array_equal(gather(open_rows(data[5:9]).blocks())[0], ROWS[5:9])
    data.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    check_annotated(backed)
    X, y = gather(open_rows(tmp_path / "cells.h5ad", target="kind").blocks())
    np.testing.assert_array_equal(X, ROWS)
    assert y.tolist() == KINDS.tolist()
    backed.file.close()


# Named dimensions


def temperatures():
    values = np.random.default_rng(3).standard_normal((30, 2, 3))
    coords = {
        "time": np.arange(30.0),
        "lat": [10.5, 20.5],
        "lon": [1.0, 2.0, 3.0],
        "season": ("time", np.arange(30) % 4),
    }
    return xr.DataArray(values, dims=("time", "lat", "lon"), coords=coords, name="t2m")


def test_three_dimensions_are_refused_or_named():
    array = temperatures()
    with pytest.raises(SourceError, match=r"dimensions time, lat, lon \(30 x 2 x 3\); .*columns="):
        open_rows(array)
    with pytest.raises(SourceError, match="dimensions time, lat, lon"):
        fit_stream(StreamingPCA(2), array, progress=False)
    source = open_rows(array, columns=["lat", "lon"], target="season", batch_rows=7)
    assert source.feature_names[:2] == ["lat=10.5 lon=1", "lat=10.5 lon=2"]
    X, y = gather(source.blocks(4))
    np.testing.assert_array_equal(X, array.values.reshape(30, 6)[4:])
    np.testing.assert_array_equal(y, np.arange(4, 30) % 4)
    turned = open_rows(array, columns=["time", "lon"])
    assert (turned.n_rows, turned.n_features) == (2, 90)
    stacked = array.stack(column=("lat", "lon"))
    np.testing.assert_array_equal(gather(open_rows(stacked).blocks())[0], X_of(array))


def X_of(array):
    return array.values.reshape(len(array), -1)


def test_two_dimensions_are_rows_and_columns():
    array = temperatures().isel(lat=0, drop=True)
    source = open_rows(array, columns=["1", "3"], target="season")
    assert source.feature_names == ["1", "3"]
    X, y = gather(source.blocks())
    np.testing.assert_array_equal(X, array.values[:, [0, 2]])
    np.testing.assert_array_equal(y, np.arange(30) % 4)
    both = xr.Dataset({"t2m": array, "rain": array + 1.0, "y": ("time", np.arange(30.0))})
    with pytest.raises(SourceError, match="2 variables; pass key='t2m' or 'rain'"):
        open_rows(both)
    X, y = gather(open_rows(both, key="rain", target="y").blocks())
    np.testing.assert_array_equal(X, array.values + 1.0)
    np.testing.assert_array_equal(y, np.arange(30.0))
    table = xr.Dataset({"a": ("time", np.arange(4.0)), "b": ("time", np.ones(4))})
    assert open_rows(table).feature_names == ["a", "b"]
    for bad, message in (
        (table["a"], "give an array with rows and columns"),
        (array.astype(str), "give an array of numbers"),
    ):
        with pytest.raises(SourceError, match=message):
            open_rows(bad)


def test_netcdf_files(tmp_path):
    array = temperatures()
    path = tmp_path / "x.nc"
    array.to_dataset().to_netcdf(path, engine="h5netcdf")
    source = open_rows(path, columns=["lat", "lon"], target="season")
    for start in (0, 11):
        X, y = gather(source.blocks(start))
        np.testing.assert_array_equal(X, X_of(array)[start:])
        np.testing.assert_array_equal(y, np.arange(start, 30) % 4)
    assert source.fingerprint()["kind"] == "netcdf"
    with pytest.raises(SourceError, match="x.nc, t2m: dimensions time, lat, lon"):
        open_rows(path)
    with pytest.raises(SourceError, match="x.nc has no variable 'z'; it has t2m"):
        open_rows(path, key="z")
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(SourceError, match="x.nc: cut short, damaged or not NetCDF"):
        open_rows(path)
