"""The same bits, however rows lie in memory, come in blocks, and whatever works on them."""

from __future__ import annotations

import functools
import json
import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import sksketch
from robustness import abuse, bits, children, everyone
from robustness.conftest import FULL
from sksketch.arrays.threads import blas_libraries, one_blas_thread

pytestmark = everyone.QUIET

# Its bandwidth is that of the first block.
BY_BLOCK = ("RandomFeatures",)


def names(full):
    return [*(everyone.SKETCHES if full else abuse.SKETCHES), *everyone.ESTIMATORS]


@functools.cache
def plain(name, dtype="f8", sparse=False):
    return bits.digest(name, dtype=dtype, sparse=sparse)


@pytest.mark.parametrize("layout", bits.LAYOUTS if FULL else bits.REDUCED)
def test_rows_anywhere_in_memory(layout, full, tally):
    ways = [(d, s) for d in ("f8", "f4") for s in (False, True)] if full else [("f8", False)]
    for dtype, sparse in ways:
        for name in names(full):
            if sparse and not bits.takes_sparse(name):
                continue
            block = None if name in BY_BLOCK else 50
            options = {"dtype": dtype, "sparse": sparse}
            found = bits.digest(name, layout=layout, block=block, **options)
            assert found == plain(name, **options), (name, layout, options)
            tally("same bits", {"layouts": 1})


@pytest.mark.parametrize("layout", ["address 3", "Fortran order", "backwards"])
def test_sparse_rows_anywhere_in_memory(layout, tally):
    for name in ("sfd boosted", "countsketch 20", "StreamingPCA", "OnlineNewtonRegressor"):
        found = bits.digest(name, layout=layout, block=50, sparse=True)
        assert found == plain(name, sparse=True), (name, layout)
        tally("same bits", {"layouts": 1})


@pytest.mark.parametrize("block", [1, 7, 64] if FULL else [7])
def test_blocks_of_any_size(block, full, tally):
    for name in names(full):
        if name not in BY_BLOCK:
            assert bits.digest(name, block=block) == plain(name), (name, block)
            tally("same bits", {"block sizes": 1})


def test_weights_and_targets_anywhere_in_memory(tally):
    X, y = everyone.X, everyone.TARGETS
    weights = np.random.default_rng(0).random(len(X)) + 0.5
    for layout in bits.LAYOUTS:
        found = []
        for lay in (np.array, bits.LAYOUTS[layout]):
            ridge = sksketch.StreamingRidge(sketch="rfd", sketch_size=4)
            pca = sksketch.StreamingPCA(2).fit(lay(X), sample_weight=lay(weights))
            many = sksketch.StreamingRidge().fit(lay(X), lay(X[:, :2] + 1.0), lay(weights))
            ridge.fit(lay(X), lay(y), lay(weights))
            found.append(everyone.digest([model.state().arrays for model in (ridge, pca, many)]))
        assert found[0] == found[1], layout
        tally("same bits", {"layouts": 1})


@pytest.mark.slow
@pytest.mark.parametrize("n_threads", [2, 3] if FULL else [2])
def test_any_number_of_blas_threads(n_threads, full, tally):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = []
        for n in (1, n_threads):
            with threadpool_limits(n):
                found.append(bits.digests(True, full))
    different = [name for name in found[0] if found[0][name] != found[1][name]]
    assert not different
    tally("same bits", {f"{n_threads} BLAS threads": len(found[0])})


CHILD = "import sys; from robustness import bits; bits.main(sys.argv[1] == '1')"


def in_child(full, **environment):
    done = children.python(CHILD, str(int(full)), timeout=3000, **environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_any_process(full, tmp_path, tally):
    """Other seeds of hashes, other threads from the start, and kernels that are compiled anew."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = {str(wide): bits.digests(wide, full) for wide in (False, True)}
    cases = [{"PYTHONHASHSEED": "1", "OPENBLAS_NUM_THREADS": "3", "OMP_NUM_THREADS": "2"}]
    if full:
        cases += [{"PYTHONHASHSEED": str(seed)} for seed in (2, 12345)]
        cases += [{"OPENBLAS_NUM_THREADS": n, "OMP_NUM_THREADS": n} for n in ("1", "2", "3")]
        cases += [{"NUMBA_CACHE_DIR": str(tmp_path)}, {"NUMBA_NUM_THREADS": "1"}]
    for case in cases:
        found = in_child(full, **case)
        assert found == expected, case
        tally("same bits", {"processes": sum(map(len, found.values()))})


def test_the_limit_of_threads_is_lifted_again():
    def now():
        return [n_threads() for _, n_threads in blas_libraries()]

    with threadpool_limits(2, user_api="blas"):
        before = now()
        model = sksketch.StreamingPCA(2).fit(everyone.X)
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit(np.full((2, everyone.X.shape[1]), np.nan))
        assert now() == before
        with one_blas_thread(), one_blas_thread():
            assert set(now()) <= {1}
        assert now() == before
