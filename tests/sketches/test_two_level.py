import numpy as np
import pytest
import scipy.sparse as sp

from _support import laws, zoo
from sksketch import NotMergeableError, TwoLevelFrequentDirections, make_sketch

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 30)) / np.arange(1, 31)
NAMES = [name for name in laws.SKETCHES if name.startswith("2lfd")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_and_sparse_rows_are_the_same_rows(name, dtype):
    rows = (X * (RNG.random(X.shape) < 0.3)).astype(dtype)
    dense, thin, mixed = (laws.SKETCHES[name]() for _ in range(3))
    dense.update(rows)
    thin.update(sp.csr_array(rows))
    mixed.update(rows[:77]).update(sp.csc_array(rows[77:300])).update(rows[300:])
    laws.assert_same_bits(dense, thin)
    laws.assert_same_bits(thin, mixed)
    laws.bound_is_true(thin, rows)


@pytest.mark.parametrize("name", NAMES)
def test_zero_rows_are_counted_and_not_stored(name):
    padded = np.concatenate([X[:50], np.zeros((999, 30)), X[50:]])
    one, two = laws.SKETCHES[name]().update(padded), laws.SKETCHES[name]().update(X)
    assert one.n_rows_seen == 1399
    np.testing.assert_array_equal(one.matrix, two.matrix)
    assert laws.SKETCHES[name]().update(np.zeros((9, 4))).summary().rank == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1e-150, 1e148])
def test_rows_of_any_size(name, scale):
    big, one = (laws.SKETCHES[name]().update(s * X) for s in (scale, 1.0))
    np.testing.assert_allclose(
        big.summary().eigenvalues / scale**2, one.summary().eigenvalues, rtol=1e-6
    )
    assert big.error_bound() / scale**2 == pytest.approx(one.error_bound(), rel=1e-6)


@pytest.mark.parametrize("sample", [False, True])
def test_nothing_is_lost_when_the_rows_fit_the_first_level(sample):
    sketch = TwoLevelFrequentDirections(12, rank=3, sample=sample).update(X[:9])
    np.testing.assert_allclose(sketch.summary().to_dense(), zoo.gram(X[:9]), atol=1e-12)
    assert sketch.error_bound() <= 1e-9 * sketch.squared_norm


@pytest.mark.parametrize("sample", [False, True])
def test_merging_keeps_the_smaller_second_level(sample):
    options = {"rank": 2, "sample": sample}
    one = TwoLevelFrequentDirections(10, seed=1, **options).update(X[:150])
    two = TwoLevelFrequentDirections(14, seed=2, **options).update(X[150:])
    for merged in (one | two, two | one):
        assert len(merged.matrix) <= 10
        assert merged.n_rows_seen == 400
        laws.bound_is_true(merged, X)
        laws.bound_is_true(merged.update(X), np.concatenate([X, X]))


def test_merging_across_precisions():
    options = {"rank": 2, "buffer_rows": 9}
    single = TwoLevelFrequentDirections(10, **options).update(X[:150].astype(np.float32))
    double = TwoLevelFrequentDirections(10, **options).update(X[150:])
    both = np.concatenate([X[:150].astype(np.float32), X[150:].astype(np.float32)])
    laws.bound_is_true(single | double, both)
    laws.bound_is_true(double | single, both)
    assert (single | double).dtype == np.float32


@pytest.mark.parametrize("options", [{"rank": 2}, {"sample": True}, {"initial_ridge": 1.0}])
def test_refusals(options):
    with pytest.raises(NotMergeableError, match=next(iter(options))):
        laws.two_level().update(X).merge(laws.two_level(**options).update(X))


@pytest.mark.parametrize(
    "options",
    [
        *({"sketch_size": 6}, {"sketch_size": 0}, {"rank": 0}, {"rank": 1.5}, {"rank": 3}),
        *({"buffer_rows": 6}, {"buffer_rows": 0}, {"initial_ridge": -1.0}),
    ],
)
def test_bad_options_are_refused_at_once(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        TwoLevelFrequentDirections(**({"sketch_size": 9, "rank": 2} | options))


def test_by_key_and_plan():
    assert make_sketch("2lfd", 24).rank == 4
    assert make_sketch("2lfd", 5).rank == 1
    assert make_sketch("2lfd", 24, rank=7).rank == 7
    with pytest.raises(ValueError, match="sketch_size"):
        make_sketch("2lfd", 3)
    sketch = make_sketch("2lfd", 24)
    assert "waiting" in sketch.plan()
    assert sketch.shrinkage == 0.0
    assert "12 rows for the leading directions and 12" in sketch.update(X).plan()
    assert sketch.fresh().state().meta == make_sketch("2lfd", 24).state().meta
