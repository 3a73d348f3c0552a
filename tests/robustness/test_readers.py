"""Damaged files of every format: an error that names the file, or rows in the promised shape."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustness import children, reading
from sksketch import SourceError, open_rows

pytest.importorskip("pyarrow")
pytest.importorskip("zarr")


def test_damaged_files_are_refused_or_read_as_rows(tmp_path, full, tally):
    found = children.outcomes("reading", str(tmp_path), str(3500 if full else 25))
    for (name, outcome), n in found.items():
        tally(f"damaged {name.removeprefix('a.')} files", {outcome: n})
    refused = sum(n for (_, outcome), n in found.items() if outcome.startswith("refused"))
    assert refused > sum(found.values()) / 2


WORDS = (
    *(
        "1",
        "-1",
        "0.5",
        "1e9",
        "nan",
        "inf",
        "1_0",
        "0x1f",
        "9" * 400,
        "1e-400",
        "é",
        "\x00",
        "\ufeff",
    ),
    *(
        " ",
        "\t",
        "\n",
        "\r\n",
        "\r",
        ",",
        ":",
        "|",
        "#",
        '"',
        "'",
        "1:2",
        "3:",
        ":4",
        "a:1",
        "a",
        "-",
    ),
)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "svm", "vw"])
def test_any_text_is_refused_or_read_as_rows(suffix, full, tally):
    found = Counter()

    @settings(max_examples=2000 if full else 60)
    @given(st.lists(st.sampled_from(WORDS), max_size=60).map("".join))
    def attempt(text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"a.{suffix}"
            path.write_text(text, encoding="utf-8", newline="")
            message = ""
            try:
                reading.read(path)
            except SourceError as error:
                message = str(error)
        assert not message or (path.name in message and len(message) < 1000)
        found["refused, naming the file" if message else "read"] += 1

    attempt()
    tally("random text files", found)


def test_a_wrong_size_does_not_hide_a_wrong_checksum(tmp_path):
    # zipfile compares checksums at the end of a member, which numpy does not reach by itself.
    path = tmp_path / "a.npz"
    np.savez(path, X=np.ones((40, 6)))
    data = bytearray(path.read_bytes())
    directory = data.rfind(b"PK\x01\x02")
    for at in (directory + 20, directory + 24):
        data[at : at + 4] = (10**6).to_bytes(4, "little")
    data[data.find(b"\xf0\x3f") : data.find(b"\xf0\x3f") + 2] = b"\x00\x40"
    path.write_bytes(data)
    with pytest.raises(SourceError, match=r"a\.npz"):
        open_rows(path)


def test_what_is_called_gzip_must_be_gzip(tmp_path):
    path = tmp_path / "a.svm.gz"
    path.write_text("# only a comment is left\n")
    with pytest.raises(SourceError, match="says gzip"):
        open_rows(path)


def test_damage_is_what_it_claims_to_be():
    data = bytes(range(200))
    assert all(reading.damage.spoil(data, seed) != data for seed in range(500))
    assert len({reading.damage.spoil(data, seed) for seed in range(500)}) > 450
