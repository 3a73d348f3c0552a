"""Bounds of the regret against weights that may or may not keep the limit of predictions."""

from dataclasses import replace

import numpy as np
import pytest

import sksketch
from _support.paper_learners import paper_classifier, paper_regressor
from sksketch.online.kernels import layout

LOSSES = {
    "squared": lambda z, y: (z - y) ** 2,
    "absolute": lambda z, y: np.abs(z - y),
    "huber": lambda z, y: np.where(np.abs(z - y) <= 1, 0.5 * (z - y) ** 2, np.abs(z - y) - 0.5),
    "logistic": lambda z, y: np.logaddexp(0, -y * z),
    "hinge": lambda z, y: np.maximum(0, 1 - y * z),
}


@pytest.mark.parametrize(("growth", "ridge"), [(8.0, 1e-3), (2.0, 1.0)])
def test_a_limit_that_grows_makes_no_promise_about_early_rounds(growth, ridge):
    # Weights that predict all but the first targets, which the limit then did not allow.
    x = np.r_[np.ones(20), growth ** np.arange(1, 9)]
    y = np.r_[np.full(20, 0.01), x[20:]]
    options = {"sketch_size": 2, "fit_intercept": False, "initial_ridge": ridge}
    model = paper_regressor(**options).fit(x[:, None], y)
    assert model.cumulative_loss_ - np.sum((x - y) ** 2) <= model.regret_bound(norm=1.0)
    assert model.regret_bound(norm=1.0) == np.inf
    regret = model.cumulative_loss_ - np.sum((1e-3 * x - y) ** 2)
    assert regret <= model.regret_bound(norm=1e-3)
    if growth == 2.0:
        assert model.regret_bound(norm=1e-3) < np.inf
        fixed = paper_regressor(**options, C=float(y.max())).fit(x[:, None], y)
        assert fixed.regret_bound(norm=1.0) < np.inf


@pytest.mark.parametrize("method", ["rfd", "fd", "pfd", "full"])
@pytest.mark.parametrize("norm", [1.0, 5.0, 10.0])
def test_weights_that_predict_beyond_the_limit_have_no_bound(method, norm):
    X = np.random.default_rng(0).choice([-1.0, 1.0], (5000, 1))
    options = {"loss": "logistic", "fit_intercept": False, "sketch_size": 2}
    model = paper_classifier(method, **options).fit(X, X[:, 0] > 0)
    regret = model.cumulative_loss_ - 5000 * np.logaddexp(0, -norm)
    assert regret <= model.regret_bound(norm)
    assert np.isfinite(model.regret_bound(norm)) == (norm == 1.0)
    # Who vouches for more gets what the theorem says then.
    assert model.regret_bound(norm, within=True) < np.inf


def best_of(X, y, value, norm, rng):
    """Return weights of that norm or less with a small loss, and some others."""
    least = np.linalg.lstsq(X, y, rcond=None)[0]
    found = [np.zeros(X.shape[1]), least, -least, *rng.standard_normal((4, X.shape[1]))]
    for w in found:
        length = np.linalg.norm(w)
        w *= norm / length if length > 0 else 0.0
    return [*found, *(0.5 * w for w in found)]


@pytest.mark.parametrize("method", ["rfd", "fd", "pfd", "full", "adagrad", "ogd"])
@pytest.mark.parametrize("loss", LOSSES)
def test_regret_is_within_the_bound_for_any_weights_of_the_norm(method, loss):
    finite = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(3, 60)), int(rng.integers(1, 4))
        growth = rng.choice([0.0, 0.03, 0.1]) * np.arange(n)
        X = rng.standard_normal((n, d)) * np.exp(growth)[:, None]
        X = np.abs(X) if rng.random() < 0.3 else X
        y = X @ rng.standard_normal(d) + rng.choice([0.0, 0.1]) * rng.standard_normal(n)
        y[: int(rng.integers(0, n))] *= rng.choice([1.0, 1e-3])
        labels = loss in ("logistic", "hinge")
        y = np.where(y > 0, 1.0, -1.0) if labels else y
        auto = not labels and rng.random() < 0.7
        C = 1.0 if labels else float(np.abs(y).max())
        options = {"sketch_size": int(rng.integers(2, 5)), "fit_intercept": False, "loss": loss}
        options |= {"initial_ridge": float(10 ** rng.uniform(-4, 1)), "C": "auto" if auto else C}
        if labels:
            model = paper_classifier(method, **options)
            model.partial_fit(X, y, classes=[-1.0, 1.0])
        else:
            model = paper_regressor(method, **options).fit(X, y)
        most = C / np.linalg.norm(X, axis=1).max()
        for norm in most * rng.choice([1e-3, 0.1, 0.9, 1.5, 30.0], 3, replace=False):
            for w in best_of(X, y, LOSSES[loss], norm, rng):
                # Iterates of these two are kept near by hand: no distance is known otherwise.
                radius = 1e6 if method in ("adagrad", "ogd") else None
                bound = model.regret_bound(norm, radius)
                paid = model.cumulative_loss_ - LOSSES[loss](X @ w, y).sum()
                assert paid <= bound * (1 + 1e-9) + 1e-9 * (1 + model.cumulative_loss_)
            finite += np.isfinite(bound)
    assert finite >= 30


def test_old_states_do_not_know_how_far_their_rows_reached():
    X = np.random.default_rng(0).standard_normal((50, 3))
    for method in ("rfd", "full", "ogd"):
        model = paper_regressor(method, C=10.0).fit(X, X[:, 0])
        state = model.state()
        assert np.isfinite(model.regret_bound(1e-3, 5.0))
        meta = {**state.meta, "learner0.version": 1}
        sums = state.arrays["learner0.sums"][: layout.REACH]
        arrays = {**state.arrays, "learner0.sums": sums}
        old = type(model).from_state(replace(state, meta=meta, arrays=arrays))
        assert old.regret_bound(1e-3, 5.0) == np.inf
        bound = model.regret_bound(1e-3, 5.0, within=True)
        assert old.regret_bound(1e-3, 5.0, within=True) == bound
        with pytest.raises(sksketch.StateFormatError):
            type(model).from_state(replace(state, arrays=arrays))


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_learner_that_diverges_has_no_small_bound():
    # Rows that grow without end: the length of the weights is then a difference of large numbers.
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 1)) * np.exp(0.6 * np.arange(60))[:, None]
        y = X[:, 0] * rng.standard_normal()
        options = {"sketch_size": 2, "fit_intercept": False, "initial_ridge": 1e-3}
        with np.errstate(all="ignore"):
            model = paper_regressor(**options).fit(X, y)
        norm = 0.9 / model.learners_[0]._sums[layout.REACH : layout.SPAN].max()
        best = np.sign(y[-1] * X[-1, 0]) * norm
        paid = model.cumulative_loss_ - np.sum((X[:, 0] * best - y) ** 2)
        assert not paid > model.regret_bound(norm)
        assert not np.isnan(model.regret_bound(norm))
