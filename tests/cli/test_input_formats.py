"""The commands over files as they come: formats, spellings of CSV, URLs."""

import json

import fsspec
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
import xarray as xr

from sksketch import StreamingPCA, cli

ROWS = np.random.default_rng(0).standard_normal((60, 4)).round(2) * [1000.0, 2.0, 3.0, 4.0]
FRAME = pd.DataFrame(ROWS, columns=list("abcd"))


def euro(value):
    return f"{value:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")


def write_euro(path):
    lines = ["a;b;c;d", *(";".join(map(euro, row)) for row in ROWS)]
    path.write_bytes(("Préambule\n" + "\n".join(lines) + "\n# fin\n").encode("latin-1"))


def write_hdf5(path):
    with h5py.File(path, "w") as opened:
        opened["X"] = np.ones((3, 2))
        opened["layers/raw"] = ROWS


FILES = {
    "rows.feather": (lambda path: FRAME.to_feather(path), []),
    "rows.jsonl": (lambda path: FRAME.to_json(path, orient="records", lines=True), []),
    "rows.orc": (lambda path: FRAME.to_orc(path), []),
    "rows.csv.xz": (lambda path: FRAME.to_csv(path, index=False), []),
    "semicolons.csv": (lambda path: FRAME.to_csv(path, index=False, sep=";"), []),
    "rows.mtx": (lambda path: scipy.io.mmwrite(path, sp.coo_array(ROWS)), []),
    "rows.h5": (write_hdf5, ["--key", "layers/raw"]),
    "rows.nc": (lambda path: xr.DataArray(ROWS, name="x").to_netcdf(path, engine="h5netcdf"), []),
    "euro.csv": (
        write_euro,
        [
            *("--decimal", ",", "--thousands", ".", "--skip", "1", "--comment", "#"),
            *("--encoding", "latin-1", "--na", "-"),
        ],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_pca_and_apply_of_every_format(tmp_path, capsys, name):
    write, options = FILES[name]
    write(tmp_path / name)
    rows, model, scores = (str(tmp_path / part) for part in (name, "m.sks", "scores.npy"))
    assert cli.main(["pca", rows, "-k", "2", "--json", "-o", model, *options]) == 0
    assert json.loads(capsys.readouterr().out)["rows_seen"] == 60
    assert cli.main(["apply", model, rows, "-o", scores, *options]) == 0
    expected = np.abs(StreamingPCA(2).fit_transform(ROWS))
    np.testing.assert_allclose(np.abs(np.load(scores)), expected, rtol=1e-6)


def test_urls(capsys, tmp_path):
    system = fsspec.filesystem("memory")
    with system.open("/cli/rows.csv", "wb") as file:
        file.write(FRAME.to_csv(index=False).encode())
    model = str(tmp_path / "m.sks")
    assert cli.main(["pca", "memory://cli/rows.csv", "-k", "2", "-o", model]) == 0
    assert cli.main(["pca", "memory://cli/none.csv", "-k", "2", "-o", model]) == 2
    assert "memory://cli/none.csv" in capsys.readouterr().err
    system.rm("/cli", recursive=True)


def test_mistakes_name_the_options(tmp_path, capsys):
    write_euro(tmp_path / "euro.csv")
    array = xr.DataArray(np.ones((4, 3, 2)), dims=("time", "lat", "lon"), name="x")
    array.to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    (tmp_path / "x.xlsx").touch()
    for name, options, message in (
        ("euro.csv", ["--skip", "1", "--comment", "#"], "pass --decimal , and --thousands ."),
        ("x.nc", [], "pass --columns lat,lon"),
        ("x.xlsx", [], "unsupported ending '.xlsx'; supported: .csv"),
    ):
        rows = str(tmp_path / name)
        assert cli.main(["pca", rows, "-k", "1", "-o", str(tmp_path / "m.sks"), *options]) == 2
        err = capsys.readouterr().err
        assert message in err
        assert err.count("\n") == 1
