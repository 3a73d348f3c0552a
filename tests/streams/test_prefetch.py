"""Reading ahead: in order, bounded, with every error, and without threads left behind."""

import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sksketch.streams.prefetch import read_ahead


def threads():
    return [t for t in threading.enumerate() if t.name == "sksketch-read-ahead"]


@given(st.integers(0, 30), st.integers(1, 4))
def test_items_come_in_order(n, depth):
    assert list(read_ahead((i for i in range(n)), depth)) == list(range(n))
    assert not threads()


def test_no_more_than_the_depth_is_made_ahead():
    made = []

    def items():
        for i in range(100):
            made.append(i)
            yield i

    ahead = read_ahead(items(), 2)
    assert not made
    assert next(ahead) == 0
    time.sleep(0.1)
    # Two wait in the queue and one in the hands of the thread.
    assert len(made) <= 4
    ahead.close()
    assert not threads()


def test_an_error_comes_where_its_item_would_have():
    def items():
        yield 1
        raise OSError("the disk is gone")

    ahead = read_ahead(items())
    assert next(ahead) == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(ahead)
    assert not threads()


def test_the_generator_is_closed_when_the_reader_stops():
    closed = []

    def items():
        try:
            while True:
                yield 0
        finally:
            closed.append(True)

    for stop in (lambda ahead: ahead.close(), lambda ahead: None):
        ahead = read_ahead(items())
        next(ahead)
        stop(ahead)
        del ahead
        assert not threads()
    assert closed == [True, True]


def test_the_next_item_is_made_while_this_one_is_used():
    made = threading.Event()

    def items():
        yield "first"
        made.set()
        yield "second"

    found = read_ahead(items())
    assert next(found) == "first"
    # Nobody has asked for the second one yet.
    assert made.wait(timeout=30)
    assert list(found) == ["second"]


# Peak memory beyond the imports, in MiB, while all rows are read.
MEASURE = """
import sys, sksketch, pyarrow, pyarrow.parquet, pyarrow.csv
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(l for l in lines if l.startswith("VmHWM")).split()[1]) / 1024
source = sksketch.open_rows(sys.argv[1])
before = peak()
rows = sum(len(block.X) for block in source.blocks())
print(rows, peak() - before)
"""


def memory(path):
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True
    )
    rows, used = done.stdout.split()
    return int(rows), float(used)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("dictionary", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_memory_is_flat(tmp_path, dictionary):
    rng = np.random.default_rng(0)
    table = pa.table({f"c{j}": rng.standard_normal(200_000) for j in range(40)})
    options = {"row_group_size": 200_000, "use_dictionary": dictionary}
    (tmp_path / "few").mkdir()
    (tmp_path / "many").mkdir()
    for part in range(6):
        folder = tmp_path / ("few" if part < 2 else "many")
        pq.write_table(table, folder / f"{part}.parquet", **options)
    del table
    rows, few = memory(tmp_path / "few")
    more_rows, many = memory(tmp_path / "many")
    assert (rows, more_rows) == (400_000, 800_000)
    # One row group is 61 MiB, of which two are held: one is used while the next is decoded.
    assert many < (300 if dictionary else 180)
    # Where there are few, it is chance whether two are ever held together.
    assert many < max(few, 2 * 61) + 40
