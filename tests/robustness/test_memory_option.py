"""--memory: kept, or refused with what is needed; also where row groups are large."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from robustness import children

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")

PEAK = """
import sys
from sksketch.cli import main
code = main(sys.argv[1:])
status = open("/proc/self/status").read()
print("peak", 1024 * int(status.partition("VmHWM:")[2].split()[0]))
sys.exit(code)
"""
# Random numbers have dictionaries as large as Parquet allows, rounded ones small dictionaries.
KINDS = {
    "dictionaries": ({"row_group_size": 200_000}, 12),
    "plain": ({"row_group_size": 200_000, "use_dictionary": False, "compression": "none"}, 12),
    "rounded": ({"row_group_size": 200_000}, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_kept_with_large_row_groups(kind, tmp_path, full, tally):
    options, digits = KINDS[kind]
    rng = np.random.default_rng(0)
    columns = {f"c{i}": rng.standard_normal(400_000).round(digits) for i in range(40)}
    path, model = tmp_path / "rows.parquet", tmp_path / "m.sks"
    pq.write_table(pa.table(columns), path, **options)
    del columns
    limits = [400, 450, 550] if full else [400]
    while limits:
        limit = limits.pop(0)
        done = children.python(
            PEAK, "pca", str(path), "-k", "2", "--memory", f"{limit}MB", "-q", "-o", str(model)
        )
        assert done.returncode in (0, 2), done.stderr
        if done.returncode:
            # What it says is enough has to be enough.
            limits.append(int(re.search(r"give at least (\d+)MB", done.stderr)[1]))
            tally("limits on memory", {"refused, with what is needed": 1})
            continue
        peak = int(done.stdout.split("peak ")[1])
        assert peak <= limit * 1e6, f"{peak / 1e6:.0f} MB under --memory {limit}MB"
        tally("limits on memory", {"kept": 1})
