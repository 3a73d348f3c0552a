"""Every command over every format, with and without labels: success, or one line that says why."""

from __future__ import annotations

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pytest
import scipy.io
import scipy.sparse as sp
import typer
import xarray as xr
import zarr
from sklearn.datasets import dump_svmlight_file

from sksketch import cli
from sksketch.cli import app
from sksketch.cli.running import LABELED, NUMBERED
from sksketch.streams.files import FORMATS

N_ROWS, N_FEATURES = 40, 4
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((N_ROWS, N_FEATURES)).round(3)
LABELS = np.where(ROWS[:, 0] + 0.3 * ROWS[:, 1] > 0, 1.0, -1.0)
ALL = np.column_stack([ROWS, LABELS])
FRAME = pd.DataFrame(ALL, columns=[*"abcd", "y"])
MESSY = FRAME.assign(
    city=["Rome", "Bern", None, "Rome"] * 10,
    y=np.where(LABELS > 0, "yes", "no"),
    when=pd.date_range("2024-01-01", periods=N_ROWS, freq="37h").strftime("%Y-%m-%d"),
)


def write_arrow_stream(frame, path):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


def write_hdf5(path):
    with h5py.File(path, "w") as opened:
        opened["X"] = ALL


def write_vw(path):
    lines = [
        f"{y:g} |f " + " ".join(f"{name}:{x:g}" for name, x in zip("abcd", row, strict=True))
        for row, y in zip(ROWS, LABELS, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


def write_feather(frame, path):
    pyarrow.feather.write_feather(pa.Table.from_pandas(frame, preserve_index=False), str(path))


TABLES = {
    "csv": lambda frame, path: frame.to_csv(
        path, index=False, sep="\t" if path.suffix == ".tsv" else ","
    ),
    "parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "arrow": lambda frame, path: (
        write_arrow_stream if path.suffix == ".arrows" else write_feather
    )(frame, path),
    "orc": lambda frame, path: frame.to_orc(path, index=False),
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
}
MATRICES = {
    "svmlight": lambda path: dump_svmlight_file(ROWS, LABELS, str(path), zero_based=False),
    "vw": write_vw,
    "mtx": lambda path: scipy.io.mmwrite(path, sp.coo_array(ALL)),
    "npy": lambda path: np.save(path, ALL),
    "npz": lambda path: np.savez(path, X=ALL),
    "zarr": lambda path: zarr.save(str(path), ALL),
    "hdf5": write_hdf5,
    "netcdf": lambda path: xr.DataArray(ALL, name="x").to_netcdf(path, engine="h5netcdf"),
}
# Beside the commands themselves, with which columns they learn from two views.
COMMANDS = {
    "pca": ["-k", "2"],
    "svd": ["-k", "2"],
    "ridge": [],
    "online": [],
    "kpca": ["-k", "1", "--landmarks", "8"],
    "kcca": ["-k", "1", "--landmarks", "8", "--ridge", "0.01"],
    "reduce": ["-k", "2"],
    "sketch": [],
}
TARGETED = ("ridge", "online", "reduce", "sketch")


@pytest.fixture(scope="module", autouse=True)
def built_once():
    """Build the commands once for hundreds of runs, which takes longer than most of them."""
    commands = typer.main.get_command(app.build_app())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "build_app", lambda: commands)
        yield


def run(capsys, *arguments):
    """Run a command; return whether it went well, and its line if it did not."""
    code = cli.main([str(argument) for argument in arguments])
    err = capsys.readouterr().err
    assert code in (0, 2), (arguments, code, err)
    if code == 2:
        assert err.startswith("sksketch: "), (arguments, err)
        assert err.count("\n") == 1, (arguments, err)
        return err
    return ""


def walk(capsys, source, folder, target, views, commands=tuple(COMMANDS)):
    """Run commands; return those that were refused, with why."""
    refused = {}
    for command in commands:
        options = COMMANDS[command]
        given = [*options]
        if command == "kcca":
            given += ["--other", views]
        if target is not None and command in TARGETED:
            given += ["--target", target]
        model = folder / f"{command}.sks"
        line = run(capsys, command, source, "-q", "-o", model, *given)
        if line:
            refused[command] = line
            assert not model.exists()
            continue
        answers = folder / f"{command}.csv"
        line = run(capsys, "apply", model, source, "-q", "-o", answers)
        if line:
            refused[f"apply {command}"] = line
            assert not answers.exists()
    assert not list(folder.glob("*.checkpoint*"))
    return refused


def expected(suffix, *, messy, labeled):
    """Return the commands that cannot do anything with such a file."""
    kind = FORMATS[suffix]
    labels = labeled or suffix in LABELED
    refused = {"apply sketch"}
    if not labels:
        refused |= {"ridge", "online"}
    if messy and labeled:
        # Names are no numbers to predict.
        refused |= {"ridge", "sketch"}
        refused -= {"apply sketch"}
    if kind in ("svmlight", "vw"):
        refused.add("kcca")
    elif kind in MATRICES:
        # Columns without names are those of all rows, and the model has fewer.
        refused.add("apply kcca")
        if labeled:
            refused |= {"apply ridge", "apply online", "apply reduce"}
    return refused


# One ending of each format for all commands; the others are read in the same way.
FIRST = {kind: suffix for suffix, kind in reversed(FORMATS.items())}
FEW = ("pca",)


@pytest.mark.parametrize("labeled", [False, True])
@pytest.mark.parametrize("name", ["plain", "messy"])
@pytest.mark.parametrize("suffix", [FIRST[kind] for kind in TABLES])
def test_tables(suffix, name, labeled, tmp_path, capsys):
    source = tmp_path / f"{name}{suffix}"
    TABLES[FORMATS[suffix]](MESSY if name == "messy" else FRAME, source)
    found = walk(capsys, source, tmp_path, "y" if labeled else None, "c,d")
    assert set(found) == expected(suffix, messy=name == "messy", labeled=labeled), found


# Labels of svmlight and vw are in the file, and not in a column.
KINDS = [(FIRST[kind], labeled) for kind in MATRICES for labeled in (False, True)]


@pytest.mark.parametrize(
    ("suffix", "labeled"), [(s, y) for s, y in KINDS if not (y and s in LABELED)]
)
def test_matrices(suffix, labeled, tmp_path, capsys):
    source = tmp_path / f"rows{suffix}"
    MATRICES[FORMATS[suffix]](source)
    found = walk(capsys, source, tmp_path, "4" if labeled else None, "2,3")
    assert set(found) == expected(suffix, messy=False, labeled=labeled), found


@pytest.mark.parametrize("suffix", sorted(set(FORMATS) - set(FIRST.values())))
def test_other_endings(suffix, tmp_path, capsys):
    source, kind = tmp_path / f"rows{suffix}", FORMATS[suffix]
    TABLES[kind](MESSY, source) if kind in TABLES else MATRICES[kind](source)
    assert walk(capsys, source, tmp_path, None, "", FEW) == {}


def test_every_format_is_walked():
    assert set(FORMATS.values()) == set(TABLES) | set(MATRICES)
    assert {s for s, kind in FORMATS.items() if kind in MATRICES} >= set(NUMBERED)
