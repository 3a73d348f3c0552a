"""CSV as people write it: other separators, numbers with commas, comments, encodings."""

import numpy as np
import pytest

from sksketch import SourceError, open_rows
from sksketch.streams.formats.dialect import Dialect


def write(folder, text, encoding="utf-8", name="rows.csv"):
    (folder / name).write_bytes(text.encode(encoding))
    return folder / name


def rows_of(path, **options):
    blocks = list(open_rows(path, **options).blocks())
    return np.concatenate([block.X for block in blocks]).tolist()


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a;b\n1.5;2\n3;1004.5\n", {}),
        ("a\tb\n1.5\t2\n3\t1004.5\n", {}),
        ("a|b\n1.5|2\n3|1004.5\n", {}),
        ('"a, or so";b\n1.5;2\n3;1004.5\n', {}),
        ("1.5;2\n3;1004.5\n", {}),
        ("a;b\n1,5;2\n3;1004,5\n", {"decimal": ","}),
        ("a;b\n1,5;2\n3;1.004,5\n", {"decimal": ",", "thousands": "."}),
        ('a,b\n1.5,2\n3,"1,004.5"\n', {"thousands": ","}),
        ("a;b\n1.5;2\n3;1 004.5\n", {"thousands": " "}),
        ("# by hand\na,b\n1.5,2\n# half way\n\n3,1004.5\n#end", {"comment": "#"}),
        ('A report, of "some" kind\n5" pipes\na,b\n1.5,2\n3,1004.5\n', {"skip": 2}),
        ('//5" pipes\na,b\n1.5,2\n3,1004.5\n', {"comment": "//"}),
        ("x\ty\na\tb\n1.5\t2\n3\t1004.5\n", {"skip": 1}),
    ],
)
def test_spellings_of_the_same_rows(tmp_path, text, options):
    path = write(tmp_path, text)
    assert rows_of(path, **options) == [[1.5, 2.0], [3.0, 1004.5]]
    source = open_rows(path, **options)
    assert [block.X.tolist() for block in source.blocks(1)] == [[[3.0, 1004.5]]]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
def test_encodings(tmp_path, encoding, monkeypatch):
    monkeypatch.setattr("sksketch.streams.files.TEXT_BYTES", 32)
    text = "größe,ort\n1.5,Zürich\n2.5,Genève\n" + "3.5,Zürich\n" * 9
    path = write(tmp_path, text, encoding)
    source = open_rows(
        path, encoding=encoding, one_hot="ort", categories={"ort": ["Zürich", "Genève"]}
    )
    assert source.feature_names == ["größe", "ort=Zürich", "ort=Genève"]
    X = np.concatenate([block.X for block in source.blocks()])
    assert X[:2].tolist() == [[1.5, 1.0, 0.0], [2.5, 0.0, 1.0]]
    assert len(X) == 11


def test_the_option_that_helps_is_named(tmp_path):
    for text, message in (
        ("a;b\n1,5;2\n3,5;4\n", "column 'a' holds '1,5', which is not a number; pass decimal=','$"),
        ("a;b\n1.004,5;2\n2.003,5;4\n", "pass decimal=',' and thousands='.'$"),
        ('a,b\n"1,004.5",2\n"3,000",4\n', "pass thousands=','$"),
    ):
        with pytest.raises(SourceError, match=message):
            open_rows(write(tmp_path, text))
    latin = write(tmp_path, "größe,b\n1,2\n", "latin-1")
    with pytest.raises(SourceError, match="line 1: the name .* is not UTF-8; pass encoding="):
        open_rows(latin)
    with pytest.raises(SourceError, match="not ascii .*; pass another encoding"):
        open_rows(latin, encoding="ascii")
    city = write(tmp_path, "a,ort\n1,Zürich\n", "latin-1")
    with pytest.raises(SourceError, match="pass encoding='latin-1'"):
        list(open_rows(city, one_hot="ort", categories={"ort": ["Zürich"]}).blocks())


def test_words_for_missing_values(tmp_path):
    path = write(tmp_path, "a,b\n1,-\n2,5\n?,6\n")
    assert rows_of(path, na=["-", "?"], missing="drop") == [[2.0, 5.0]]
    with pytest.raises(SourceError, match="line 2: missing value in column 'b'"):
        rows_of(path, na=["-", "?"])


def test_lines_are_counted_past_what_is_skipped(tmp_path):
    text = "one\ntwo\n# c\na;b\n1;2\n\n# c\n3;x\n"
    path = write(tmp_path, text.replace("x", ""))
    with pytest.raises(SourceError, match="rows.csv, line 8: missing value in column 'b'"):
        rows_of(path, skip=2, comment="#")
    path = write(tmp_path, text.replace("\n3;x", "\n3;4\n5;6\n7;x"))
    with pytest.raises(SourceError, match="rows.csv, line 10: column 'b' holds 'x'"):
        rows_of(path, skip=2, comment="#")
    path = write(tmp_path, "a;b\n1,5;2\n3;1.4\n4;1\n5;1\n")
    with pytest.raises(SourceError, match="line 3: column 'b' holds '1.4', which is not a number"):
        rows_of(path, decimal=",")


def test_thousands_in_later_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("sksketch.streams.files.TEXT_BYTES", 64)
    lines = ["a;b", *(f"{i};{i},5" for i in range(40)), "1.000.000;-2.000,25", "1.00;3"]
    path = write(tmp_path, "\n".join(lines[:-1]))
    assert rows_of(path, decimal=",", thousands=".")[-1] == [1e6, -2000.25]
    path = write(tmp_path, "\n".join(lines))
    with pytest.raises(SourceError, match="line 43: column 'a' holds '1.00'"):
        rows_of(path, decimal=",", thousands=".")


def test_options_change_the_fingerprint(tmp_path):
    path = write(tmp_path, "a;b\n1;2\n3;4\n")
    assert "decimal" not in open_rows(path).fingerprint()
    assert open_rows(path, decimal=",").fingerprint()["decimal"] == ","


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decimal": ",", "thousands": ","}, "both ','"),
        ({"thousands": "ab"}, "give one character"),
        ({"delimiter": ""}, "give one character"),
        ({"comment": ""}, "comment is empty"),
        ({"skip": -1}, "skip is -1"),
        ({"encoding": "klingon"}, "encoding is 'klingon'"),
    ],
)
def test_a_bad_option_is_explained(options, message):
    with pytest.raises(ValueError, match=message):
        Dialect(**options)
