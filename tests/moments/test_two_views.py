"""CCA and PLS of streams, against scikit-learn, dense eigenproblems and their own certificates."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.cross_decomposition import CCA, PLSSVD, PLSCanonical, PLSRegression

from sksketch import StreamingCCA, StreamingPLS, fit_dask, fit_stream, load
from sksketch.exceptions import NotMergeableError, StateFormatError
from sksketch.moments.two_views import views_of

EXACT = {"max_iter": 100_000, "tol": 1e-30}
PLS = {"svd": PLSSVD, "regression": PLSRegression, "canonical": PLSCanonical}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def tables(rng):
    return views(rng, 400, 6, 5)


def views(rng, n, p, q, noise=1.0, sizes=(1.0, 1.0)):
    """Return two views that share three factors, with columns in their own units."""
    shared = rng.standard_normal((n, 3))
    x, y = (
        (shared @ rng.standard_normal((3, k)) + noise * rng.standard_normal((n, k)) + 5.0) * size
        for k, size in ((p, sizes[0]), (q, sizes[1]))
    )
    return x, y


def streamed(model, X, Y, step=77):
    for start in range(0, len(X), step):
        model.partial_fit(X[start : start + step], Y[start : start + step])
    return model


def dense_correlations(X, Y, ridge, k):
    """Return the leading solutions of the generalized eigenproblem of both views."""
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    p = X.shape[1]
    J = np.zeros((p + Y.shape[1],) * 2)
    J[:p, p:] = X.T @ Y
    J = J + J.T
    M = scipy.linalg.block_diag(X.T @ X + ridge * np.eye(p), Y.T @ Y + ridge * np.eye(Y.shape[1]))
    return scipy.linalg.eigh(J, M, eigvals_only=True)[::-1][:k]


@pytest.mark.parametrize("ridge", [0.0, 1e-6, 30.0])
def test_cca_is_the_dense_problem(tables, ridge):
    X, Y = tables
    model = streamed(StreamingCCA(3, ridge=ridge), X, Y)
    expected = dense_correlations(X, Y, ridge, 3)
    np.testing.assert_allclose(model.correlations_, expected, rtol=1e-10)
    low, high = model.correlation_intervals_.T
    assert ((low <= expected) & (expected <= high) & (high - low < 1e-8)).all()
    a, b = model.transform(X, Y)
    inner = a.T @ b / (len(X) - 1)
    if ridge < 1.0:
        np.testing.assert_allclose(inner, np.diag(expected), atol=1e-7)
        np.testing.assert_allclose(a.T @ a / (len(X) - 1), np.eye(3), atol=1e-7)


def test_cca_is_that_of_scikit_learn(tables):
    X, Y = tables
    peer = CCA(3, **EXACT).fit(X, Y)
    model = StreamingCCA(3, ridge=0.0).fit(X, Y)
    for mine, theirs in zip(model.transform(X, Y), peer.transform(X, Y), strict=True):
        for k in range(3):
            assert abs(np.corrcoef(mine[:, k], theirs[:, k])[0, 1]) > 1 - 1e-12
    a, b = peer.transform(X, Y)
    found = [np.corrcoef(a, b)[0, 1] for a, b in zip(a.T, b.T, strict=True)]
    np.testing.assert_allclose(model.correlations_, found, rtol=1e-8)
    assert model.score(X, Y) == pytest.approx(sum(found), rel=1e-8)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("mode", list(PLS))
def test_pls_is_that_of_scikit_learn(tables, mode, scale):
    X, Y = tables
    X = X * [1.0, 5.0, 1.0, 0.2, 1.0, 1.0]
    options = EXACT if mode != "svd" else {}
    peer = PLS[mode](3, scale=scale, **options).fit(X, Y)
    model = streamed(StreamingPLS(3, mode=mode, scale=scale), X, Y)
    names = ["x_weights_", "y_weights_"]
    if mode != "svd":
        names += ["x_loadings_", "y_loadings_", "x_rotations_", "y_rotations_", "coef_"]
        np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-8)
    for name in names:
        np.testing.assert_allclose(getattr(model, name), getattr(peer, name), atol=1e-9)
    for mine, theirs in zip(model.transform(X, Y), peer.transform(X, Y), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9)
    low, high = model.singular_value_intervals_.T
    assert ((low <= model.singular_values_) & (model.singular_values_ <= high)).all()
    assert (high - low < 1e-8 * high[0]).all()


def test_one_target_is_predicted_as_it_came(tables):
    X, Y = tables
    peer = PLSRegression(2, **EXACT).fit(X, Y[:, 0])
    model = StreamingPLS(2, mode="regression").fit(X, Y[:, 0])
    assert model.predict(X).shape == (len(X),)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-9)


@pytest.mark.parametrize("sizes", [(1.0, 1.0), (1e-3, 40.0)])
@pytest.mark.parametrize("sketch_size", [8, 40])
def test_intervals_hold_for_a_sketch(rng, sizes, sketch_size):
    X, Y = views(rng, 1500, 160, 130, noise=0.3, sizes=sizes)
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    singular = np.linalg.svd(Xc.T @ Yc, compute_uv=False)[:4] / (len(X) - 1)
    options = {"sketch": "rfd", "sketch_size": sketch_size}
    pls = streamed(StreamingPLS(4, scale=False, **options), X, Y)
    low, high = pls.singular_value_intervals_.T
    assert ((low <= singular) & (singular <= high)).all()
    # Half of what co-occurring directions promise: |X| |Y| / (l + 1), a power of two aside.
    promised = 1.25 * np.linalg.norm(Xc) * np.linalg.norm(Yc) / (sketch_size + 1)
    assert ((high - low) / 2 <= promised / (len(X) - 1)).all()
    mine = views_of(pls)
    of_units = np.outer(mine.x.units, mine.y.units)
    cross = mine.x.rows.T @ mine.y.rows - Xc.T @ Yc / of_units
    assert np.linalg.norm(cross, 2) <= mine.cross_error + 1e-12 * np.linalg.norm(
        Xc.T @ Yc / of_units
    )
    scaled = streamed(StreamingPLS(4, **options), X, Y)
    of_columns = (Xc / X.std(axis=0, ddof=1)).T @ (Yc / Y.std(axis=0, ddof=1)) / (len(X) - 1)
    singular = np.linalg.svd(of_columns, compute_uv=False)[:4]
    low, high = scaled.singular_value_intervals_.T
    assert ((low <= singular) & (singular <= high)).all()
    for ridge in (0.0, 1e-6, 1.0, 1e3, 1e6):
        cca = streamed(StreamingCCA(4, ridge=ridge, **options), X, Y)
        true = dense_correlations(X, Y, ridge, 4)
        low, high = cca.correlation_intervals_.T
        assert ((low - 1e-9 <= true) & (true <= high + 1e-9)).all()


@pytest.mark.parametrize("size", [1e-100, 1e-160, 1e-250])
@pytest.mark.parametrize("sketch", ["rfd", "exact"])
def test_views_of_very_different_sizes(rng, sketch, size):
    X, Y = views(rng, 300, 8, 6, sizes=(1.0, size))
    options = {"sketch": sketch, "sketch_size": 5}
    cca = StreamingCCA(2, ridge=1.0, **options).fit(X, Y)
    low, high = cca.correlation_intervals_.T
    # Beside the ridge the second view is next to nothing.
    assert ((low <= 1e-90) & (high < 1e-6)).all()
    pls = StreamingPLS(2, scale=False, **options).fit(X, Y)
    Xc, Yc = X - X.mean(axis=0), Y / size - (Y / size).mean(axis=0)
    true = np.linalg.svd(Xc.T @ Yc, compute_uv=False)[:2] / (len(X) - 1) * size
    low, high = pls.singular_value_intervals_.T
    assert ((low <= true) & (true <= high)).all()


def test_blocks_make_no_difference(rng):
    X, Y = views(rng, 1800, 90, 60)
    options = {"sketch": "rfd", "sketch_size": 5}
    whole = streamed(StreamingCCA(2, **options), X, Y, 1800)
    for step in (1, 333, 999, 1000, 1001):
        model = StreamingCCA(2, **options)
        cuts = range(0, len(X), step) if step > 1 else [0, 1, 2, 3, 1200]
        for start, stop in zip(cuts, [*[*cuts][1:], len(X)], strict=True):
            model.partial_fit(X[start:stop], Y[start:stop])
        assert np.array_equal(model.correlations_, whole.correlations_)
        assert np.array_equal(model.x_weights_, whole.x_weights_)


@pytest.mark.parametrize("kind", [StreamingCCA, StreamingPLS])
@pytest.mark.parametrize("options", [{}, {"sketch": "rfd", "sketch_size": 6}])
def test_save_merge_resume_and_runners(rng, kind, options, tmp_path):
    X, Y = views(rng, 2600, 70, 40)
    name = "correlations_" if kind is StreamingCCA else "singular_values_"
    whole = streamed(kind(2, **options), X, Y)
    half = streamed(kind(2, **options), X[:770], Y[:770])
    half.save(tmp_path / "half.sks")
    rest = streamed(load(tmp_path / "half.sks"), X[770:], Y[770:])
    assert np.array_equal(getattr(rest, name), getattr(whole, name))
    merged = streamed(kind(2, **options), X[:1300], Y[:1300])
    merged.merge(streamed(kind(2, **options), X[1300:], Y[1300:]))
    merged.merge(streamed(kind(2, **options), X[:500], Y[:500]))
    twice = streamed(kind(2), np.vstack([X, X[:500]]), np.vstack([Y, Y[:500]]))
    tolerance = 1e-9 if not options else 0.2
    np.testing.assert_allclose(getattr(merged, name), getattr(twice, name), rtol=tolerance)
    streamed_once = fit_stream(kind(2, **options), (X, Y), progress=False)
    assert np.array_equal(getattr(streamed_once, name), getattr(whole, name))
    np.testing.assert_array_equal(load_of(whole, tmp_path).transform(X), whole.transform(X))


def load_of(model, folder):
    model.save(folder / "m.sks")
    return load(folder / "m.sks")


def test_a_file_whose_views_are_not_those_of_its_sketch_is_refused(tables):
    state = StreamingCCA(2, sketch="rfd", sketch_size=3).fit(*tables).state()
    with pytest.raises(StateFormatError, match="columns, and the sketch"):
        StreamingCCA.from_state(state.with_more({"n_features_y": 1 << 40}, {}))


def test_dask_and_sparse(tables):
    da = pytest.importorskip("dask.array")
    X, Y = tables
    model = fit_dask(StreamingCCA(2), da.from_array(X, (90, -1)), da.from_array(Y, (90, -1)))
    whole = StreamingCCA(2).fit(X, Y)
    np.testing.assert_allclose(model.correlations_, whole.correlations_, rtol=1e-10)
    lazy = model.transform(da.from_array(X, (90, -1)))
    np.testing.assert_allclose(lazy.compute(), model.transform(X))
    for options in ({}, {"sketch": "rfd", "sketch_size": 3}):
        sparse = StreamingCCA(2, **options).fit(sp.csr_array(X), sp.csr_array(Y))
        mixed = StreamingCCA(2, **options).fit(sp.csr_array(X), Y)
        np.testing.assert_allclose(sparse.correlations_, whole.correlations_, rtol=1e-6)
        np.testing.assert_allclose(mixed.correlations_, whole.correlations_, rtol=1e-6)
        found = sparse.transform(sp.csr_array(X), sp.csr_array(Y))
        np.testing.assert_allclose(found[1], sparse.transform(X, Y)[1], atol=1e-9)


def test_output_as_asked_for(tables):
    pd = pytest.importorskip("pandas")
    X, Y = tables
    model = StreamingCCA(2).set_output(transform="pandas").fit(X, Y)
    scores, others = model.transform(X, Y)
    assert list(scores.columns) == ["streamingcca0", "streamingcca1"]
    assert isinstance(model.transform(X), pd.DataFrame)
    np.testing.assert_allclose(
        np.corrcoef(scores.T, np.asarray(others).T)[0, 2], model.correlations_[0]
    )


def test_weights_are_copies(tables, rng):
    X, Y = tables
    counts = rng.integers(0, 3, len(X))
    model = StreamingCCA(2).fit(X, Y, sample_weight=counts)
    copies = StreamingCCA(2).fit(np.repeat(X, counts, 0), np.repeat(Y, counts, 0))
    np.testing.assert_allclose(model.correlations_, copies.correlations_, rtol=1e-10)


def test_columns_that_never_change_and_too_many_components(rng):
    X, Y = views(rng, 200, 4, 2)
    X = np.column_stack([X, np.full(200, 7.0), X[:, 0]])
    model = StreamingCCA(5, ridge=0.0).fit(X, Y)
    np.testing.assert_allclose(
        model.correlations_, [*dense_correlations(X[:, :4], Y, 0.0, 2), 0, 0, 0], atol=1e-10
    )
    assert np.isfinite(model.transform(X)).all()
    for mode in PLS:
        found = StreamingPLS(5, mode=mode).fit(X, Y)
        assert np.isfinite(found.transform(X)).all()


def test_refusals(tables):
    X, Y = tables
    with pytest.raises(ValueError, match="requires y"):
        StreamingCCA(2).fit(X)
    with pytest.raises(ValueError, match="y has 4 features"):
        StreamingCCA(2).fit(X, Y).partial_fit(X, Y[:, :4])
    with pytest.raises(ValueError, match="inconsistent"):
        StreamingCCA(2).fit(X, Y[:-1])
    with pytest.raises(ValueError, match="ridge is -1"):
        StreamingCCA(2, ridge=-1.0).fit(X, Y)
    with pytest.raises(ValueError, match="mode is 'other'"):
        StreamingPLS(2, mode="other").fit(X, Y)
    with pytest.raises(AttributeError, match="mode='regression'"):
        _ = StreamingPLS(2).fit(X, Y).coef_
    with pytest.raises(NotMergeableError, match="second views of 5 and 4"):
        StreamingCCA(2).fit(X, Y).merge(StreamingCCA(2).fit(X, Y[:, :4]))
    model = StreamingCCA(2).fit(X, Y)
    before = model.correlations_.copy()
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(X, np.where(Y[3, 1] == Y, np.nan, Y))
    assert np.array_equal(model.correlations_, before)
