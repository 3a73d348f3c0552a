"""Estimators on rows of a device: the work is done there, and what is learned is plain numpy."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from sksketch import (
    OnlineNewtonRegressor,
    RandomReduction,
    ReducedRegressor,
    StreamingKernelPCA,
    StreamingPCA,
    StreamingRidge,
    StreamingRidgeCV,
    StreamingSVD,
    SubspaceReduction,
    load,
)

torch = pytest.importorskip("torch", reason="torch is not installed: no device to test on")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

DECOMPOSITIONS = [
    StreamingPCA(4),
    StreamingSVD(4),
    StreamingPCA(4, sketch="rfd", sketch_size=20),
    StreamingPCA(4, sketch="exact", whiten=True),
    StreamingPCA(3, sketch="2lfd", sketch_size=40),
]
REGRESSIONS = [
    StreamingRidge(),
    StreamingRidge(sketch="rfd", sketch_size=30, refine=20),
    StreamingRidge(sketch="gaussian", sketch_size=700),
    StreamingRidgeCV(),
]


def there(X):
    return torch.asarray(X, device=DEVICE)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 600)) * np.arange(1, 601) ** -0.8 + 0.5
    return X, X @ rng.standard_normal(600) + 0.1 * rng.standard_normal(1500)


@pytest.fixture(scope="module")
def sparse():
    rng = np.random.default_rng(1)
    X = sp.random_array((1500, 600), density=0.03, rng=rng, format="csr")
    X = sp.csr_array(X * np.arange(1, 601) ** -0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return X, there(X.toarray()).to_sparse_csr()


@pytest.mark.parametrize("estimator", DECOMPOSITIONS, ids=repr)
def test_components_of_rows_on_a_device(estimator, data, tmp_path):
    X, _ = data
    here, model = clone(estimator).fit(X), clone(estimator).fit(there(X))
    assert isinstance(model.components_, np.ndarray)
    scores = model.transform(there(X))
    assert isinstance(scores, torch.Tensor)
    assert scores.device.type == DEVICE
    # The leading components are known far better than they differ.
    gap = np.abs(np.abs(scores.cpu().numpy()) - np.abs(here.transform(X)))[:, :2].max()
    assert gap <= 0.02 * np.abs(here.transform(X)).max()
    np.testing.assert_allclose(model.transform(X), scores.cpu(), atol=1e-9)
    back = model.inverse_transform(scores)
    assert isinstance(back, torch.Tensor)
    np.testing.assert_allclose(back.cpu(), model.inverse_transform(scores.cpu().numpy()), atol=1e-9)
    np.testing.assert_allclose(model.reconstruction_error(there(X)), model.reconstruction_error(X))
    model.save(tmp_path / "model.sks")
    again = load(tmp_path / "model.sks").partial_fit(there(X[:50]))
    assert again.n_samples_seen_ == 1550


@pytest.mark.parametrize("estimator", DECOMPOSITIONS, ids=repr)
def test_components_of_sparse_rows_on_a_device(estimator, sparse):
    X, Y = sparse
    here, model = clone(estimator).fit(X), clone(estimator).fit(Y)
    expected = here.certificate_.relative_error
    # Probes are addressed by the bits of products, which are rounded elsewhere there.
    assert model.certificate_.relative_error == pytest.approx(expected, rel=5e-2, abs=1e-9)
    np.testing.assert_allclose(model.transform(Y).cpu(), model.transform(X), atol=1e-9)


@pytest.mark.parametrize("estimator", REGRESSIONS, ids=repr)
def test_ridge_on_a_device(estimator, data, sparse):
    for X, Y, y in ((data[0], there(data[0]), data[1]), (*sparse, data[1])):
        here, model = clone(estimator).fit(X, y), clone(estimator).fit(Y, there(y))
        predicted = model.predict(Y)
        assert isinstance(predicted, torch.Tensor)
        np.testing.assert_allclose(predicted.cpu(), here.predict(X), atol=1e-3 * np.abs(y).max())
        np.testing.assert_allclose(model.predict(X), predicted.cpu(), atol=1e-8)


def test_what_is_done_on_the_host_takes_rows_of_a_device(data):
    X, y = data[0][:300, :40], data[1][:300]
    for estimator in (OnlineNewtonRegressor(), ReducedRegressor(10)):
        here = clone(estimator).fit(X, y).predict(X)
        np.testing.assert_allclose(clone(estimator).fit(there(X), there(y)).predict(there(X)), here)
    for estimator in (SubspaceReduction(10), RandomReduction(10)):
        here = clone(estimator).fit(X).transform(X)
        np.testing.assert_allclose(clone(estimator).fit(there(X)).transform(there(X)), here)


def test_kernel_components_stay_on_the_device(data):
    X = data[0][:400, :20]
    estimator = StreamingKernelPCA(3, solver="sketch", n_random_features=256, random_state=0)
    here, model = clone(estimator).fit(X), clone(estimator).fit(there(X))
    scores = model.transform(there(X))
    assert isinstance(scores, torch.Tensor)
    gap = np.abs(np.abs(scores.cpu().numpy()) - np.abs(here.transform(X))).max()
    assert gap <= 1e-3 * np.abs(here.transform(X)).max()


def test_mistakes_on_a_device(data):
    X, y = data
    model = StreamingPCA(2).fit(there(X))
    with pytest.raises(ValueError, match="expecting 600 features"):
        model.transform(there(X[:, :5]))
    with pytest.raises(ValueError, match="2-D array"):
        model.transform(there(X[0]))
    with pytest.raises(ValueError, match="at least one of each"):
        model.partial_fit(there(X[:0]))
    bad = X.copy()
    bad[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(there(bad))
    with pytest.raises(ValueError, match="NaN"):
        model.transform(there(bad))
    with pytest.raises(ValueError, match="give one each"):
        StreamingRidge().fit(there(X), there(y[:-1]))
    assert model.n_samples_seen_ == len(X)
