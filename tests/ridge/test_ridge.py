import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

import sksketch
from sksketch import FrequentDirections, NotMergeableError, StreamingRidge, StreamingRidgeCV

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 12)) * np.linspace(3, 0.3, 12) + np.linspace(-2, 5, 12)
Y = X @ RNG.standard_normal((12, 3)) + [1.0, -2.0, 100.0] + 0.3 * RNG.standard_normal((400, 3))
WIDE = RNG.standard_normal((600, 200)) @ np.diag(np.arange(1, 201) ** -0.8)
WIDE_TARGET = WIDE[:, :5].sum(axis=1) + RNG.standard_normal(600)

pytestmark = pytest.mark.filterwarnings("ignore:the coefficients are certain only to")


@parametrize_with_checks(
    [
        StreamingRidge(),
        StreamingRidge(sketch="rfd", sketch_size=8),
        StreamingRidge(sketch="countsketch", sketch_size=4000),
        StreamingRidge(fit_intercept=False, refine=1),
    ],
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("target", [Y[:, 0], Y, Y[:, :1]])
@pytest.mark.parametrize("weighted", [True, False])
def test_with_the_exact_covariance_it_is_ridge(make, fit_intercept, target, weighted):
    weights = RNG.uniform(0.1, 3.0, len(X)) if weighted else None
    ours = StreamingRidge(2.5, fit_intercept=fit_intercept)
    for part in np.array_split(np.arange(len(X)), 7):
        w = None if weights is None else weights[part]
        ours.partial_fit(make(X[part]), target[part], sample_weight=w)
    # Cholesky takes several targets as columns and keeps their shape.
    theirs = Ridge(2.5, fit_intercept=fit_intercept, solver="cholesky")
    theirs.fit(X, target, sample_weight=weights)
    assert ours.coef_.shape == theirs.coef_.shape
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-8)
    np.testing.assert_allclose(ours.predict(make(X)), theirs.predict(X), atol=1e-8)
    assert ours.coef_error_bound_ < 1e-6


@pytest.mark.parametrize(
    "sketch", ["fd", "rfd", "cfd", "pfd", "isvd", "2lfd", "sfd", "exact", "sign", "countsketch"]
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_method_of_the_paper_merges_and_is_saved(sketch, fit_intercept, tmp_path):
    options = {"sketch": sketch, "sketch_size": 30, "fit_intercept": fit_intercept}

    def shard(i, rows):
        kind = sketch
        if sketch in ("sign", "countsketch"):
            kind = sksketch.make_sketch(sketch, 30, shard=i)
        return StreamingRidge(5.0, **(options | {"sketch": kind})).fit(
            WIDE[rows], WIDE_TARGET[rows]
        )

    merged = shard(0, slice(None, 250)).merge(shard(1, slice(250, None)))
    merged.save(tmp_path / "model.sks")
    again = sksketch.load(tmp_path / "model.sks")
    np.testing.assert_array_equal(again.coef_, merged.coef_)
    assert again.intercept_ == merged.intercept_
    assert merged.n_samples_seen_ == 600
    exact = Ridge(5.0, fit_intercept=fit_intercept).fit(WIDE, WIDE_TARGET)
    error = np.linalg.norm(merged.coef_ - exact.coef_)
    assert error <= merged.coef_error_bound_absolute_ * (1 + 1e-9)
    assert error <= merged.coef_error_bound_ * np.linalg.norm(exact.coef_) * (1 + 1e-9)


def test_the_path_is_read_from_one_pass():
    alphas = np.geomspace(0.1, 1e4, 7)
    model = StreamingRidge(sketch="rfd", sketch_size=20).fit(WIDE, WIDE_TARGET)
    path = model.path(alphas)
    assert path.coef.shape == (7, 200)
    for alpha, coef, intercept, bound in zip(*path, strict=True):
        single = StreamingRidge(alpha, sketch="rfd", sketch_size=20).fit(WIDE, WIDE_TARGET)
        np.testing.assert_allclose(coef, single.coef_, atol=1e-12)
        assert intercept == pytest.approx(single.intercept_)
        assert bound == single.coef_error_bound_
    assert (np.diff(path.error_bounds) < 0).all()
    with pytest.raises(ValueError, match=r"alphas is .*; give numbers from 0 on"):
        model.path([-1.0])


def test_robust_and_plain_are_the_same_path_at_another_penalty():
    # Shi and Phillips (2021): FDRR at r + shift is RFDRR at r.
    plain = StreamingRidge(sketch=FrequentDirections(20, correction="none"))
    robust = StreamingRidge(sketch=FrequentDirections(20, correction="half"))
    plain.fit(WIDE, WIDE_TARGET)
    robust.fit(WIDE, WIDE_TARGET)
    shift = robust.sketch_.summary().ridge
    np.testing.assert_allclose(
        plain.path([7.0 + shift]).coef, robust.path([7.0]).coef, rtol=1e-9, atol=1e-12
    )


def test_predictions_are_within_their_bounds():
    model = StreamingRidge(50.0, sketch="rfd", sketch_size=30).fit(WIDE, WIDE_TARGET)
    exact = Ridge(50.0).fit(WIDE, WIDE_TARGET)
    rows = RNG.standard_normal((50, 200))
    for form in (rows, sp.csr_array(rows)):
        bound = model.prediction_error_bound(form)
        assert bound.shape == (50,)
        assert (np.abs(model.predict(form) - exact.predict(rows)) <= bound).all()
    several = StreamingRidge(50.0, sketch="rfd", sketch_size=30).fit(WIDE, WIDE[:, :2])
    assert several.prediction_error_bound(rows).shape == (50, 2)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_refinement_reaches_the_exact_solution(make, fit_intercept, tmp_path):
    weights = RNG.uniform(0.5, 2.0, 600)
    exact = Ridge(20.0, fit_intercept=fit_intercept).fit(WIDE, WIDE_TARGET, sample_weight=weights)
    errors = []
    for steps in (0, 2, 12):
        sketch = FrequentDirections(30, solver="exact")
        model = StreamingRidge(20.0, sketch=sketch, fit_intercept=fit_intercept)
        model.set_params(refine=steps).fit(make(WIDE), WIDE_TARGET, sample_weight=weights)
        errors.append(np.linalg.norm(model.coef_ - exact.coef_) / np.linalg.norm(exact.coef_))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-6
    model.save(tmp_path / "refined.sks")
    np.testing.assert_array_equal(sksketch.load(tmp_path / "refined.sks").coef_, model.coef_)
    # More rows make the refined answer that of the past.
    model.partial_fit(WIDE[:10], WIDE_TARGET[:10])
    assert np.linalg.norm(model.coef_ - exact.coef_) > errors[2]


def test_a_vacuous_certificate_warns():
    model = StreamingRidge(1e-6, sketch="fd", sketch_size=10).fit(WIDE, WIDE_TARGET)
    with pytest.warns(
        UserWarning, match="standardize the columns, enlarge alpha, enlarge sketch_size or refine"
    ):
        _ = model.coef_


def test_sparse_rows_are_never_made_dense():
    import tracemalloc

    rows = sp.random_array((5000, 40_000), density=5e-4, format="csr", rng=0)
    target = np.asarray(rows[:, :50].sum(axis=1)).ravel()
    model = StreamingRidge(sketch_size=10).partial_fit(rows[:50], target[:50])
    tracemalloc.start()
    try:
        for part in np.array_split(np.arange(5000), 5):
            model.partial_fit(rows[part], target[part])
        _ = model.coef_
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * 1000 * 40_000 * 8


def test_mistakes_are_said_in_one_sentence():
    with pytest.raises(ValueError, match="alpha is -1.0; give a number from 0 on"):
        StreamingRidge(-1.0).fit(X, Y)
    model = StreamingRidge().fit(X, Y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match=r"got targets of shape \(n_rows,\), expected"):
        model.partial_fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(X, np.full((400, 3), np.nan))
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((4, 12), np.nan), Y[:4])
    np.testing.assert_array_equal(model.coef_, before)
    with pytest.raises(NotMergeableError, match="centered"):
        model.merge(StreamingRidge(fit_intercept=False).fit(X, Y))
    with pytest.raises(NotMergeableError, match="targets"):
        model.merge(StreamingRidge().fit(X, Y[:, 0]))


@parametrize_with_checks([StreamingRidgeCV(), StreamingRidgeCV(sketch="rfd", sketch_size=8)])
def test_scikit_learn_contract_of_the_choice(estimator, check):
    check(estimator)


def test_gcv_is_that_of_scikit_learn_where_nothing_is_lost():
    alphas = np.geomspace(0.1, 1e4, 9)
    ours = StreamingRidgeCV(alphas).fit(WIDE, WIDE_TARGET)
    centered = WIDE - WIDE.mean(axis=0), WIDE_TARGET - WIDE_TARGET.mean()
    expected = []
    for alpha in alphas:
        hat = centered[0] @ np.linalg.solve(
            centered[0].T @ centered[0] + alpha * np.eye(200), centered[0].T
        )
        free = np.trace(hat) + 1
        expected.append(600 * ((centered[1] - hat @ centered[1]) ** 2).sum() / (600 - free) ** 2)
    np.testing.assert_allclose(ours.scores_, expected, rtol=1e-6)
    assert ours.alpha_ == alphas[np.argmin(expected)]
    np.testing.assert_allclose(ours.coef_, Ridge(ours.alpha_).fit(WIDE, WIDE_TARGET).coef_)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_the_holdout_is_not_learned_from_and_does_not_depend_on_blocks(make, tmp_path):
    options = {"selection": "holdout", "holdout_rows": 50, "sketch": "exact"}
    whole = StreamingRidgeCV([0.1, 10.0, 1e3], **options).fit(make(WIDE), WIDE_TARGET)
    split = StreamingRidgeCV([0.1, 10.0, 1e3], **options)
    for part in np.array_split(np.arange(600), 11):
        split.partial_fit(make(WIDE[part]), WIDE_TARGET[part])
        split.save(tmp_path / "cv.sks")
        split = sksketch.load(tmp_path / "cv.sks")
    np.testing.assert_array_equal(whole.coef_, split.coef_)
    np.testing.assert_array_equal(whole.scores_, split.scores_)
    assert whole.n_samples_seen_ == 550
    held = whole._reservoir
    rows = held.X.toarray() if sp.issparse(held.X) else held.X
    where = [int(np.flatnonzero((row == WIDE).all(axis=1))[0]) for row in rows]
    rest = np.delete(np.arange(600), where)
    model = Ridge(whole.alpha_).fit(WIDE[rest], WIDE_TARGET[rest])
    np.testing.assert_allclose(whole.coef_, model.coef_, atol=1e-9)
    error = ((model.predict(WIDE[where]) - WIDE_TARGET[where]) ** 2).mean()
    assert whole.scores_.min() == pytest.approx(error)


def test_mistakes_in_the_choice():
    with pytest.raises(ValueError, match=r"alphas is \[-1.0\]; give numbers from 0 on"):
        StreamingRidgeCV([-1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="selection is 'loo'; give one of 'gcv'"):
        StreamingRidgeCV(selection="loo").fit(X, Y)
    held = StreamingRidgeCV(selection="holdout").fit(X, Y)
    with pytest.raises(ValueError, match="cannot be merged"):
        held.merge(held)


@pytest.mark.parametrize("sketch", ["exact", "rfd", "countsketch"])
@pytest.mark.parametrize("standardize", [False, True])
def test_every_target_can_have_a_penalty_of_its_own(sketch, standardize, tmp_path):
    penalties = [0.0, 200.0, 3.0]
    options = {"sketch": sketch, "sketch_size": 60, "standardize": standardize}
    model = StreamingRidge(penalties, **options).fit(X, Y)
    for j, alpha in enumerate(penalties):
        alone = StreamingRidge(alpha, **options).fit(X, Y[:, j])
        np.testing.assert_allclose(model.coef_[j], alone.coef_, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(model.intercept_[j], alone.intercept_, rtol=1e-7)
        assert model.coef_error_bound_ >= 0.99 * alone.coef_error_bound_
        np.testing.assert_allclose(model.rmse_[j], alone.rmse_, rtol=1e-6)
        bounds = model.prediction_error_bound(X)[:, j], alone.prediction_error_bound(X)
        if sketch == "countsketch":
            assert np.isinf(bounds[0]).all()
        elif not standardize:
            exact = Ridge(alpha, solver="cholesky").fit(X, Y[:, j]).predict(X)
            assert (np.abs(model.predict(X)[:, j] - exact) <= bounds[0] + 1e-9).all()
    model.save(tmp_path / "model.sks")
    again = sksketch.load(tmp_path / "model.sks")
    np.testing.assert_array_equal(again.coef_, model.coef_)
    with pytest.raises(ValueError, match="number of penalties do not correspond: 3 != 1"):
        StreamingRidge(penalties).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="inference is for one penalty, got 3"):
        model.inference()


def test_refined_targets_have_their_own_penalties():
    target = np.column_stack([WIDE_TARGET, WIDE_TARGET + WIDE[:, 1]])
    model = StreamingRidge([5.0, 50.0], sketch="rfd", sketch_size=40, refine=40).fit(WIDE, target)
    theirs = Ridge([5.0, 50.0]).fit(WIDE, target)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-8)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_predictions_have_the_precision_of_the_rows(make):
    single = make(X.astype(np.float32))
    model = StreamingRidge(2.5).fit(single, Y)
    found, bounds = model.predict(single), model.prediction_error_bound(single)
    assert found.dtype == np.float32
    assert model.predict(make(X)).dtype == np.float64
    exact = Ridge(2.5, solver="cholesky").fit(X.astype(np.float32).astype(np.float64), Y)
    off = np.abs(found - exact.predict(X.astype(np.float32).astype(np.float64)))
    assert (off <= bounds).all()
    # Not more than a rounding in single precision.
    assert (bounds <= 1e-6 * (1.0 + np.abs(found))).all()


def test_one_weight_is_that_of_all_rows():
    models = [
        StreamingRidge(2.5),
        StreamingRidge(2.5, sketch="rfd", sketch_size=4, standardize=True),
        StreamingRidge(2.5, sketch="rfd", sketch_size=4, refine=2),
        StreamingRidgeCV((1.0, 5.0), selection="holdout"),
    ]
    for model in models:
        found = model.fit(X, Y, sample_weight=2.0).coef_
        np.testing.assert_array_equal(found, model.fit(X, Y, sample_weight=[2.0] * 400).coef_)
    model = StreamingRidge(0.0).fit(X, Y, sample_weight=2.0)
    wanted = StreamingRidge(0.0).fit(X, Y, sample_weight=[2.0] * 400)
    errors = [fitted.inference("HC1").standard_error for fitted in (model, wanted)]
    np.testing.assert_array_equal(*errors)
    with pytest.raises(ValueError, match="finite and not negative"):
        model.fit(X, Y, sample_weight=-1.0)


def test_one_penalty_to_choose_from_is_a_number():
    model = StreamingRidgeCV(3.0).fit(X, Y[:, 0])
    assert model.alpha_ == 3.0
    assert model.best_score_ == -model.scores_[0]
    several = StreamingRidgeCV((1.0, 30.0)).fit(X, Y[:, 0])
    assert several.best_score_ == -several.scores_.min()
    assert type(model.intercept_) is np.float64
    with pytest.raises(ValueError, match="alphas is"):
        StreamingRidgeCV((1.0, "2.0")).fit(X, Y)


@pytest.mark.parametrize("selection", ["gcv", "holdout"])
@pytest.mark.parametrize("sketch", ["exact", "rfd", "countsketch"])
def test_a_penalty_can_be_chosen_for_each_target(selection, sketch, tmp_path):
    noisy = Y + RNG.standard_normal(Y.shape) * [0.0, 30.0, 300.0]
    options = {"sketch": sketch, "sketch_size": 60, "selection": selection, "holdout_rows": 50}
    alphas = np.logspace(-1, 5, 7)
    model = StreamingRidgeCV(alphas, alpha_per_target=True, **options).fit(X, noisy)
    alone = [StreamingRidgeCV(alphas, **options).fit(X, target) for target in noisy.T]
    np.testing.assert_array_equal(model.alpha_, [one.alpha_ for one in alone])
    assert len(set(model.alpha_)) > 1
    assert model.score_intervals_.shape == (7, 3, 2)
    for name in ("scores_", "score_intervals_"):
        wanted = np.stack([getattr(one, name) for one in alone], axis=1)
        np.testing.assert_allclose(getattr(model, name), wanted, rtol=1e-7)
    np.testing.assert_allclose(model.best_score_, [one.best_score_ for one in alone], rtol=1e-7)
    np.testing.assert_allclose(model.coef_, [one.coef_ for one in alone], rtol=1e-6, atol=1e-9)
    model.save(tmp_path / "model.sks")
    np.testing.assert_array_equal(sksketch.load(tmp_path / "model.sks").alpha_, model.alpha_)
    joint = StreamingRidgeCV(alphas, **options).fit(X, noisy)
    np.testing.assert_allclose(joint.scores_, model.scores_.mean(axis=1), rtol=1e-9)
    single = StreamingRidgeCV(alphas, alpha_per_target=True, **options).fit(X, noisy[:, 0])
    assert isinstance(single.alpha_, float)
