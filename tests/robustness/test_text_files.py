"""Text by any hand: long cells and headers, many columns, names of other encodings, other rows."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

from sksketch import SourceError, cli, open_rows
from sksketch.run.checkpoints import Checkpoint

pytest.importorskip("pyarrow")


def test_a_cell_of_any_length_is_refused_or_left_out(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("a,text\n" + "".join(f'{i},"{"x" * 200_000}"\n' for i in range(5)))
    rows = open_rows(path, columns=["a"])
    assert [len(block.X) for block in rows.blocks()] == [5]
    path.write_text('a,b\n1,2\n3,"' + "x" * 200_000 + "\n")
    with pytest.raises(SourceError, match=r"long\.csv.*line 3: field larger than field limit"):
        list(open_rows(path).blocks())
    path.write_text("x" * 200_000 + ",b\n1,2\n")
    with pytest.raises(SourceError, match=r"long\.csv, about line 1: field larger"):
        open_rows(path)


def test_a_header_and_rows_of_many_mebibytes_are_read(tmp_path):
    path, width = tmp_path / "wide.csv", 26_000
    X = np.random.default_rng(0).random((3, width)).round(12)
    names = [f"a rather long name of column number {i}" for i in range(width)]
    lines = [",".join(names), *(",".join(map(repr, row)) for row in X.tolist())]
    path.write_text("\n".join(lines))
    assert len(lines[0]) > 2**20
    source = open_rows(path)
    assert source.feature_names == names
    np.testing.assert_array_equal(np.concatenate([block.X for block in source.blocks()]), X)


def test_columns_cost_their_number(tmp_path):
    """Twice as many take twice as long, and not four times."""
    seconds = {}
    for width in (2_000, 16_000):
        path = tmp_path / f"{width}.csv"
        names = ",".join(f"c{i}" for i in range(width))
        path.write_text("\n".join([names, *(["1.5" + ",2" * (width - 1)] * 4)]))
        tries = []
        for _ in range(2):
            began = time.process_time()
            assert sum(len(block.X) for block in open_rows(path).blocks()) == 4
            tries.append(time.process_time() - began)
        seconds[width] = min(tries)
    # The square would be 64.
    assert seconds[16_000] < 30 * seconds[2_000], seconds


@pytest.mark.parametrize("header", [None, True])
def test_names_that_are_not_utf8_are_refused(tmp_path, header):
    path = tmp_path / "latin.csv"
    path.write_bytes("größe,b\n1,2\n".encode("latin-1"))
    with pytest.raises(SourceError, match=r"latin\.csv, line 1: the name .*is not UTF-8; pass enc"):
        open_rows(path, header=header)
    path.write_text("größe,b\n1,2\n", encoding="utf-8")
    assert open_rows(path, header=header).feature_names == ["größe", "b"]
    # Text that is not read may be anything.
    path.write_bytes("a,b\n1,größe\n".encode("latin-1"))
    assert [block.X.tolist() for block in open_rows(path, columns=["a"]).blocks()] == [[[1.0]]]


def test_names_do_not_command_the_terminal(tmp_path, capsys):
    path, model = tmp_path / "a.csv", str(tmp_path / "m.sks")
    names = ["\x1b[2Jred\x07", "line\rback", "\u202eright", "plain", "größe"]
    rows = np.random.default_rng(0).random((30, 5))
    lines = [",".join(f'"{name}"' for name in names), *(",".join(map(str, r)) for r in rows)]
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    commands = [
        ["ridge", str(path), "--target", "plain", "-o", model],
        ["info", model],
        ["info", model, "--json"],
        ["online", str(path), "--target", "plain", "--task", "regress", "-o", model],
        ["info", model],
        ["pca", str(path), "--columns", "\x1b[31m", "-o", model],
        ["info", str(tmp_path / "no\x1b[31m such file")],
    ]
    for command in commands:
        cli.main(command)
        out, err = capsys.readouterr()
        # The bars of a run are ours.
        shown = out + "".join(line for line in err.splitlines() if line.startswith("sksketch"))
        assert shown.replace("\n", "").isprintable(), shown
    assert cli.main(["ridge", str(path), "--target", "plain", "-q", "-o", model]) == 0
    assert cli.main(["info", model]) == 0
    shown = capsys.readouterr().out
    assert "\\x1b[2Jred\\x07" in shown
    assert "größe" in shown


# Standard input

FORMATS = {
    "csv": (["pca", "-", "-k", "1"], lambda x: ",".join(f"{v:.3f}" for v in x)),
    "svmlight": (
        ["svd", "-", "-k", "1", "--format", "svmlight", "--n-features", "4"],
        lambda x: "0 " + " ".join(f"{j + 1}:{v:.3f}" for j, v in enumerate(x)),
    ),
    "vw": (
        ["online", "-", "--format", "vw", "--task", "regress", "--n-features", "16"],
        lambda x: f"{x[0]:.3f} | " + " ".join(f"{j}:{v:.3f}" for j, v in enumerate(x)),
    ),
}


def text(kind: str, seed: int) -> bytes:
    rows = np.random.default_rng(seed).random((400, 4))
    return ("\n".join(map(FORMATS[kind][1], rows.tolist())) + "\n").encode()


@pytest.fixture
def piped(tmp_path):
    """Return a function that runs a command with these bytes on its standard input."""
    kept = os.dup(0)

    def run(data: bytes, *arguments: str) -> int:
        path = tmp_path / "stdin"
        path.write_bytes(data)
        with path.open("rb") as file:
            os.dup2(file.fileno(), 0)
        path.unlink()
        return cli.main(arguments)

    yield run
    os.dup2(kept, 0)
    os.close(kept)


@pytest.mark.parametrize("kind", FORMATS)
def test_other_rows_on_stdin_are_not_mixed_with_those_of_a_checkpoint(
    tmp_path, monkeypatch, capfd, piped, kind, full, tally
):
    model, checkpoint = tmp_path / "m.sks", tmp_path / "m.sks.checkpoint"
    options = [*FORMATS[kind][0], "-q", "--every", "100", "-o", str(model)]
    rows = text(kind, 0)
    write = Checkpoint.write

    def write_and_stop(self, model, n_rows):
        write(self, model, n_rows)
        if n_rows == 200:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write", write_and_stop)
        assert piped(rows, *options) == 130
    before = checkpoint.read_bytes()
    other = [rows[:-3], rows.replace(b"0.5", b"0.6"), b"", rows + rows[:40]]
    other += [text(kind, seed) for seed in range(1, 100 if full else 4)]
    capfd.readouterr()
    for data in other:
        assert piped(data, *options) == 2
        assert len(capfd.readouterr().err.splitlines()) == 1
        assert checkpoint.read_bytes() == before
        assert not model.exists()
        tally("other rows on stdin", {"refused, nothing changed": 1})
    assert piped(rows, *options) == 0
    assert piped(rows, *options[:-1], str(tmp_path / "alone.sks")) == 0
    assert model.read_bytes() == (tmp_path / "alone.sks").read_bytes()
    assert {p.name for p in tmp_path.iterdir()} == {"m.sks", "alone.sks"}
