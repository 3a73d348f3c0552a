"""Units do not matter: PCA and SVD with ``standardize`` beside scikit-learn's scaler."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sksketch import Centered, ExactCovariance, FrequentDirections, StreamingPCA, StreamingSVD
from sksketch.exceptions import NotMergeableError

SKETCHED = {"sketch": FrequentDirections(6, solver="exact")}


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def X(rng):
    """Rows whose columns have units that differ by 10^9, one of them constant."""
    units = 10.0 ** np.linspace(-4, 5, 12)
    rows = rng.standard_normal((3000, 5)) @ rng.standard_normal((5, 12))
    rows = (rows + 0.3 * rng.standard_normal((3000, 12)) + 4.0) * units
    rows[:, 7] = 7.0
    return rows


def pipeline(X, k, centered=True):
    kind = PCA(k) if centered else TruncatedSVD(k, algorithm="arpack", random_state=0)
    return make_pipeline(StandardScaler(with_mean=centered), kind).fit(X)


def alike(found, wanted):
    """Compare up to the signs of columns."""
    signs = np.sign((found * wanted).sum(axis=0))
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(found * signs, wanted, rtol=0, atol=1e-8 * scale)


def parts(X, rng, n=9):
    cuts = np.sort(rng.choice(np.arange(1, len(X)), n - 1, replace=False))
    return np.split(X, cuts)


def merged(models, rng):
    """Merge in any tree."""
    models = list(models)
    while len(models) > 1:
        i, j = sorted(rng.choice(len(models), 2, replace=False).tolist())
        models[i].merge(models.pop(j))
    return models[0]


@pytest.mark.parametrize("style", [np.asarray, sp.csr_array])
def test_exact_pca_is_that_of_a_scaler_and_pca(X, rng, style):
    pipe = pipeline(X, 4)
    blocks = [style(block) for block in parts(X, rng)]
    model = merged([StreamingPCA(4, standardize=True).partial_fit(b) for b in blocks], rng)
    pca, scaler = pipe[-1], pipe[0]
    np.testing.assert_allclose(model.scale_, scaler.scale_, rtol=1e-8)
    np.testing.assert_allclose(model.mean_, scaler.mean_, rtol=1e-8)
    np.testing.assert_allclose(model.explained_variance_, pca.explained_variance_, rtol=1e-8)
    ratio = pca.explained_variance_ratio_
    np.testing.assert_allclose(model.explained_variance_ratio_, ratio, rtol=1e-8)
    np.testing.assert_allclose(model.singular_values_, pca.singular_values_, rtol=1e-8)
    np.testing.assert_allclose(model.noise_variance_, pca.noise_variance_, rtol=1e-8)
    scores = model.transform(X)
    alike(scores, pipe.transform(X))
    np.testing.assert_allclose((X - model.mean_) @ model.components_.T, scores, atol=1e-8)
    loadings = model.components_ * model.scale_
    np.testing.assert_allclose(loadings @ loadings.T, np.eye(4), atol=1e-12)
    back = pipe.inverse_transform(pipe.transform(X))
    off = (model.inverse_transform(scores) - back) / scaler.scale_
    assert np.abs(off).max() < 1e-8
    np.testing.assert_allclose(model.score_samples(X), pipe.score_samples(X), rtol=1e-8)
    np.testing.assert_allclose(model.get_covariance(), pca.get_covariance(), atol=1e-8)
    np.testing.assert_allclose(model.get_precision(), pca.get_precision(), atol=1e-7)
    Z = scaler.transform(X)
    rest = ((Z - (Z - pca.mean_) @ pca.components_.T @ pca.components_) ** 2).sum(axis=1)
    np.testing.assert_allclose(model.reconstruction_error(X), rest, atol=1e-8)


def test_exact_svd_divides_and_does_not_center(X, rng):
    pipe = pipeline(X, 3, centered=False)
    models = [StreamingSVD(3, standardize=True).partial_fit(b) for b in parts(X, rng)]
    model = merged(models, rng)
    np.testing.assert_allclose(model.singular_values_, pipe[-1].singular_values_, rtol=1e-8)
    alike(model.transform(X), pipe.transform(X))
    again = StreamingSVD.from_state(model.state())
    np.testing.assert_array_equal(again.components_, model.components_)


def test_weights_are_copies_of_rows(X, rng):
    weights = rng.integers(0, 4, len(X)).astype(float)
    copies = np.repeat(X, weights.astype(int), axis=0)
    for kind in (StreamingPCA, StreamingSVD):
        for options in ({}, SKETCHED):
            model = kind(3, standardize=True, **options).fit(X, sample_weight=weights)
            other = kind(3, standardize=True, **options).fit(copies)
            np.testing.assert_allclose(model.scale_, other.scale_, rtol=1e-8)
            assert model.explained_variance_ratio_ == pytest.approx(
                other.explained_variance_ratio_, rel=1e-8 if not options else 0.2
            )


def test_the_exact_state_has_no_units_and_can_be_read_in_both(X):
    plain, standard = StreamingPCA(3).fit(X), StreamingPCA(3, standardize=True).fit(X)
    for name, array in plain.sketch_.state().arrays.items():
        np.testing.assert_array_equal(array, standard.sketch_.state().arrays[name])
    np.testing.assert_array_equal(plain.scale_, np.ones(12))
    before = plain.explained_variance_ratio_
    plain.set_params(standardize=True)
    np.testing.assert_array_equal(plain.components_, standard.components_)
    plain.set_params(standardize=False)
    np.testing.assert_array_equal(plain.explained_variance_ratio_, before)
    assert "when it is read" in standard.plan_


@pytest.mark.parametrize("kind", [StreamingPCA, StreamingSVD])
@pytest.mark.parametrize("options", [{}, SKETCHED])
def test_the_certificate_is_about_rows_in_the_stated_units(X, kind, options):
    model = kind(3, standardize=True, **options).fit(X.astype(np.float32))
    rows = X.astype(np.float32).astype(np.float64)
    rows = (rows - rows.mean(axis=0) if kind is StreamingPCA else rows) / model.scale_
    values = np.linalg.eigvalsh(rows.T @ rows)[::-1]
    certificate = model.certificate_
    low, high = certificate.eigenvalues.T
    n = len(low)
    slack = 1e-9 * values[0]
    assert (low <= values[:n] + slack).all()
    assert (values[:n] <= high + slack).all()
    assert certificate.relative_error < (1e-6 if not options else 0.5)


def test_first_rows_give_the_units_of_a_sketch_however_they_are_cut(X, rng):
    def learned(blocks):
        model = StreamingPCA(3, standardize=True, **SKETCHED)
        for block in blocks:
            model.partial_fit(block)
            if rng.random() < 0.2:
                model = StreamingPCA.from_state(model.state())
                assert model.n_samples_seen_ > 0
        return model

    model, other = learned(np.split(X, 3)), learned(parts(X, rng, 200))
    np.testing.assert_array_equal(model.scale_, other.scale_)
    np.testing.assert_array_equal(model.components_, other.components_)
    np.testing.assert_allclose(model.scale_, StandardScaler().fit(X[:1000]).scale_)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0))
    np.testing.assert_allclose(model.var_, X.var(axis=0))
    assert "the first 1,000 rows" in model.plan_
    assert "all rows" in StreamingPCA(3, standardize=True, **SKETCHED).fit(X).plan_


def test_fewer_rows_have_units_as_well(X):
    model = StreamingPCA(3, standardize=True, **SKETCHED).partial_fit(X[:300])
    whole = StreamingPCA(3, standardize=True, **SKETCHED).fit(X[:300])
    np.testing.assert_array_equal(model.scale_, whole.scale_)
    np.testing.assert_array_equal(model.components_, whole.components_)
    assert model.n_samples_seen_ == 300
    assert "the first 300 rows" in model.plan_


def test_merging_needs_the_same_units(X):
    def model():
        return StreamingPCA(3, standardize=True, **SKETCHED)

    first, second = model().partial_fit(X[:1500]), model().partial_fit(X[1500:])
    with pytest.raises(NotMergeableError, match="different units"):
        first.merge(second)
    # A part without units yet takes those of the other.
    short = model().partial_fit(X[1500:1600])
    other = StreamingPCA.from_state(first.state()).merge(short)
    assert other.n_samples_seen_ == 1600
    back = model().partial_fit(X[1500:1600]).merge(first)
    np.testing.assert_array_equal(back.scale_, first.scale_)
    assert back.n_samples_seen_ == 1600
    both = model().partial_fit(X[:400]).merge(model().partial_fit(X[400:900]))
    np.testing.assert_allclose(both.scale_, StandardScaler().fit(X[:900]).scale_)
    with pytest.raises(NotMergeableError, match="only one"):
        first.merge(StreamingPCA(3, **SKETCHED).fit(X))


def test_a_sketch_cannot_change_its_mind(X):
    model = StreamingPCA(3, **SKETCHED).fit(X).set_params(standardize=True)
    with pytest.raises(ValueError, match="fit again with standardize=True"):
        _ = model.components_
    model = StreamingPCA(3, standardize=True, **SKETCHED).fit(X).set_params(standardize=False)
    with pytest.raises(ValueError, match="fit again with standardize=False"):
        model.partial_fit(X)
    with pytest.raises(ValueError, match="fit again"):
        _ = StreamingPCA(standardize=True).reading(Centered(FrequentDirections(4)).update(X)).scale_
    read = StreamingPCA(3, standardize=True).reading(Centered(ExactCovariance()).update(X))
    np.testing.assert_allclose(read.scale_, StandardScaler().fit(X).scale_)


def test_bad_rows_are_refused_and_change_nothing(X):
    for options in ({}, SKETCHED):
        model = StreamingPCA(3, standardize=True, **options).partial_fit(X[:500])
        bad = X[500:1500].copy()
        bad[700, 2] = np.nan
        before = model.components_
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit(bad)
        np.testing.assert_array_equal(model.components_, before)
        model.partial_fit(X[500:1500])
        assert model.n_samples_seen_ == 1500


def test_sparse_rows_stay_sparse(rng):
    X = sp.random_array((2000, 300), density=0.02, rng=rng, format="csr")
    X.data = X.data * 10.0 ** rng.integers(-3, 3, len(X.data))
    model = StreamingSVD(4, sketch="sfd", sketch_size=20, standardize=True).fit(X)
    scale = StandardScaler(with_mean=False).fit(X).scale_
    np.testing.assert_allclose(model.scale_, scale)
    wanted = np.linalg.svd(X.toarray() / scale, compute_uv=False)[:4]
    low, high = np.sqrt(model.certificate_.eigenvalues[:4].T)
    assert (low <= wanted * (1 + 1e-9)).all()
    assert (wanted <= high * (1 + 1e-9)).all()
