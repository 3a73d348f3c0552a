"""Too little memory: a clear error, and a process that goes on."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from robustness import children

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space")

# Work that fits comes before and after the work that does not.
CEILING = """
import sys, numpy as np, sksketch
from robustness import children
rng = np.random.default_rng(0)
small = rng.standard_normal((200, 50))
before = sksketch.StreamingPCA(3).fit(small).components_
children.limit_memory(400 * 2**20)
wide = np.broadcast_to(rng.standard_normal((1, 1)), (4, 60_000))
kept = sksketch.StreamingPCA(3, sketch="exact").fit(small)
works = {
    "exact": lambda: sksketch.ExactCovariance().update(wide).summary(),
    "fd": lambda: sksketch.FrequentDirections(2000).update(np.repeat(wide[:1], 9000, axis=0)),
    "pca": lambda: sksketch.StreamingPCA(3, sketch="exact").fit(wide).components_,
    "gaussian": lambda: sksketch.GaussianSketch(5000).update(wide),
    "ridge": lambda: sksketch.StreamingRidge(sketch="exact").fit(wide, np.arange(4.0)).coef_,
    "features": lambda: sksketch.RandomFeatures(n_random_features=10**7).fit_transform(small),
    "refit": lambda: kept.fit(np.broadcast_to(np.int8(1), (100_000, 10_000))),
}
for name in sys.argv[1:]:
    try:
        works[name]()
    except MemoryError as error:
        print(name, "MemoryError", "Unable to allocate" in str(error) or len(str(error)) > 20)
    else:
        print(name, "done")
np.testing.assert_array_equal(sksketch.StreamingPCA(3).fit(small).components_, before)
np.testing.assert_array_equal(kept.components_, before)
print("still right")
"""


def test_what_does_not_fit_raises_and_what_fits_goes_on(tally):
    names = ["exact", "fd", "pca", "gaussian", "ridge", "features", "refit"]
    done = children.python(CEILING, *names)
    assert done.returncode == 0, done.stderr[-2000:]
    *lines, last = done.stdout.splitlines()
    assert last == "still right"
    assert lines == [f"{name} MemoryError True" for name in names], done.stdout
    tally("memory ceiling", {"MemoryError that says how much, and went on": len(lines)})


COMMAND = """
import sys
from robustness import children
from sksketch.cli import main
children.limit_memory(500 * 2**20)
sys.argv = ["sksketch", *sys.argv[1:]]
sys.exit(main())
"""


def test_the_command_line_says_it_in_one_line(tmp_path, tally):
    rows = tmp_path / "a.npy"
    np.save(rows, np.ones((700, 20_000), np.float32))
    for options in (["--memory", "100MB"], ["--sketch", "exact"]):
        done = children.python(
            COMMAND, "pca", str(rows), "-o", str(tmp_path / "m.sks"), "--quiet", *options
        )
        assert done.returncode == 2, (options, done.returncode, done.stderr[-1500:])
        assert "Traceback" not in done.stderr
        assert len(done.stderr.strip().splitlines()) <= 2, done.stderr
        assert not (tmp_path / "m.sks").exists()
        tally("memory ceiling", {"exit code 2 and one line from the command": 1})
