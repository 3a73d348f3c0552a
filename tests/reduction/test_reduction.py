"""Reductions and the models learned on them: scikit-learn's contract, sparse, split, saved."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import sksketch
from sksketch import (
    NotMergeableError,
    RandomReduction,
    ReducedClassifier,
    ReducedRegressor,
    SubspaceReduction,
)
from sksketch.sketches.projections import linear_sketch

UNSOLVED = "the order of the rows decides which model within the duality gap is found"
SUMS = "other rows make other random sums, which span another subspace"


def expected_failures(estimator):
    equivalence = [
        f"check_sample_weight_equivalence_on_{form}_data" for form in ("dense", "sparse")
    ]
    if isinstance(estimator, SubspaceReduction):
        return dict.fromkeys(equivalence, SUMS)
    if estimator.get_params().get("loss") in ("hinge", "absolute", "logistic"):
        return dict.fromkeys(equivalence, UNSOLVED)
    return {}


@parametrize_with_checks(
    [
        SubspaceReduction(),
        SubspaceReduction(3, operator="srht", n_power_iter=1),
        RandomReduction(),
        RandomReduction(5, operator="sample"),
        ReducedClassifier(),
        ReducedClassifier(loss="logistic"),
        ReducedClassifier(loss="softmax", method="rp"),
        ReducedClassifier(loss="squared", method="rpdr"),
        ReducedRegressor(),
        ReducedRegressor(loss="absolute"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 30)) / np.arange(1, 31) ** 0.7
LABELS = np.where(X @ RNG.standard_normal(30) + 0.2 * RNG.standard_normal(400) > 0, "yes", "no")
CLASSES = np.argmax(X[:, :4] + 0.2 * RNG.standard_normal((400, 4)), axis=1)
WORDS = sp.random_array((500, 2000), density=0.01, format="csr", rng=RNG)
TOPICS = np.asarray(WORDS[:, :1000].sum(axis=1) > WORDS[:, 1000:].sum(axis=1)).ravel().astype(int)

OPERATORS = ("countsketch", "gaussian", "srht", "sample")
each_operator = pytest.mark.parametrize("operator", OPERATORS)
each_method = pytest.mark.parametrize("method", ["nor", "nordr", "rp", "rpdr", "dsrr"])
LOSSES = ("hinge", "squared_hinge", "logistic", "squared")


def spans_the_same(one, other, rows):
    """Compare subspaces by the products of coordinates, which no rotation changes."""
    Z, W = one.transform(rows), other.transform(rows)
    np.testing.assert_allclose(Z @ Z.T, W @ W.T, atol=1e-9)


@pytest.fixture
def always_sparse(monkeypatch):
    """Hold sums of sparse rows as sparse rows, however few columns there are."""
    monkeypatch.setattr(linear_sketch, "DENSE_BYTES", 0)


@each_operator
@pytest.mark.parametrize("kind", [SubspaceReduction, RandomReduction])
def test_sparse_rows_are_the_same_rows(kind, operator):
    dense = kind(20, operator=operator).fit(WORDS.toarray())
    sparse = kind(20, operator=operator).fit(WORDS)
    spans_the_same(dense, sparse, WORDS)
    np.testing.assert_allclose(
        sparse.transform(WORDS), sparse.transform(WORDS.toarray()), atol=1e-10
    )
    Z = sparse.transform(WORDS)
    np.testing.assert_allclose(Z, WORDS @ sparse.components_.T, atol=1e-10)
    coef = RNG.standard_normal((3, sparse.n_components_))
    lifted = sparse.inverse_model(coef)
    np.testing.assert_allclose(WORDS @ lifted.T, Z @ coef.T, atol=1e-10)
    np.testing.assert_allclose(sparse.inverse_model(coef[0]), lifted[0], atol=1e-14)


@each_operator
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_splitting_saving_and_streaming_are_invisible(operator, form, tmp_path):
    rows = form(X)
    for n_power_iter in (0, 2):
        whole = SubspaceReduction(8, operator=operator, n_power_iter=n_power_iter).fit(rows)
        split = SubspaceReduction(8, operator=operator, n_power_iter=n_power_iter)
        for number in range(n_power_iter + 1):
            if number:
                split.next_pass()
            for part in np.array_split(np.arange(400), 7):
                split.partial_fit(rows[part])
                split.save(tmp_path / "split.sks")
                split = sksketch.load(tmp_path / "split.sks")
        spans_the_same(whole, split, X)
        streamed = SubspaceReduction(8, operator=operator, n_power_iter=n_power_iter)
        sksketch.fit_stream(streamed, sksketch.open_rows(X, batch_rows=90), progress=False)
        spans_the_same(whole, streamed, X)
        assert split.n_samples_seen_ == whole.n_samples_seen_ == 400
        # Before anyone has looked again, nothing is known but the length of the rows.
        assert split.spectral_error_ == (0.0, pytest.approx((X**2).sum()))
        assert split.certify(X).spectral_error_ == pytest.approx(whole.spectral_error_, rel=0.3)
        whole.save(tmp_path / "whole.sks")
        again = sksketch.load(tmp_path / "whole.sks")
        np.testing.assert_array_equal(again.transform(X), whole.transform(X))
        assert again.spectral_error_ == whole.spectral_error_


def test_an_interrupted_power_pass_goes_on_to_the_last_bit(tmp_path):
    rows = sksketch.open_rows(X, batch_rows=60)
    expected = sksketch.fit_stream(SubspaceReduction(6, n_power_iter=1), rows, progress=False)
    for stop_after in (100, 400, 460):
        path = tmp_path / f"{stop_after}.sks"

        def stop(n_done, _, stop_after=stop_after):
            if n_done >= stop_after:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            sksketch.fit_stream(
                SubspaceReduction(6, n_power_iter=1), rows, checkpoint=path, every=60, progress=stop
            )
        found = sksketch.fit_stream(
            SubspaceReduction(6, n_power_iter=1), rows, checkpoint=path, every=60, progress=False
        )
        np.testing.assert_array_equal(found.transform(X), expected.transform(X))


@each_operator
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_shards_merge(operator, form, always_sparse):
    rows = form(X)
    parts = [
        SubspaceReduction(12, operator=operator, shard=i).fit(rows[150 * i : 150 * i + 250])
        for i in range(2)
    ]
    total = parts[0].sketch_.matrix + parts[1].sketch_.matrix
    merged = parts[0].merge(parts[1])
    assert merged.n_samples_seen_ == 500
    if operator != "sample":
        np.testing.assert_allclose(merged.sketch_.matrix, total, atol=1e-12)
    with pytest.raises(NotMergeableError, match="shard"):
        merged.merge(parts[1])
    with pytest.raises(NotMergeableError, match="power pass"):
        merged.next_pass().merge(parts[1])


@pytest.mark.parametrize("operator", ["countsketch", "sample"])
def test_sums_of_sparse_rows_stay_sparse(operator, always_sparse, tmp_path):
    whole = SubspaceReduction(20, operator=operator).fit(WORDS)
    split = SubspaceReduction(20, operator=operator)
    for part in np.array_split(np.arange(500), 11):
        split.partial_fit(WORDS[part])
    split.save(tmp_path / "sums.sks")
    again = sksketch.load(tmp_path / "sums.sks")
    for sums in (whole, split, again):
        assert sp.issparse(sums.sketch_.compact_matrix)
        assert (sums.sketch_.compact_matrix != whole.sketch_.compact_matrix).nnz == 0
    assert whole.sketch_.compact_matrix.nnz <= WORDS.nnz


def test_very_many_columns_make_no_large_array():
    import tracemalloc

    n_features, entries = 5_000_000, 40
    columns = RNG.integers(0, n_features, (500, entries))
    rows = sp.csr_array(
        (RNG.standard_normal(500 * entries), columns.ravel(), np.arange(501) * entries),
        shape=(500, n_features),
    )
    y = np.where(RNG.random(500) > 0.5, 1, 0)
    tracemalloc.start()
    try:
        model = ReducedClassifier(50, alpha=1e-2).fit(rows, y)
        Z = model.reduction_.transform(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A few vectors of all columns, and never as many as there are components.
    assert peak < 0.7 * 50 * n_features * 8
    scores = Z @ model.reduced_coef_[0, :-1] + model.reduced_coef_[0, -1]
    np.testing.assert_allclose(model.decision_function(rows), scores, atol=1e-9)


def test_dense_bases_of_very_many_columns_are_refused():
    rows = sp.csr_array((3, 10_000_000))
    for options in ({"operator": "gaussian"}, {"operator": "srht"}, {"n_power_iter": 1}):
        with pytest.raises(ValueError, match="dense vectors of 10000000 columns"):
            SubspaceReduction(100, **options).fit(rows)


@each_method
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_models_of_all_columns_are_those_of_the_coordinates(method, loss, fit_intercept, tmp_path):
    model = ReducedClassifier(10, method=method, loss=loss, alpha=1e-2, fit_intercept=fit_intercept)
    dense, sparse = (clone(model).fit(form(X), LABELS) for form in (np.asarray, sp.csr_array))
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-2)
    assert dense.coef_.shape == (1, 30)
    assert dense.intercept_.shape == (1,)
    assert dense.score(X, LABELS) > (0.65 if method == "nor" else 0.5)
    if method in ("nor", "rp"):
        Z = dense.reduction_.transform(X)
        if fit_intercept:
            Z = np.column_stack([Z, np.ones(400)])
        np.testing.assert_allclose(
            dense.decision_function(X), Z @ dense.reduced_coef_[0], atol=1e-12
        )
    else:
        recovered = X.T @ dense.dual_coef_[0] / (400 * 1e-2)
        np.testing.assert_allclose(dense.coef_[0], recovered, atol=1e-10)
    dense.save(tmp_path / "model.sks")
    again = sksketch.load(tmp_path / "model.sks")
    np.testing.assert_array_equal(again.predict(X), dense.predict(X))
    np.testing.assert_array_equal(again.dual_coef_, dense.dual_coef_)
    assert again.get_params() == dense.get_params()
    for name in ("duality_gap_", "objective_gap_bound_", "lemma2_bound_", "n_iter_"):
        assert getattr(again, name) == getattr(dense, name)


@pytest.mark.parametrize("loss", [*LOSSES, "softmax"])
@each_method
def test_several_classes(method, loss):
    model = ReducedClassifier(20, method=method, loss=loss, alpha=1e-2)
    if (method, loss) == ("dsrr", "softmax"):
        with pytest.raises(ValueError, match="dsrr has no softmax"):
            model.fit(X, CLASSES)
        return
    model.fit(X, CLASSES)
    assert model.coef_.shape == (4, 30)
    assert model.dual_coef_.shape == (4, 400)
    assert model.score(X, CLASSES) > (0.75 if method == "nor" else 0.4)
    if loss in ("logistic", "softmax"):
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
        assert (model.predict_proba(X).argmax(axis=1) == model.predict(X)).all()
    else:
        assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_repetitions(loss):
    # Coordinates of all columns, so that other sums of rows span the same.
    options = {"loss": loss, "alpha": 1e-2, "tol": 1e-9}
    counts = RNG.integers(0, 4, 400)
    weighted = ReducedClassifier(200, **options).fit(X, LABELS, sample_weight=counts)
    repeated = ReducedClassifier(200, **options)
    repeated.fit(np.repeat(X, counts, axis=0), np.repeat(LABELS, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)
    assert weighted.objective_gap_bound_ < 1e-6
    # So are class weights, but for the total that the mean is over.
    by_class = ReducedClassifier(200, class_weight={"no": 1, "yes": 3}, **options).fit(X, LABELS)
    tripled = np.where(LABELS == "yes", 3.0, 1.0)
    options["alpha"] = 1e-2 * 400 / tripled.sum()
    same = ReducedClassifier(200, **options).fit(X, LABELS, sample_weight=tripled)
    np.testing.assert_allclose(by_class.coef_, same.coef_, atol=1e-3)


@each_method
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_that_do_not_fit_are_learned_from_alike(method, form):
    options = {"method": method, "alpha": 1e-2, "n_power_iter": 1, "class_weight": "balanced"}
    model = ReducedClassifier(10, **options).fit(form(X), CLASSES)
    source = sksketch.open_rows(form(X), target=CLASSES.astype(float), batch_rows=70)
    streamed = ReducedClassifier(10, **options).fit_rows(source)
    np.testing.assert_allclose(streamed.coef_, model.coef_, atol=0.05)
    np.testing.assert_allclose(
        [streamed.duality_gap_, streamed.objective_gap_bound_],
        [model.duality_gap_, model.objective_gap_bound_],
        rtol=0.1,
        atol=1e-3,
    )
    assert (streamed.predict(X) == model.predict(X)).mean() > 0.97


def test_the_path_is_that_of_single_models():
    alphas = [1e-3, 1e-1, 1e-2]
    for loss in ("hinge", "softmax"):
        model = ReducedClassifier(15, loss=loss, tol=1e-7)
        path = model.path(X, CLASSES, alphas)
        assert path.coef.shape == (3, 4, 30)
        for i, alpha in enumerate(alphas):
            single = clone(model).set_params(alpha=alpha).fit(X, CLASSES)
            np.testing.assert_allclose(path.coef[i], single.coef_, atol=2e-2)
            assert path.duality_gaps[i] <= 1e-7
            assert path.objective_gap_bounds[i] == pytest.approx(
                single.objective_gap_bound_, rel=1e-2, abs=1e-6
            )
    with pytest.raises(ValueError, match="give positive numbers"):
        model.path(X, CLASSES, [0.0])


def test_regression():
    y = X @ np.arange(30.0) + 3.0
    for loss in ("squared", "absolute"):
        model = ReducedRegressor(100, loss=loss, alpha=1e-6, tol=1e-6).fit(X, y)
        assert model.coef_.shape == (30,)
        assert model.score(X, y) > 0.999
        assert model.objective_gap_bound_ < 1e-5
    exact = Ridge(1e-2 * 400, fit_intercept=False).fit(X, y)
    model = ReducedRegressor(100, alpha=1e-2, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-8)


def test_pipelines_names_and_frames():
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(30)])
    reduction = SubspaceReduction(5).set_output(transform="pandas").fit(frame)
    named = reduction.transform(frame)
    assert list(named.columns) == [f"subspacereduction{i}" for i in range(5)]
    pipeline = make_pipeline(StandardScaler(), SubspaceReduction(25), LinearSVC())
    assert pipeline.fit(frame, LABELS).score(frame, LABELS) > 0.8
    model = ReducedClassifier(5).fit(frame, LABELS)
    assert list(model.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])


@each_operator
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_poor_data_are_learned_from(operator, form):
    poor = X.copy()
    poor[:, :5], poor[:, 5:10] = 0.0, 1.0
    poor[:, 12:] = poor[:, 11:12]
    model = ReducedClassifier(100, operator=operator, alpha=1e-2).fit(form(poor), LABELS)
    assert model.reduction_.n_components_ == np.linalg.matrix_rank(poor) == 3
    assert (model.coef_[0, :5] == 0).all() or np.abs(model.coef_[0, :5]).max() < 1e-12
    assert model.objective_gap_bound_ < 2e-3
    nothing = ReducedClassifier(operator=operator).fit(form(np.zeros((6, 4))), [0, 1] * 3)
    assert (nothing.coef_ == 0).all()
    assert nothing.reduction_.n_components_ == 0
    assert nothing.reduction_.transform(form(np.ones((2, 4)))).shape == (2, 0)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"alpha": 0.0}, "; give a positive number"),
        ({"alpha": -1.0}, "; give a positive number"),
        ({"tol": 0.0}, "tol is 0.0; give a positive number"),
        ({"loss": "huber"}, "loss is 'huber'; give one of 'hinge'"),
        ({"method": "pca"}, "method is 'pca'; give one of 'nor'"),
        ({"operator": "fft"}, "operator is 'fft'; give one of 'countsketch'"),
        ({"n_components": 0}, "n_components is 0; give an integer of at least 1"),
        ({"n_power_iter": -1}, "n_power_iter is -1; give an integer of at least 0"),
        ({"tau": 1.0}, "tau is 1.0; give a number from 0 below 1"),
    ],
)
def test_parameters_that_make_no_sense(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        ReducedClassifier(**options).fit(X, LABELS)


def test_hostile_input_is_refused():
    model = ReducedClassifier().fit(X, LABELS)
    before = model.coef_
    with pytest.raises(ValueError, match="got one class, 'yes'"):
        model.fit(X, ["yes"] * 400)
    for bad in (np.nan, np.inf):
        rows = X.copy()
        rows[3, 4] = bad
        for estimator in (model, SubspaceReduction(), RandomReduction(), ReducedRegressor()):
            with pytest.raises(ValueError, match="NaN|infinity"):
                estimator.fit(rows, LABELS if estimator is model else X[:, 0])
    with pytest.raises(ValueError, match="all sample weights are zero"):
        model.fit(X, LABELS, sample_weight=np.zeros(400))
    assert model.coef_ is before
    with pytest.warns(ConvergenceWarning, match="enlarge max_iter"):
        ReducedClassifier(alpha=1e-6, tol=1e-8, max_iter=2).fit(X, LABELS)
