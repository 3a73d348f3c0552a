"""The online estimators: scikit-learn's contract, labels, names, splits, saving, bad input."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

import sksketch
from _support.paper_learners import paper_classifier, paper_regressor
from sksketch import (
    NotMergeableError,
    OnlineNewtonClassifier,
    OnlineNewtonRegressor,
    fit_stream,
    open_rows,
)
from sksketch._keys import ONLINE_METHODS as METHODS

RNG = np.random.default_rng(0)
X = RNG.standard_normal((900, 12)) * (RNG.random((900, 12)) < 0.4)
WEIGHTS = RNG.standard_normal(12)
Y = np.where(X @ WEIGHTS + 0.2 * RNG.standard_normal(900) > 0, 1, -1)
TARGET = 50.0 * (X @ WEIGHTS) + 7.0 + RNG.standard_normal(900)
THREE = np.array(["ant", "bee", "cow"])[np.argmax(X @ RNG.standard_normal((12, 3)), axis=1)]

ORDERED = {
    "check_sample_weight_equivalence_on_dense_data": "rows are learned from one after the other",
    "check_sample_weight_equivalence_on_sparse_data": "rows are learned from one after the other",
}


@parametrize_with_checks(
    [
        OnlineNewtonClassifier(),
        OnlineNewtonClassifier("full", loss="logistic"),
        OnlineNewtonClassifier(loss="hinge", C=4.0),
        OnlineNewtonRegressor(),
        OnlineNewtonRegressor(loss="huber", sketch_size=5),
    ],
    expected_failed_checks=lambda _: ORDERED,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def cut(n_rows, seed):
    rng = np.random.default_rng(seed)
    edges = np.unique(rng.integers(1, n_rows, 60))
    return [slice(a, b) for a, b in zip([0, *edges], [*edges, n_rows], strict=True)]


MAKERS = {
    **{method: lambda method=method: paper_classifier(method, sketch_size=5) for method in METHODS},
    "rfd0": lambda: paper_classifier(sketch_size=5, initial_ridge=0.0),
    "logistic": lambda: paper_classifier(sketch_size=4, loss="logistic", C=3.0),
    "regression": lambda: paper_regressor(sketch_size=6),
    "absolute": lambda: paper_regressor(sketch_size=6, loss="absolute"),
}
pytestmark = pytest.mark.filterwarnings("ignore:without an initial ridge")


def fed(model, rows, y, weights=None):
    options = {"classes": np.unique(Y)} if hasattr(model, "class_weight") else {}
    return model.partial_fit_predict(rows, y, sample_weight=weights, **options)


def target_of(model):
    return Y if hasattr(model, "class_weight") else TARGET


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", MAKERS)
def test_any_split_and_any_resume_give_the_same_bits(name, form, tmp_path):
    whole, parts = MAKERS[name](), MAKERS[name]()
    y = target_of(whole)
    weights = RNG.choice([0.0, 0.5, 1.0, 2.0], len(X))
    expected = fed(whole, form(X), y, weights)
    found = []
    for number, part in enumerate(cut(len(X), 3)):
        found.append(fed(parts, form(X)[part], y[part], weights[part]))
        if number % 7 == 0:
            parts.save(tmp_path / "model.sks")
            parts = sksketch.load(tmp_path / "model.sks")
    assert np.array_equal(np.concatenate(found), expected)
    assert np.array_equal(parts.coef_, whole.coef_)
    whole.save(tmp_path / "whole.sks")
    parts.save(tmp_path / "parts.sks")
    assert (tmp_path / "whole.sks").read_bytes() == (tmp_path / "parts.sks").read_bytes()


@pytest.mark.parametrize("name", MAKERS)
def test_dense_and_sparse_rows_agree(name):
    dense, sparse = MAKERS[name](), MAKERS[name]()
    y = target_of(dense)
    fed(dense, X, y)
    fed(sparse, sp.csr_array(X), y)
    scale = np.abs(dense.coef_).max()
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-8 * scale)
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(X)), sparse.predict(sp.coo_array(X)))
    np.testing.assert_allclose(sparse.predict(sp.csr_array(X)), sparse.predict(X), rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_learn(method):
    model = paper_classifier(method, sketch_size=6).fit(X, Y)
    assert model.score(X, Y) > 0.8
    assert model.online_error_ < 0.25
    regression = paper_regressor(method, sketch_size=6, n_passes=5).fit(X, TARGET)
    assert regression.score(X, TARGET) > 0.5


def test_online_error_and_loss_are_those_of_the_predictions():
    model = paper_classifier(sketch_size=5)
    found = model.partial_fit_predict(X, Y, classes=[-1, 1])
    assert model.online_error_ == np.mean(found != Y)
    assert model.n_samples_seen_ == len(X)
    again = paper_classifier(sketch_size=5)
    score = again.progressive_score(X, Y, classes=[-1, 1])
    assert score == pytest.approx(1 - model.online_error_)
    assert 0 < model.cumulative_loss_ < 4 * len(X)
    regression = paper_regressor(sketch_size=5)
    found = regression.partial_fit_predict(X, TARGET)
    assert regression.online_error_ == pytest.approx(np.mean((found - TARGET) ** 2), rel=1e-12)


def test_the_unit_of_the_targets_does_not_matter():
    one, two = (paper_regressor(sketch_size=5).fit(X, u * TARGET) for u in (1.0, 1024.0))
    np.testing.assert_allclose(two.coef_, 1024.0 * one.coef_, rtol=1e-9)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_several_classes_have_a_learner_each(loss):
    model = paper_classifier(sketch_size=6, loss=loss, C=2.0, n_passes=3).fit(X, THREE)
    assert model.coef_.shape == (3, 12)
    assert model.score(X, THREE) > 0.8
    one = paper_classifier(sketch_size=6, loss=loss, C=2.0, n_passes=3).fit(X, THREE == "bee")
    np.testing.assert_array_equal(model.coef_[1], one.coef_[0])
    if loss == "logistic":
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    else:
        assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize(
    "labels", [[False, True], ["no", "yes"], [-1, 1], [0, 1], [2.0, 7.0], ["a", "b", "c"]]
)
def test_labels_of_any_type_are_kept(labels, tmp_path):
    y = np.array(labels)[np.arange(len(X)) % len(labels)]
    model = paper_classifier(sketch_size=3).fit(X, y)
    model.save(tmp_path / "model.sks")
    loaded = sksketch.load(tmp_path / "model.sks")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert set(model.predict(X).tolist()) <= set(labels)


def test_weights_scale_the_loss():
    doubled = paper_classifier(sketch_size=5, class_weight={-1: 1.0, 1: 2.0}).fit(X, Y)
    by_row = paper_classifier(sketch_size=5).fit(X, Y, sample_weight=np.where(Y > 0, 2.0, 1))
    np.testing.assert_array_equal(doubled.coef_, by_row.coef_)
    kept = RNG.random(len(X)) < 0.5
    some = paper_classifier(sketch_size=5).fit(X, Y, sample_weight=kept.astype(float))
    alone = paper_classifier(sketch_size=5).fit(X[kept], Y[kept])
    np.testing.assert_allclose(some.coef_, alone.coef_, atol=1e-12)
    assert some.online_error_ == alone.online_error_
    balanced = paper_classifier(sketch_size=5, class_weight="balanced").fit(X, Y)
    assert balanced.score(X, Y) > 0.85
    with pytest.raises(ValueError, match="'balanced' needs all labels at once"):
        balanced.partial_fit(X, Y)


@pytest.mark.parametrize("name", ["rfd", "rfd0", "oja", "rp", "regression"])
def test_checkpoints_are_exact(name, tmp_path):
    y = target_of(MAKERS[name]())
    options = {"progress": False}
    if hasattr(MAKERS[name](), "class_weight"):
        options["classes"] = [-1, 1]
    whole = fit_stream(MAKERS[name](), open_rows(X, target=y, batch_rows=77), **options)

    def stop(n_done, _):
        if n_done > 400:
            raise KeyError

    path = tmp_path / "run.checkpoint"
    options["progress"] = stop
    with pytest.raises(KeyError):
        fit_stream(
            MAKERS[name](), open_rows(X, target=y, batch_rows=77), checkpoint=path, **options
        )
    options["progress"] = False
    resumed = fit_stream(
        MAKERS[name](), open_rows(X, target=y, batch_rows=130), checkpoint=path, **options
    )
    for model, file in ((whole, "whole.sks"), (resumed, "resumed.sks")):
        model.save(tmp_path / file)
    assert (tmp_path / "whole.sks").read_bytes() == (tmp_path / "resumed.sks").read_bytes()


def test_works_in_a_pipeline():
    model = make_pipeline(Normalizer(), paper_classifier(sketch_size=5)).fit(X, Y)
    assert model.score(X, Y) > 0.85


def test_merge_says_why_not():
    model = paper_classifier(sketch_size=5).fit(X, Y)
    with pytest.raises(NotMergeableError, match="each step depends on all rows before it"):
        model.merge(model)


def with_value(value):
    rows = X[:5].copy()
    rows[2, 3] = value
    return rows


BAD_ROWS = {
    "NaN": (with_value(np.nan), Y[:5], "NaN"),
    "infinite": (with_value(np.inf), Y[:5], "infinity"),
    "absurd": (with_value(1e90), Y[:5], "too large to learn from"),
    "wide": (np.ones((5, 13)), Y[:5], "13 features"),
    "text": (np.full((5, 12), "a"), Y[:5], "could not convert|string"),
    "no rows": (np.ones((0, 12)), Y[:0], "0 sample"),
    "short": (X[:5], Y[:4], "inconsistent"),
    "strange label": (X[:5], np.array([1, -1, 5, 1, 1]), "the label 5 is not one of"),
    "label NaN": (X[:5], np.array([1, -1, np.nan, 1, 1]), "NaN"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_input_is_refused_and_changes_nothing(name, tmp_path):
    rows, labels, message = BAD_ROWS[name]
    model = paper_classifier(sketch_size=4).fit(X, Y)
    model.save(tmp_path / "before.sks")
    with pytest.raises(ValueError, match=message):
        model.partial_fit(rows, labels)
    # A model without rows takes any width, and then asks for it.
    with pytest.raises(ValueError, match="expecting 13 features" if name == "wide" else message):
        paper_classifier().partial_fit(rows, labels, classes=[-1, 1]).predict(X)
    if name not in ("strange label", "wide"):
        with pytest.raises(ValueError, match=message):
            model.fit(rows, labels)
    model.save(tmp_path / "after.sks")
    assert (tmp_path / "before.sks").read_bytes() == (tmp_path / "after.sks").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "adam"}, "method is 'adam'; give one of 'rfd'"),
        ({"loss": "absolute"}, "loss is 'absolute'"),
        ({"sketch_size": 1}, "sketch_size is 1; give an integer of at least 2"),
        ({"sketch_size": 4, "buffer_rows": 3}, "buffer_rows is 3"),
        ({"C": -1.0}, "C is -1.0; give 'auto' or a positive number"),
        ({"initial_ridge": "some"}, "initial_ridge is 'some'"),
        ({"method": "fd", "initial_ridge": 0.0}, "leaves 'fd' without a curvature"),
        ({"fraction": 1.5}, "fraction is 1.5"),
        ({"n_passes": 0}, "n_passes is 0"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        paper_classifier(**options).fit(X, Y)


def test_targets_beyond_the_bound_are_refused():
    with pytest.raises(ValueError, match=r"beyond C=1\.0; raise C or pass 'auto'"):
        paper_regressor(C=1.0).fit(X, TARGET)


def test_first_partial_fit_needs_classes():
    with pytest.raises(ValueError, match="classes must be given at the first call"):
        paper_classifier().partial_fit(X, Y)
    with pytest.raises(ValueError, match="two or more are needed"):
        paper_classifier().partial_fit(X, Y, classes=[1])
    with pytest.raises(ValueError, match="got one class"):
        paper_classifier().fit(X, np.ones(len(X)))


def test_empty_rows_advance_the_clock_and_nothing_else():
    rows = X[:50].copy()
    rows[10:20] = 0.0
    model = paper_classifier(sketch_size=4, fit_intercept=False)
    found = model.partial_fit_predict(rows, Y[:50], classes=[-1, 1])
    assert (found[10:20] == -1).all()
    assert np.isfinite(model.coef_).all()


def test_memory_follows_the_columns_met():
    width = 10**7
    rows = sp.csr_array(
        (np.ones(3000), (np.repeat(np.arange(300), 10), RNG.integers(0, width, 3000))),
        shape=(300, width),
    )
    model = paper_classifier(sketch_size=5).partial_fit(rows, Y[:300], classes=[-1, 1])
    assert sum(a.nbytes for a in model.state().arrays.values()) < 2e6


@pytest.mark.parametrize("method", ["rfd", "fd", "pfd", "full"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
@pytest.mark.parametrize("C", [0.1, 0.5, 1.0, 3.0])
def test_regret_is_within_its_bound(method, loss, C):
    options = {"sketch_size": 5, "loss": loss, "C": C, "fit_intercept": False}
    model = paper_classifier(method, **options).fit(X, Y)
    best = C * WEIGHTS / np.abs(X @ WEIGHTS).max()
    z = X @ best
    losses = {
        "squared": (z - Y) ** 2,
        "logistic": np.log1p(np.exp(-Y * z)),
        "hinge": np.maximum(0, 1 - Y * z),
    }
    regret = model.cumulative_loss_ - losses[loss].sum()
    assert regret <= model.regret_bound(np.linalg.norm(best), within=True) < np.inf


def test_methods_without_a_bound_say_so():
    for method in ("rp", "oja", "adagrad"):
        assert paper_classifier(method).fit(X, Y).regret_bound(1.0) == np.inf
    model = paper_classifier("adagrad").fit(X, Y)
    assert model.regret_bound(1.0, radius=3.0, within=True) < np.inf
