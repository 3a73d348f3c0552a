import copy
import pickle

import numpy as np
import pytest

from _support import laws, zoo
from sksketch import (
    Centered,
    ExactCovariance,
    NotMergeableError,
)

SOLVERS = ["exact", "block", "covariance"]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((210, 45)) / np.arange(1, 46)


def test_merging_different_sizes_keeps_the_smaller():
    one = laws.fd(laws.EXACT, sketch_size=3).update(X[:100])
    two = laws.fd(laws.EXACT, sketch_size=7).update(X[100:])
    for merged in (one | two, two | one):
        assert len(merged.matrix) <= 3
        laws.bound_is_true(merged, X)
        merged.update(X)
        laws.bound_is_true(merged, np.concatenate([X, X]))


@pytest.mark.parametrize("left", SOLVERS)
@pytest.mark.parametrize("right", SOLVERS)
@pytest.mark.parametrize("dtypes", [(np.float64, np.float32), (np.float32, np.float64)])
def test_merging_across_solvers_and_precisions(left, right, dtypes):
    A, B = X[:100].astype(dtypes[0]), X[100:].astype(dtypes[1])
    merged = laws.fd(laws.SOLVERS[left]).update(A) | laws.fd(laws.SOLVERS[right]).update(B)
    merged.update(A)
    both = np.concatenate([A, B, A]).astype(np.float32)
    laws.bound_is_true(merged, both)
    assert merged.dtype == (np.float64 if left == "covariance" else dtypes[0])


def test_merging_numbers_that_the_precision_here_can_not_hold_is_refused():
    small = laws.fd(laws.EXACT).update(X.astype(np.float32))
    before = copy.deepcopy(small)
    with pytest.raises(ValueError, match="float32"):
        small.merge(laws.fd(laws.EXACT).update(1e60 * X))
    laws.assert_same_bits(small, before)


def test_merging_large_single_precision_sketches_is_fine():
    rows = (1e17 * np.random.default_rng(0).standard_normal((600, 45))).astype(np.float32)
    for make in (lambda: laws.fd(laws.EXACT), lambda: Centered(laws.fd(laws.EXACT))):
        same = make().update(rows[:300]) | make().update(rows[300:])
        wider = make().update(rows[:300].astype(np.float64)) | make().update(rows[300:])
        for merged in (same, wider):
            np.testing.assert_allclose(merged.squared_norm, zoo.energy(rows), rtol=0.05)


@pytest.mark.parametrize("solver", SOLVERS)
def test_merging_empty_sketches(solver):
    options = laws.SOLVERS[solver]
    full = laws.fd(options).update(X)
    left, right = laws.fd(options).merge(full), copy.deepcopy(full).merge(laws.fd(options))
    laws.assert_same_bits(right, full)
    laws.bound_is_true(left, X)
    assert left.n_rows_seen == 210
    empty = laws.fd(options).merge(laws.fd(options))
    assert empty.n_features is None
    assert (laws.fd(options) | full).n_rows_seen == 210


@pytest.mark.parametrize("solver", SOLVERS)
def test_merging_with_itself_doubles(solver):
    sketch = laws.fd(laws.SOLVERS[solver]).update(X)
    sketch.merge(sketch)
    assert sketch.n_rows_seen == 420
    laws.bound_is_true(sketch, np.concatenate([X, X]))


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "truncate"},
        {"decay": 0.5},
        {"initial_ridge": 1.0},
        {"rule": "parameterized"},
    ],
)
def test_sketches_of_different_things_do_not_merge(options):
    one, two = laws.fd(laws.EXACT).update(X), laws.fd(laws.EXACT, **options).update(X)
    for left, right in ((one, two), (two, one)):
        before = copy.deepcopy(left)
        with pytest.raises(NotMergeableError, match=next(iter(options))):
            left.merge(right)
        laws.assert_same_bits(left, before)


def test_other_refusals_to_merge():
    sketch = laws.fd(laws.EXACT).update(X)
    with pytest.raises(NotMergeableError, match="45 and 44 features"):
        sketch.merge(laws.fd(laws.EXACT).update(X[:, 1:]))
    with pytest.raises(NotMergeableError, match="ExactCovariance"):
        sketch.merge(ExactCovariance().update(X))
    with pytest.raises(NotMergeableError, match="Centered"):
        sketch.merge(Centered(laws.fd(laws.EXACT)).update(X))
    energetic = laws.fd(laws.EXACT, correction="energy").update(X)
    with pytest.raises(NotMergeableError, match="energy"):
        energetic.merge(sketch)
    with pytest.raises(NotMergeableError, match="seed"):
        energetic.merge(laws.fd(laws.EXACT, correction="energy", seed=1).update(X))
    fractions = [
        laws.fd(laws.EXACT, rule="parameterized", fraction=f).update(X) for f in (0.2, 0.4)
    ]
    with pytest.raises(NotMergeableError, match="fraction"):
        fractions[0].merge(fractions[1])


def test_or_leaves_both_alone():
    one, two = laws.fd(laws.BLOCK).update(X[:90]), laws.fd(laws.BLOCK).update(X[90:])
    copies = copy.deepcopy([one, two])
    merged = one | two
    merged.update(X)
    laws.assert_same_bits(one, copies[0])
    laws.assert_same_bits(two, copies[1])


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_go_on_alone(solver, duplicate):
    sketch = laws.fd(laws.SOLVERS[solver]).update(X[:100])
    twin = duplicate(sketch)
    laws.assert_same_bits(sketch.update(X[100:]), twin.update(X[100:]))
    twin.update(X)
    assert sketch.n_rows_seen == 210


def test_energy_read_out_survives_merges():
    # The probes are the same everywhere, so their images add.
    parts = np.array_split(X, 4)
    shards = [laws.fd(laws.EXACT, correction="energy").update(part) for part in parts]
    merged = (shards[0] | shards[1]) | (shards[2] | shards[3])
    S = zoo.gram(X) - zoo.gram(merged.matrix)
    wanted = (S * S).sum() / np.trace(S)
    shift = merged.summary().ridge
    # Eight Gaussian probes estimate trace(S^2) to about a half.
    assert 0.4 * wanted <= shift <= 2.0 * wanted
