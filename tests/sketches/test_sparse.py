import numpy as np
import pytest
import scipy.sparse as sp

from _support import laws, zoo
from sksketch import NotMergeableError, SparseFrequentDirections, make_sketch
from sksketch.arrays.sparse import SparseRows
from sksketch.sketches.directions.shrink import sparse_shrink
from sksketch.sketches.directions.shrink.sparse_shrink import SparseTask, boosted_sparse_shrink

RNG = np.random.default_rng(0)
X = sp.random_array((700, 60), density=0.1, format="csr", rng=RNG)


# Dense rows by the hundred: no flush before a whole matrix is there.
PATIENT = {"buffer_nnz": 10**7, "buffer_rows": 10**4}


def missed_by_one_product(n_directions, seed=0, n_rows=120, n_features=120):
    """Return rows of which directions without a power iteration miss too much.

    One strong direction fewer than are looked for, equal ones, over a weak flat rest: a square
    Gaussian matrix has a small singular value, and what it hides is lost.
    """
    s = np.full(n_features, 0.01)
    s[: n_directions - 1] = 1.0
    return zoo.with_spectrum(s, n_rows, n_features, seed)


@pytest.mark.parametrize("name", [name for name in laws.SKETCHES if name.startswith("sfd")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_and_sparse_rows_are_the_same_rows(name, dtype):
    rows = X.astype(dtype)
    dense, thin, mixed = (laws.SKETCHES[name]() for _ in range(3))
    dense.update(rows.toarray())
    thin.update(rows)
    for start, stop in [(0, 1), (1, 90), (90, 91), (91, 400), (400, 700)]:
        piece = rows[start:stop]
        mixed.update(piece if start % 2 else piece.toarray())
    laws.assert_same_bits(dense, thin)
    laws.assert_same_bits(thin, mixed)
    laws.bound_is_true(thin, rows.toarray())


@pytest.mark.parametrize("name", [name for name in laws.SKETCHES if name.startswith("sfd")])
def test_weights_are_copies(name):
    weights = np.random.default_rng(1).choice([0.0, 1.0, 4.0], 700)
    weighted = laws.SKETCHES[name]().update(X, weights)
    scaled = laws.SKETCHES[name]().update(np.sqrt(weights)[:, None] * X.toarray())
    np.testing.assert_array_equal(weighted.matrix, scaled.matrix)
    # What the roots of weights may round is allowed for.
    assert scaled.error_bound() <= weighted.error_bound() <= 1.000001 * scaled.error_bound()


def test_zero_rows_are_counted_and_not_stored():
    padded = sp.vstack([X[:50], sp.csr_array((5000, 60)), X[50:]], format="csr")
    stored = sp.csr_array((np.zeros(3), [0, 1, 2], [0, 1, 2, 3]), shape=(3, 60))
    one, two = laws.sfd(buffer_rows=25).update(padded).update(stored), laws.sfd(buffer_rows=25)
    two.update(X)
    assert one.n_rows_seen == 5703
    assert one.n_shrinks == two.n_shrinks
    np.testing.assert_array_equal(one.matrix, two.matrix)
    nothing = laws.sfd().update(np.zeros((9, 4)))
    assert nothing.summary().rank == 0
    assert nothing.error_bound() == 0.0


@pytest.mark.parametrize(
    ("options", "n_flushes"),
    [
        ({}, 700 // 60),
        ({"buffer_rows": 100}, 700 // 100),
        ({"buffer_nnz": 150}, 700 // 25),
        ({"buffer_nnz": 151}, 700 // 26),
        ({"buffer_nnz": 10**6}, 700 // 60),
        ({"sketch_size": 2, "buffer_rows": 700}, 700 // 30),
    ],
)
def test_the_buffer_rule(options, n_flushes):
    # Six entries in each row of 60 columns. By default a flush at 60 rows or 180 entries.
    columns = np.argsort(np.random.default_rng(0).random((700, 60)), axis=1)[:, :6]
    rows = sp.csr_array((np.ones(4200), columns.ravel(), np.arange(0, 4201, 6)), shape=(700, 60))
    sketch = laws.sfd(**({"sketch_size": 40} | options))
    assert sketch.update(rows).n_shrinks == n_flushes


def test_few_rows_lose_nothing():
    sketch = SparseFrequentDirections(30).update(X[:30])
    np.testing.assert_allclose(sketch.summary().to_dense(), zoo.gram(X[:30].toarray()), atol=1e-12)
    assert sketch.n_tries == 0
    assert sketch.summary().confidence == 1.0
    # More columns' worth of rows than columns: still nothing to lose.
    full = SparseFrequentDirections(60).update(X)
    assert full.error_bound() <= 1e-9 * full.squared_norm


def test_without_verification_the_lost_mass_is_the_bound():
    sketch = SparseFrequentDirections(10, boosted=False).update(X)
    mass = zoo.energy(X.toarray()) - zoo.energy(sketch.matrix)
    assert sketch.summary().confidence == 1.0
    assert sketch.error_bound() <= mass * (1 + 1e-9)
    verified = SparseFrequentDirections(10).update(X)
    assert verified.error_bound() < 0.5 * sketch.error_bound()
    assert 0.99 <= verified.summary().confidence < 1.0


@pytest.mark.parametrize("seed", range(5))
def test_a_rejected_try_is_repeated_with_more_iterations(seed):
    A = missed_by_one_product(32, seed)
    options = PATIENT | {"buffer_rows": 120, "seed": seed}
    hasty = SparseFrequentDirections(31, n_power_iter=0, **options).update(A)
    assert hasty.n_shrinks == 1
    assert hasty.n_tries == 2
    assert SparseFrequentDirections(31, **options).update(A).n_tries == 1
    laws.bound_is_true(hasty, A)
    # Both tries spend of the failure probability.
    spent = 0.01 / 2 * (1 + 1 / 4)
    assert hasty.summary().confidence == pytest.approx(1 - spent, abs=1e-12)


@pytest.mark.parametrize("n_rows", [120, 1100])
def test_when_no_try_is_accepted(n_rows):
    A = missed_by_one_product(32, n_rows=n_rows)
    options = PATIENT | {"n_power_iter": 0, "max_tries": 1}
    sketch = SparseFrequentDirections(31, **options).update(A)
    laws.bound_is_true(sketch, A)
    mass = zoo.energy(A) - zoo.energy(sketch.matrix)
    if n_rows <= sparse_shrink.EXACT_ROWS:
        # Exact: as good as Frequent Directions, and certain.
        assert sketch.summary().confidence == 1.0
        assert sketch.shrinkage == pytest.approx(1e-4, rel=1e-6)
    else:
        # The bound is true, and more than the lemma would allow.
        assert mass / (6 / 41 * 32) < sketch.shrinkage <= mass * (1 + 1e-9)


def test_tries_are_numbered_over_the_whole_stream():
    A = missed_by_one_product(32)
    task = SparseTask(SparseRows.plain(sp.csr_array(A)), 31, 0, True, 4, 0.01, 0, n_tries=6)
    memory, n_tries = boosted_sparse_shrink(task)
    assert n_tries == 8
    spent = 0.01 / 2 * (1 / 49 + 1 / 64)
    assert memory.ledger.failure_probability == pytest.approx(spent)


@pytest.mark.parametrize("scale", [1e-150, 1e-60, 1e60, 1e148])
def test_rows_of_any_size(scale):
    big, one = (laws.sfd(buffer_rows=25).update(s * X) for s in (scale, 1.0))
    np.testing.assert_allclose(
        big.summary().eigenvalues / scale**2, one.summary().eigenvalues, rtol=1e-6
    )
    assert big.n_tries == one.n_tries
    # Other rows, other probes.
    assert big.error_bound() / scale**2 == pytest.approx(one.error_bound(), rel=0.3)


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("correction", ["none", "energy"])
@pytest.mark.parametrize("n_rows", [3, 40])
def test_blocks_of_a_wrapper(centered, correction, n_rows):
    # Rows around a centre that is never subtracted, as a block and as rows not yet taken.
    extra = X[-n_rows:]
    center = np.full(60, 0.3) if centered else np.zeros(0)
    rows = SparseRows(extra, np.ones(n_rows) if centered else np.zeros(0), center)
    A = np.concatenate([X[:300].toarray(), extra.toarray() - (center if centered else 0.0)])
    sketch = SparseFrequentDirections(8, buffer_rows=35, correction=correction).update(X[:300])
    before = sketch.copy()
    peek = sketch._answer(rows)
    laws.assert_same_bits(sketch, before)
    sketch._take(rows)
    sketch.n_rows_seen += n_rows
    laws.bound_is_true(sketch, A)
    taken = sketch.summary()
    assert peek.summary.n_rows_seen == taken.n_rows_seen
    np.testing.assert_array_equal(peek.summary.eigenvalues, taken.eigenvalues)
    # A read has a smaller share of the failure probability.
    assert taken.error_bound <= peek.summary.error_bound <= 2 * taken.error_bound


def test_merging_flushes_copies_and_adds_failure_probabilities():
    one, two = (laws.sfd(9, buffer_rows=35, seed=s).update(X[s::2]) for s in (0, 1))
    before = two.state()
    merged = one | two
    laws.assert_same_bits(two, SparseFrequentDirections.from_state(before))
    lacks = [1 - sketch.summary().confidence for sketch in (one, two, merged)]
    assert lacks[2] == pytest.approx(lacks[0] + lacks[1], abs=1e-12)
    laws.bound_is_true(merged, X.toarray())
    assert merged.n_tries == sum(s.n_tries + (len(s._buffer) > 9) for s in (one, two))


@pytest.mark.parametrize(
    ("left", "right", "word"),
    [
        ({}, {"initial_ridge": 1.0}, "initial_ridge"),
        ({"correction": "energy"}, {}, "energy"),
        ({"correction": "energy"}, {"correction": "energy", "seed": 1}, "seed"),
    ],
)
def test_refusals(left, right, word):
    with pytest.raises(NotMergeableError, match=word):
        laws.sfd(**left).update(X).merge(laws.sfd(**right).update(X))


@pytest.mark.parametrize(
    "options",
    [
        *({"sketch_size": 0}, {"sketch_size": True}, {"sketch_size": 2.5}),
        *({"buffer_nnz": 0}, {"buffer_rows": -1}, {"n_power_iter": -1}, {"max_tries": 0}),
        *({"failure_probability": 0.0}, {"failure_probability": 2.0}, {"correction": "some"}),
        *({"failure_probability": "1"}, {"initial_ridge": -1.0}),
    ],
)
def test_bad_options_are_refused_at_once(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        SparseFrequentDirections(**({"sketch_size": 4} | options))


def test_by_key_and_plan():
    sketch = make_sketch("sfd", 9, boosted=False)
    assert "waiting" in sketch.plan()
    assert sketch.shrinkage == 0.0
    plan = sketch.update(X).plan()
    assert "SparseFrequentDirections(9) on 60 columns" in plan
    assert "not verified" in plan
    assert sketch.fresh().state().meta == make_sketch("sfd", 9, boosted=False).state().meta
