"""What errors know beside their text, and that the text is made of it."""

import pickle

import pytest

from sksketch import NotMergeableError, PartitionError, SourceError, StreamingKernelPCA, open_rows
from sksketch.cli.app import in_options
from sksketch.exceptions import ExplainedError, Option, parts_of
from sksketch.run.shards import partition_error


def refused(source, **options):
    with pytest.raises(SourceError) as caught:
        list(open_rows(source, **options).blocks())
    return caught.value


def test_a_missing_value_is_told_in_fields(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n3,\n")
    error = refused(path)
    assert (error.place, error.column) == (f"{path}, line 3", "b")
    (remedy,) = error.remedies
    assert (remedy.name, remedy.values) == ("missing", ("mean", "drop"))
    assert str(error).endswith("missing value in column 'b'; pass missing='mean' or 'drop'")
    assert in_options(error).endswith("pass --missing mean or drop")


def test_a_column_of_text_is_told_in_fields(tmp_path):
    path = tmp_path / "{rows}.csv"
    path.write_text("a,b\n1,x\n3,y\n")
    error = refused(path)
    assert error.column == "b"
    assert str(error) == (
        f"{path}: column 'b' is not numeric (text); leave it out with columns=[...], pass "
        "one_hot='b', or give all to a TableEncoder with raw=True"
    )
    assert in_options(error).endswith("or give all to a TableEncoder with --encode")


@pytest.mark.parametrize(
    ("option", "python", "command"),
    [
        (Option("n_features"), "n_features", "--n-features"),
        (Option("resume", False), "resume=False", "--restart"),
        (Option("header", True, False), "header=True or False", "--header or --no-header"),
        (Option("format", "csv"), "format='csv'", "--format csv"),
        (Option("solver", "sketch"), "solver='sketch'", "--solver sketch"),
    ],
)
def test_an_option_is_spelled_for_both_kinds_of_users(option, python, command):
    error = ExplainedError("pass ", option)
    assert str(error) == f"pass {python}"
    assert in_options(error) == f"pass {command}"


def test_other_errors_are_left_as_they_are():
    assert in_options(ValueError("pass missing='mean'")) == "pass missing='mean'"


def test_a_partition_keeps_what_the_error_knew():
    inner = SourceError("a hole; pass ", Option("missing", "drop"), place="a.csv", column="b")
    error = partition_error(2, 5, inner)
    assert isinstance(error, PartitionError)
    assert (error.place, error.column) == ("partition 2 of 5", "b")
    assert str(error) == "partition 2 of 5: a.csv: a hole; pass missing='drop'"
    assert in_options(error) == "partition 2 of 5: a.csv: a hole; pass --missing drop"
    assert partition_error(1, 5, error) is error
    assert parts_of(KeyError()) == ("KeyError",)


def test_errors_travel_between_processes():
    error = SourceError("a hole; pass ", Option("missing", "drop"), place="a.csv", column="b")
    twin = pickle.loads(pickle.dumps(error))
    assert str(twin) == str(error)
    assert (twin.place, twin.column, twin.remedies[0].name) == ("a.csv", "b", "missing")


def test_estimators_name_their_own_parameters():
    with pytest.raises(NotMergeableError) as caught:
        StreamingKernelPCA().shard_template()
    assert [remedy.values for remedy in caught.value.remedies] == [("auto",), ("sketch",)]
    assert "pass --solver sketch" in in_options(caught.value)
