import numpy as np
import pytest
import scipy.sparse as sp

from sksketch.arrays.random import stream
from sksketch.reduction.residual import in_memory, look, spectral_error
from sksketch.reduction.subspace import DenseBasis, FactoredBasis


def bounds(rows, basis, seed=0, weights=None):
    weights = np.ones(rows.shape[0]) if weights is None else weights
    blocks = in_memory(rows, weights)
    return spectral_error(blocks, basis, look(blocks), seed)


def test_rows_that_know_the_seed_do_not_know_the_probes():
    rng = np.random.default_rng(0)
    d = 60
    basis = DenseBasis(np.eye(d)[:, :5])
    # A direction that probes of the seed alone would not see.
    known = stream(0, "residual").standard_normal((8, d))
    known[:, :5] = 0.0
    hidden = rng.standard_normal(d)
    hidden[:5] = 0.0
    hidden -= np.linalg.pinv(known) @ (known @ hidden)
    hidden /= np.linalg.norm(hidden)
    bulk = rng.standard_normal((300, d))
    bulk -= np.outer(bulk @ hidden, hidden)
    rows = np.vstack([bulk, 40.0 * hidden])
    truth = np.linalg.norm(rows[:, 5:], 2) ** 2
    low, high = bounds(rows, basis)
    assert low <= truth <= high
    # The same rows, the same answer.
    assert bounds(rows, basis) == (low, high)


def test_the_digest_sees_every_entry_and_no_cut():
    rng = np.random.default_rng(1)
    X, w = rng.standard_normal((30, 4)), rng.random(30)
    for rows in (X, sp.csr_array(X * (X > 0))):
        whole = look(lambda rows=rows: [(rows, w)]).digest
        cut = [(rows[:7], w[:7]), (rows[7:], w[7:])]
        assert look(lambda cut=cut: cut).digest == whole
        other = rows.copy()
        other[17, 2] = np.nextafter(rows[17, 2], 9.0)
        assert look(lambda other=other: [(other, w)]).digest != whole
        assert look(lambda rows=rows: [(rows, w[::-1])]).digest != whole


@pytest.mark.parametrize("shape", [(200, 30), (20, 90)])
@pytest.mark.parametrize("scale", [1e-90, 1.0, 1e90])
@pytest.mark.parametrize("rank", [1, 10, 20])
def test_what_is_left_of_rows_is_bracketed_to_the_last_bits(shape, scale, rank):
    rng = np.random.default_rng(rank)
    rows = scale * rng.standard_normal((shape[0], 12)) @ rng.standard_normal((12, shape[1]))
    weights = rng.choice([0.5, 1.0, 4.0], shape[0])
    Y = rows.T @ rng.standard_normal((shape[0], rank)) / scale
    for basis in (FactoredBasis(Y), DenseBasis(np.linalg.qr(Y)[0])):
        U = basis.lift(np.eye(basis.n_components)).astype(np.longdouble)
        exact = np.sqrt(weights)[:, None].astype(np.longdouble) * rows / scale
        left = np.asarray(exact - (exact @ U) @ U.T, dtype=float)
        truth = np.linalg.norm(left, 2) ** 2
        low, high = (end / scale**2 for end in bounds(rows, basis, weights=weights))
        assert low <= truth * (1 + 1e-12)
        assert truth <= high * (1 + 1e-12)
        if rank > 12:
            assert high < 1e-15 * (exact**2).sum()
