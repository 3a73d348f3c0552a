"""Vowpal Wabbit text: its own columns, sums of equal ones, and the line of every mistake."""

import gzip
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sksketch import SourceError, open_rows
from sksketch.arrays.kernels import generic
from sksketch.streams import files
from sksketch.streams.files import TextBlock
from sksketch.streams.formats import vw
from sksketch.streams.formats.vw import parse

# What Vowpal Wabbit 9.11 says with -b 18, by namespace and name.
COLUMNS = {
    ("", "7"): 7,
    ("", "300000"): 37856,
    ("", "height"): 251127,
    ("a", "7"): 92601,
    ("a", "height"): 143952,
    ("a", "height^2"): 104937,
    ("space", "x"): 105211,
    ("12", "x"): 98015,
    ("space", "4294967299"): 237139,
    ("user", "été"): 157769,
    ("long_namespace", "a-rather-long-name"): 31959,
}


def gather(source, start_row=0):
    blocks = list(source.blocks(start_row))
    return sp.vstack([b.X for b in blocks]).tocsr(), np.concatenate([b.y for b in blocks])


def write(folder, text, name="rows.vw"):
    data = text if isinstance(text, bytes) else text.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    return folder / name


def column(space, name, n_features=2**18):
    """Return the column of a feature, found by reading a line that has only it."""
    return int(parse(TextBlock(1, f"1 |{space} {name}".encode()), n_features).indices[0])


@pytest.mark.parametrize(("space", "name"), COLUMNS)
def test_columns_are_those_of_vowpal_wabbit(space, name):
    assert column(space, name) == COLUMNS[space, name]
    assert column(space, name, 64) == COLUMNS[space, name] % 64


@pytest.mark.parametrize(
    ("words", "seed", "expected"),
    [
        # From the reference implementation of MurmurHash3_x86_32.
        (b"test", 0, 0xBA6BD213),
        (b"test", 0x9747B28C, 0x704B81DC),
        (b"Hello, world!", 0, 0xC0363E43),
        (b"Hello, world!", 0x9747B28C, 0x24884CBA),
        (b"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
        (b"aaa", 0x9747B28C, 0x283E0130),
        (b"aa", 0x9747B28C, 0x5D211726),
        (b"a", 0x9747B28C, 0x7FA09EA6),
    ],
)
def test_the_hash_is_murmur3(words, seed, expected):
    assert generic._hash(words, seed) == expected


@pytest.mark.parametrize("name", ["rows.vw", "rows.vw.gz"])
def test_rows_are_what_the_lines_say(tmp_path, monkeypatch, name):
    # Small blocks, so that rows lie across their ends.
    monkeypatch.setattr(files, "TEXT_BYTES", 1000)
    rng = np.random.default_rng(3)
    X = sp.random_array((300, 64), density=0.1, format="csr", rng=1)
    X.data *= 10.0 ** rng.integers(-12, 12, X.nnz)
    labels = rng.standard_normal(300)
    lines = []
    for i in range(300):
        row = X[[i]]
        entries = [f"{j}:{x!r}" for j, x in zip(row.indices, row.data.tolist(), strict=True)]
        lines.append(" ".join([repr(float(labels[i])), f"'row{i}", "|", *entries]))
    path = write(tmp_path, "\n\n".join(lines), name)
    source = open_rows(path, n_features=64)
    assert (source.n_features, source.n_targets, source.n_rows) == (64, 1, None)
    for start in (0, 123):
        found, y = gather(source, start)
        assert found.indices.dtype == np.int32
        np.testing.assert_array_equal(found.toarray(), X[start:].toarray())
        np.testing.assert_array_equal(y, labels[start:])


def test_everything_a_line_may_have(tmp_path):
    lines = [
        "1 1.0 0 'tag |a x:2 |b:0.5 x:2 y",
        "-1 second|a x:0.25 x x:-3e-1|b y",
        "\t 0 1\t| 3:1 :7 :8 5\r",
        "+2e0 |",
        "3 |  |a",
    ]
    X, y = gather(open_rows(write(tmp_path, "\n".join(lines))))
    np.testing.assert_array_equal(y, [1, -1, 0, 2, 3])
    expected = np.zeros((5, 2**18))
    ax, bx, by = column("a", "x"), column("b", "x"), column("b", "y")
    expected[0, [ax, bx, by]] = 2, 1, 0.5
    expected[1, [ax, by]] = 0.25 + 1 - 0.3, 1
    # Features without names are numbered from 0 in each namespace.
    expected[2, [3, 0, 1, 5]] = 1, 7, 8, 1
    np.testing.assert_allclose(X.toarray(), expected, rtol=1e-15)
    assert X.has_canonical_format
    assert len({ax, bx, by}) == 3


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_numbers_are_read_to_the_last_bit(values):
    line = " ".join(f"n{i}:{x!r}" for i, x in enumerate(values))
    rows = parse(TextBlock(1, f"{values[0]!r} |a {line}\n{values[-1]!r} |:2 x:0.5".encode()))
    np.testing.assert_array_equal(rows.data, [*values, 1.0])
    np.testing.assert_array_equal(rows.labels, [values[0], values[-1]])
    assert rows.indptr.tolist() == [0, len(values), len(values) + 1]


@given(st.binary(max_size=60))
def test_no_text_is_too_strange(text):
    # Both parsers read it, or complain about the same place in it.
    results = []
    for module in (generic, vw.kernels()):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(vw, "kernels", lambda module=module: module)
            try:
                found = parse(TextBlock(1, b"1 |a " + text))
                results.append([np.asarray(a).tolist() for a in found])
            except SourceError as error:
                results.append(str(error))
    assert repr(results[0]) == repr(results[1])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 2:3 4:5", "there is no bar in the line that begins with '1'"),
        ("x |a b", "the label 'x' is not a number"),
        ("1,2 |a b", "the label '1,2' is not a number"),
        ("1:2:0.5 |a b", "the label '1:2:0.5' is not a number"),
        ("1 -2 |a b", "the importance '-2' is not a number from 0 on; repair or remove"),
        ("1 inf |a b", "the importance 'inf' is not a number from 0 on"),
        ("1 nan |a b", "the importance 'nan' is not a number from 0 on"),
        ("1 x |a b", "the importance 'x' is not a number from 0 on"),
        ("1 1 x |a b", "the initial prediction 'x' is not a number"),
        ("1 1 0 0 |a b", "'0' is too much before the bar"),
        ("1 'tag 1 |a b", "'1' is too much before the bar"),
        ("1 |a b:x", "the value of 'b:x' is not a number"),
        ("1 |a b:", "the value of 'b:' is not a number"),
        ("1 |a b:1#2", "the value of 'b:1#2' is not a number"),
        ("1 |a b:1:2", "the value of 'b:1:2' is not a number"),
        ("1 |a:x b", "the value of 'a:x' is not a number"),
        ("1 |a b:nan", "NaN in column"),
        ("nan |a b", "missing value in target 'label'; pass missing='drop'"),
        ("|a b", "missing value in target 'label'; pass missing='drop'"),
        ("1|a b", "missing value in target 'label'; pass missing='drop'"),
    ],
)
@pytest.mark.parametrize("before", [3, 4000])
def test_a_bad_line_is_named(tmp_path, monkeypatch, before, line, message):
    monkeypatch.setattr(files, "TEXT_BYTES", 10_000)
    good = ["", " ", *["1 |a b:2 c:1.5"] * before]
    path = write(tmp_path, "\n".join([*good, line, "1 |a b", ""]))
    with pytest.raises(SourceError, match="rows.vw, line ") as caught:
        list(open_rows(path).blocks())
    assert f"line {before + 3}: {message}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_are_checked(tmp_path):
    path = write(tmp_path, "1 |a b\n |a c\n")
    assert open_rows(path, target="label").target_names == ["label"]
    for options in ({"columns": [1]}, {"target": "y"}, {"n_features": 0}, {"n_features": 100}):
        with pytest.raises(ValueError, match="leave|only|power of two"):
            open_rows(path, **options)
    # To predict, no label is needed.
    bare = open_rows(path, target=[])
    assert (bare.n_targets, bare.target_names) == (0, None)
    (block,) = bare.blocks()
    assert block.y is None
    assert block.X.shape == (2, 2**18)
    assert sum(len(b.y) for b in open_rows(path, missing="drop").blocks()) == 1


def test_several_files_share_their_columns(tmp_path):
    write(tmp_path, "1 | 1\n", "a.vw")
    write(tmp_path, "2 | 3:2\n", "b.vw")
    for source in (tmp_path, f"{tmp_path}/*.vw", [tmp_path / "a.vw", tmp_path / "b.vw"]):
        X, y = gather(open_rows(source, n_features=4))
        np.testing.assert_array_equal(X.toarray(), [[0, 1, 0, 0], [0, 0, 0, 2]])
        assert y.tolist() == [1, 2]


def test_standard_input(tmp_path):
    code = (
        "from sksketch import open_rows, StreamExhaustedError\n"
        "s = open_rows('-', format='vw', n_features=16)\n"
        "print(sum(b.X.sum() for b in s.blocks(1)))\n"
        "try: s.blocks()\nexcept StreamExhaustedError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="1 | a:3\n-1 | a:4 b:5",
        capture_output=True,
        text=True,
        check=True,
    )
    total, message = done.stdout.splitlines()
    assert float(total) == 9
    assert "standard input can be read only once" in message
