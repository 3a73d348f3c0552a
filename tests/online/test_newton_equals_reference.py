"""The online Newton estimators do what the plain learners of `online.reference` do."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import sksketch
from _support.paper_learners import paper_classifier, paper_regressor
from sksketch.online import reference

LOSSES = ("squared", "logistic", "hinge")
LABELS = np.array([-1.0, 1.0])
# Both sides round every sum; on these streams the differences stay far below.
ATOL = 1e-8
WIDTH = 30
# A full table of maps is flushed after 256 shrinks, one for every m + 1 gradients.
N_LONG = 12_000


def stream(n_rows, n_features=WIDTH, density=0.4, seed=0, noise=0.3):
    """Return rows of falling strength, some of them empty, and labels of +-1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) * (rng.random((n_rows, n_features)) < density)
    X *= np.geomspace(3.0, 0.1, n_features)
    X[rng.random(n_rows) < 0.02] = 0.0
    margins = X @ rng.standard_normal(n_features) + noise * rng.standard_normal(n_rows)
    return X, np.where(margins >= 0, 1.0, -1.0)


def classifier(method="rfd", **options):
    options = {"fit_intercept": False} | options
    return paper_classifier(method, **options)


def blocks(n_rows, length):
    return [slice(start, start + length) for start in range(0, n_rows, length)]


def fed(model, X, y, length=None, **options):
    for part in blocks(len(y), length or len(y)):
        weights = {name: value[part] for name, value in options.items()}
        model.partial_fit(X[part], y[part], classes=LABELS, **weights)
    return model


def scores(model, X, y):
    """Return the raw score of each row before it is learned."""
    model.partial_fit(X[:1], y[:1], classes=LABELS)
    found = [0.0]
    for i in range(1, X.shape[0]):
        found.append(float(model.decision_function(X[i : i + 1])[0]))
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return np.array(found)


def assert_equal_to(run, model, X, y):
    __tracebackhide__ = True
    np.testing.assert_allclose(np.ravel(model.coef_), run.weights, atol=ATOL)
    np.testing.assert_allclose(model.cumulative_loss_, run.total_loss, atol=ATOL * len(y))
    wrong = np.mean(np.where(run.raw > 0, 1.0, -1.0)[run.raw != 0] != y[run.raw != 0])
    ties = np.mean(run.raw == 0)
    np.testing.assert_allclose(model.online_error_, wrong, atol=ties + 1e-12)


SIZES = (2, 5, 10)
SETTINGS = [
    *(("rfd", ridge, size) for ridge in ("auto", 1.0, 0.01) for size in SIZES),
    # Plain and parameterized FD amplify roundings without end when the ridge is small.
    *((method, 100.0, size) for method in ("fd", "pfd") for size in SIZES),
    *((method, ridge, 2) for method in ("full", "adagrad", "ogd") for ridge in (1.0, 10.0)),
    ("full", "auto", 2),
]


@pytest.mark.parametrize(("method", "ridge", "size"), SETTINGS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_score_is_that_of_the_plain_learner(method, ridge, size, loss):
    X, y = stream(250)
    model = classifier(method, sketch_size=size, loss=loss, initial_ridge=ridge)
    run = reference.learn(X, y, method=method, size=size, loss=loss, initial_ridge=ridge)
    np.testing.assert_allclose(scores(model, X, y), run.raw, atol=ATOL)
    assert_equal_to(run, model, X, y)


@pytest.mark.filterwarnings("ignore:.*ridge")
@pytest.mark.parametrize("rule", ["exact", "range", "printed", "clip"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("size", SIZES)
def test_without_a_ridge_the_pseudo_inverse_phase_is_the_same(rule, loss, size):
    X, y = stream(200)
    options = {"initial_ridge": 0.0, "null_projection": rule, "loss": loss}
    model = classifier(sketch_size=size, **options)
    run = reference.learn(X, y, size=size, **options)
    np.testing.assert_allclose(scores(model, X, y), run.raw, atol=1e-7)


LONG = [
    *(("rfd", "auto", 5, loss) for loss in LOSSES),
    *(("rfd", ridge, size, "squared") for ridge in ("auto", 1.0) for size in (2, 10)),
    ("fd", 100.0, 5, "logistic"),
    ("pfd", 100.0, 5, "hinge"),
]


@pytest.mark.parametrize(("method", "ridge", "size", "loss"), LONG)
def test_long_streams_with_several_flushes_of_the_table(method, ridge, size, loss):
    X, y = stream(N_LONG)
    run = reference.learn(X, y, method=method, size=size, loss=loss, initial_ridge=ridge)
    n_gradients = sum(r.gradient.any() for r in run.rounds)
    assert n_gradients > 3 * 256 * (size + 1)
    for rows in (X, sp.csr_matrix(X)):
        model = classifier(method, sketch_size=size, loss=loss, initial_ridge=ridge)
        assert_equal_to(run, fed(model, rows, y, 1000), X, y)


@pytest.mark.filterwarnings("ignore:.*ridge")
def test_a_long_stream_without_a_ridge():
    X, y = stream(N_LONG)
    run = reference.learn(X, y, size=5, initial_ridge=0.0)
    model = fed(classifier(sketch_size=5, initial_ridge=0.0), sp.csr_matrix(X), y, 501)
    np.testing.assert_allclose(np.ravel(model.coef_), run.weights, atol=ATOL)


@pytest.mark.parametrize("buffer_rows", [5, 8, 15, 20])
def test_any_length_of_the_buffer(buffer_rows):
    X, y = stream(1500)
    model = fed(classifier(sketch_size=5, buffer_rows=buffer_rows), X, y)
    run = reference.learn(X, y, size=5, buffer_rows=buffer_rows)
    assert_equal_to(run, model, X, y)


@pytest.mark.parametrize("C", [0.3, 2.0, 5.0])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_other_limits_of_the_predictions(C, loss):
    X, y = stream(800)
    model = fed(classifier(sketch_size=5, C=C, loss=loss), X, y)
    assert_equal_to(reference.learn(X, y, size=5, C=C, loss=loss), model, X, y)


@pytest.mark.parametrize("method", ["rfd", "full", "adagrad", "ogd"])
def test_sample_weights_scale_gradients_and_zero_skips_the_row(method):
    X, y = stream(600)
    rng = np.random.default_rng(1)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], len(y))
    model = classifier(method, sketch_size=5, initial_ridge=2.0)
    fed(model, X, y, 77, sample_weight=weights)
    run = reference.learn(X, y, method=method, size=5, initial_ridge=2.0, sample_weight=weights)
    np.testing.assert_allclose(np.ravel(model.coef_), run.weights, atol=ATOL)
    np.testing.assert_allclose(model.cumulative_loss_, run.total_loss, atol=ATOL * len(y))


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
@pytest.mark.parametrize("wanted", [np.asarray, sp.csr_matrix])
def test_regression(loss, wanted):
    X, _ = stream(1500)
    rng = np.random.default_rng(2)
    y = np.clip(X @ rng.standard_normal(WIDTH) / 4 + 0.1 * rng.standard_normal(len(X)), -2, 2)
    model = paper_regressor(sketch_size=5, loss=loss, C=2.0, fit_intercept=False)
    for part in blocks(len(y), 211):
        model.partial_fit(wanted(X)[part], y[part])
    run = reference.learn(X, y, size=5, loss=loss, C=2.0)
    np.testing.assert_allclose(np.ravel(model.coef_), run.weights, atol=ATOL)
    np.testing.assert_allclose(model.cumulative_loss_, run.total_loss, atol=ATOL * len(y))


def test_an_intercept_is_one_more_column_of_ones():
    X, y = stream(1200, noise=2.0)
    model = fed(paper_classifier(sketch_size=5, fit_intercept=True), X, y, 100)
    run = reference.learn(np.hstack([X, np.ones((len(X), 1))]), y, size=5)
    np.testing.assert_allclose(np.ravel(model.coef_), run.weights[:-1], atol=ATOL)
    np.testing.assert_allclose(np.ravel(model.intercept_), run.weights[-1:], atol=ATOL)


METHODS = ("rfd", "fd", "pfd", "rp", "oja", "full", "adagrad", "ogd")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("length", [1, 7, 333])
@pytest.mark.parametrize("wanted", [np.asarray, sp.csr_matrix])
def test_cuts_of_the_stream_are_invisible(method, length, wanted):
    X, y = stream(1000)
    whole, cut = (
        fed(classifier(method, sketch_size=5, initial_ridge=10.0), wanted(X), y, each)
        for each in (None, length)
    )
    np.testing.assert_array_equal(cut.coef_, whole.coef_)
    assert cut.cumulative_loss_ == whole.cumulative_loss_
    assert cut.online_error_ == whole.online_error_


@pytest.mark.parametrize("method", METHODS)
def test_dense_and_sparse_rows_are_the_same_rows(method):
    X, y = stream(2000)
    dense, sparse = (
        fed(classifier(method, sketch_size=5, initial_ridge=10.0), rows, y)
        for rows in (X, sp.csr_matrix(X))
    )
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=ATOL)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("at", [3, 6, 10, 613, 617])
def test_saving_in_the_middle_of_a_buffer_is_invisible(method, at, tmp_path):
    X, y = stream(1500)
    X = sp.csr_matrix(X)
    options = {"sketch_size": 5, "initial_ridge": 10.0}
    whole = fed(classifier(method, **options), X, y)
    begun = fed(classifier(method, **options), X[:at], y[:at])
    begun.save(tmp_path / "model.sks")
    resumed = sksketch.load(tmp_path / "model.sks")
    fed(resumed, X[at:], y[at:])
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    assert resumed.cumulative_loss_ == whole.cumulative_loss_
    assert resumed.online_error_ == whole.online_error_


def test_saving_while_the_buffer_grows_is_invisible(tmp_path):
    X, y = stream(60)
    whole = fed(classifier(sketch_size=5), X, y)
    for at in range(1, 40):
        # Also right after each of the first shrinks, when the buffer has just grown.
        begun = fed(classifier(sketch_size=5), X[:at], y[:at])
        begun.save(tmp_path / "model.sks")
        resumed = fed(sksketch.load(tmp_path / "model.sks"), X[at:], y[at:])
        np.testing.assert_array_equal(resumed.coef_, whole.coef_)


@pytest.mark.filterwarnings("ignore:.*ridge")
@pytest.mark.parametrize("at", [2, 9, 40])
def test_saving_before_the_first_cut_without_a_ridge_is_invisible(at, tmp_path):
    X, y = stream(300)
    options = {"sketch_size": 8, "initial_ridge": 0.0}
    whole = fed(classifier(**options), X, y)
    begun = fed(classifier(**options), X[:at], y[:at])
    begun.save(tmp_path / "model.sks")
    resumed = fed(sksketch.load(tmp_path / "model.sks"), X[at:], y[at:])
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)


@pytest.mark.parametrize("method", METHODS)
def test_reading_has_no_consequences(method):
    X, y = stream(1000)
    options = {"sketch_size": 5, "initial_ridge": 10.0}
    plain = fed(classifier(method, **options), X, y, 50)
    read = classifier(method, **options)
    for part in blocks(len(y), 50):
        read.partial_fit(X[part], y[part], classes=LABELS)
        np.testing.assert_array_equal(read.coef_, read.coef_)
        read.predict(X[:5])
        read.regret_bound(1.0)
        read.state()
    np.testing.assert_array_equal(read.coef_, plain.coef_)


def test_progressive_score_is_partial_fit_that_counts():
    X, y = stream(500)
    model, other = (classifier(sketch_size=5) for _ in range(2))
    fed(model, X[:300], y[:300])
    fed(other, X[:300], y[:300])
    run = reference.learn(X, y, size=5)
    share = model.progressive_score(X[300:], y[300:])
    ties = np.mean(run.raw[300:] == 0)
    right = np.mean(np.sign(run.raw[300:]) == y[300:])
    np.testing.assert_allclose(share, right, atol=ties + 1e-12)
    fed(other, X[300:], y[300:])
    np.testing.assert_array_equal(model.coef_, other.coef_)


@pytest.mark.parametrize("method", ["rp", "oja"])
def test_random_methods_learn_as_well_as_the_plain_ones(method):
    # Their random numbers differ, so only what they are good for can be compared.
    X, y = stream(3000)
    rng = np.random.default_rng(0)
    mine, plain = [], []
    for seed in range(5):
        model = classifier(method, sketch_size=5, initial_ridge=100.0, random_state=seed)
        mine.append(fed(model, X, y).online_error_)
        start = np.linalg.qr(rng.standard_normal((WIDTH, 5)))[0].T
        run = reference.learn(
            X, y, method=method, size=5, initial_ridge=100.0, rng=rng, start=start
        )
        plain.append(np.mean(np.where(run.raw >= 0, 1.0, -1.0) != y))
    assert abs(np.mean(mine) - np.mean(plain)) < 0.02
