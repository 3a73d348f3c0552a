"""Themes of the torture that are about reduction and online learning."""

from __future__ import annotations

import numpy as np
import scipy.optimize
import scipy.sparse as sp

import sksketch
from _support import extended, families, oracle
from _support.checks import check
from _support.extended import LD
from _support.oracle import Rows
from _support.paper_learners import paper_classifier, paper_regressor
from _support.sketch_themes import Result

LOSSES = {
    "squared": lambda z, y: (z - y) ** 2,
    "absolute": lambda z, y: np.abs(z - y),
    "huber": lambda z, y: np.where(np.abs(z - y) <= 1, (z - y) ** 2 / 2, np.abs(z - y) - 0.5),
    "logistic": lambda z, y: np.logaddexp(LD(0), -y * z),
    "hinge": lambda z, y: np.maximum(1 - y * z, 0),
    "squared_hinge": lambda z, y: np.maximum(1 - y * z, 0) ** 2,
}
OPERATORS = ("countsketch", "gaussian", "srht", "sample")


def reduction(rng):
    """What lies outside of a random subspace."""
    n, d = int(rng.integers(2, 120)), int(rng.integers(2, 30))
    family, rows = families.draw(rng, n, d)
    rows = families.fitted(rows, np.float64)
    k, operator = int(rng.integers(1, d + 1)), str(rng.choice(OPERATORS))
    passes = int(rng.random() < 0.3)
    model = sksketch.SubspaceReduction(
        k, operator=operator, n_power_iter=passes, random_state=int(rng.integers(1 << 30))
    )
    weights = rng.choice([0.5, 1.0, 3.0], n) if rng.random() < 0.2 else None
    model.fit(rows, sample_weight=weights)
    return Result(
        f"{family} {n} x {d}: SubspaceReduction({k}, operator={operator!r}, {passes=})",
        _outside(model, rows, weights),
    )


def _outside(model, rows, weights):
    found = oracle.truth(Rows(rows.shape[1]).update(rows, weights))
    Q = extended.orthonormal(model.components_)
    # Twice, since what is left can be far smaller than what is taken off.
    G = found.gram
    for _ in range(2):
        G = G - Q.T @ (Q @ G)
        G = G - (G @ Q.T) @ Q
    error, slack = extended.spectral_norm((G + G.T) / 2)
    low, high = model.spectral_error_
    slack = slack + found.error + 16 * len(G) * extended.ROUNDOFF * found.trace + LD(1e-300)
    failure = 1.0 - model.spectral_confidence_
    return [
        check("outside of the subspace, upper end", error, high, slack, failure),
        check("outside of the subspace, lower end", low, error, slack),
    ]


def reduced_model(rng):
    """How much better the best model of all columns can be."""
    n, d = int(rng.integers(8, 60)), int(rng.integers(3, 20))
    rows = rng.standard_normal((n, d)) * rng.uniform(0.5, 1) ** np.arange(d)
    rows *= 10.0 ** rng.uniform(-1, 1)
    y = rows @ rng.standard_normal(d) + rng.standard_normal(n)
    regression = bool(rng.random() < 0.4)
    kind = sksketch.ReducedRegressor if regression else sksketch.ReducedClassifier
    names = ["squared", "absolute"] if regression else ["hinge", "squared_hinge", "logistic"]
    loss = str(rng.choice(names))
    if not regression:
        y = np.where(y > np.median(y), 1.0, -1.0)
    options = {
        "method": str(rng.choice(["nor", "nordr", "rp", "rpdr", "dsrr"])),
        "loss": loss,
        "alpha": float(10.0 ** rng.uniform(-4, 0)),
        "operator": str(rng.choice(OPERATORS)),
        "fit_intercept": bool(rng.random() < 0.5),
        "tol": float(rng.choice([1e-2, 1e-4])),
        "random_state": int(rng.integers(1 << 30)),
    }
    k = int(rng.integers(1, d + 1))
    model = kind(k, **options).fit(rows, y)
    wide = np.column_stack([rows, np.ones(n)]) if options["fit_intercept"] else rows
    w = np.ravel(model.coef_)
    w = np.append(w, np.ravel(model.intercept_)[0]) if options["fit_intercept"] else w
    value = _objective(w.astype(LD), wide, y, loss, options["alpha"])
    best = _objective(_best(wide, y, loss, options["alpha"]), wide, y, loss, options["alpha"])
    # Any other model shows a gap that is there; the best one only makes the test sharper.
    slack = 1e-15 * value
    result = [check("objective gap", value - best, model.objective_gap_bound_, slack)]
    if np.isfinite(model.lemma2_bound_):
        result.append(check("objective gap, by lemma 2", value - best, model.lemma2_bound_, slack))
    return Result(f"{n} x {d}: {kind.__name__}({k}, {options})", result)


def _objective(w, X, y, loss, alpha):
    """Return mean loss + alpha / 2 |w|^2; squares count half here."""
    half = LD(0.5) if loss == "squared" else LD(1)
    w, X, y = w.astype(LD), X.astype(LD), y.astype(LD)
    return half * LOSSES[loss](X @ w, y).mean() + LD(alpha) / 2 * (w @ w)


def _best(X, y, loss, alpha):
    """Return nearly the best model: exact for squares, else by descent on a smoothed loss."""
    n, d = X.shape
    if loss == "squared":
        found = oracle.truth(Rows(d).update(X), targets=y)
        return oracle.ridge(found, alpha * n).coefficients
    soft = 1e-3

    def slope(z):
        if loss == "absolute":
            r = z - y
            return np.sqrt(r**2 + soft**2), r / np.sqrt(r**2 + soft**2)
        m = 1 - y * z
        if loss == "logistic":
            return np.logaddexp(0, -y * z), -y * np.exp(-np.logaddexp(0, y * z))
        if loss == "squared_hinge":
            return np.maximum(m, 0) ** 2, -2 * y * np.maximum(m, 0)
        root = np.sqrt(m**2 + soft**2)
        return (m + root) / 2, -y * (1 + m / root) / 2

    def smooth(w):
        value, derivative = slope(X @ w)
        return value.mean() + alpha / 2 * w @ w, X.T @ derivative / n + alpha * w

    return scipy.optimize.minimize(
        smooth, np.zeros(d), jac=True, method="L-BFGS-B", options={"maxiter": 150}
    ).x


def regret(rng):
    """What online predictions cost against fixed weights of a given length."""
    classify = bool(rng.random() < 0.4)
    d, n = int(rng.integers(1, 5)), int(rng.integers(3, 80))
    growth = rng.choice([0.0, 0.0, 0.02, 0.1, 0.3]) * np.arange(n)
    X = rng.standard_normal((n, d)) * np.exp(growth)[:, None]
    if rng.random() < 0.3:
        X = np.abs(X)
    w = rng.standard_normal(d)
    y = X @ w * rng.choice([1.0, 1.0, -1.0]) + rng.choice([0, 0.1]) * rng.standard_normal(n)
    if rng.random() < 0.4:
        # Targets that are tiny at first, so that a limit that follows them is late.
        y[: int(rng.integers(1, n))] *= 1e-3
    style = rng.random()
    if style < 0.1:
        # Rows that grow by leaps, and targets that were small until then.
        steps = rng.uniform(2, 12) ** np.arange(1, int(rng.integers(3, 10)))
        X = np.concatenate([np.ones(int(rng.integers(1, 40))), steps])[:, None]
        y = np.where(X[:, 0] == 1, 0.01, X[:, 0])
        w = np.ones(1)
    elif style < 0.2:
        # Labels that long weights explain without a loss, and short ones do not.
        X = rng.choice([-1.0, 1.0], (400, d))
        y = X[:, 0].copy()
        w = np.eye(d)[0] * rng.uniform(1, 12)
    n, d = X.shape
    intercept = bool(rng.random() < 0.3)
    options = {
        "method": str(rng.choice(["rfd", "rfd", "fd", "full", "adagrad", "ogd"])),
        "sketch_size": int(rng.integers(2, 6)),
        "initial_ridge": float(10.0 ** rng.uniform(-4, 1)) if rng.random() < 0.8 else "auto",
        "fit_intercept": intercept,
    }
    largest = float(np.abs(y).max())
    if classify:
        y = np.where(y > np.median(y), 1.0, -1.0)
        options |= {"loss": str(rng.choice(["squared", "logistic", "hinge"]))}
        options["C"] = limit = float(rng.choice([1.0, 1.0, 3.0]))
        model = paper_classifier(**options)
        model.partial_fit(X, y, classes=[-1.0, 1.0])
    else:
        auto = bool(rng.random() < 0.6) or largest == 0
        options |= {"loss": str(rng.choice(["squared", "squared", "absolute", "huber"]))}
        limit = largest if auto else largest * float(rng.choice([1.0, 2.0]))
        options["C"] = "auto" if auto else limit
        model = paper_regressor(**options).partial_fit(X, y)
    wide = np.column_stack([X, np.ones(n)]) if intercept else X
    teacher = np.append(w, 0.0) if intercept else w
    result = _regrets(rng, model, (wide, y, teacher), limit, options)
    return Result(f"regret {n} x {d}: {type(model).__name__}({options})", result)


def _regrets(rng, model, data, limit, options):
    """Check regrets against weights whose predictions are within the limit, and against others."""
    X, y, teacher = data
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    rivals = [teacher, *(best * rng.uniform(0, 1.2) for _ in range(3))]
    rivals += [rng.standard_normal(X.shape[1]) * 10.0 ** rng.uniform(-2, 1) for _ in range(3)]
    within = []
    for w in (best, *rivals):
        reach = float(np.abs(X @ w).max())
        within.append(w * min(1.0, 0.999999 * limit / reach) if reach > 0 else w)
    grows = options["C"] == "auto"
    kinds = {"regret, within C" + ", which grows" * grows: within}
    kinds["regret, any weights" + ", C grows" * grows] = rivals
    result = []
    for kind, comparators in kinds.items():
        lows, highs = [], []
        for w in comparators:
            length = float(np.linalg.norm(w))
            bound = float(np.sum(model.regret_bound(norm=length * (1 + 1e-12))))
            cost = LOSSES[options["loss"]](X.astype(LD) @ w.astype(LD), y.astype(LD)).sum()
            if np.isfinite(bound):
                lows.append(LD(model.cumulative_loss_) - cost)
                highs.append(bound)
        if lows:
            slack = 1e-12 * model.cumulative_loss_
            result.append(check(kind, np.array(lows), np.array(highs), slack))
    return result


def curvature_regret(rng):
    """What predictions by the curvature of the squared loss cost, whatever the weights."""
    n, d, k = int(rng.integers(2, 120)), int(rng.integers(1, 9)), int(rng.choice([1, 1, 2, 3]))
    growth = rng.choice([0.0, 0.0, 0.02, 0.1]) * np.arange(n)
    X = rng.standard_normal((n, d)) * rng.uniform(0.3, 1) ** np.arange(d) * np.exp(growth)[:, None]
    if rng.random() < 0.3:
        # Entries that are mostly zero, and columns that come late.
        X[rng.random((n, d)) < np.linspace(0.3, 0.9, d)] = 0.0
    W = rng.standard_normal((d, k))
    Y = X @ W * rng.choice([1.0, 1.0, -1.0]) + rng.choice([0.0, 0.1, 10.0])
    Y += rng.choice([0.0, 0.1, 3.0]) * rng.standard_normal((n, k))
    if rng.random() < 0.3:
        # The world turns around.
        Y[n // 2 :] *= -1.0
    options = {
        "method": str(rng.choice(["rfd", "rfd", "rfd", "fd", "pfd", "full"])),
        "sketch_size": int(rng.integers(2, 7)),
        "initial_ridge": float(10.0 ** rng.uniform(-4, 3)),
        "fit_intercept": bool(rng.random() < 0.4),
        "loss": "squared",
        "normalize": False,
    }
    weights = rng.choice([0.0, 0.5, 1.0, 30.0], n) if rng.random() < 0.3 else np.ones(n)
    rows = sp.csr_matrix(X) if rng.random() < 0.4 else X
    blocks = np.array_split(np.arange(n), min(n, int(rng.integers(1, 4))))
    if rng.random() < 0.3:
        model = sksketch.OnlineNewtonClassifier(**options)
        names = np.arange(max(k, 2))
        labels = np.argmax(Y, axis=1) if k > 1 else (Y[:, 0] > np.median(Y)).astype(int)
        for part in blocks:
            model.partial_fit(rows[part], labels[part], names, sample_weight=weights[part])
        Y = np.where(labels[:, None] == (names if k > 2 else names[1:]), 1.0, -1.0)
    else:
        model = sksketch.OnlineNewtonRegressor(**options)
        for part in blocks:
            model.partial_fit(rows[part], Y[part], sample_weight=weights[part])
            model = type(model).from_state(model.state()) if rng.random() < 0.3 else model
    wide = np.column_stack([X, np.ones(n)]) if options["fit_intercept"] else X
    kind = "sketched" if model.learners_[0].kind == "sketched-curvature" else "exact"
    result = _regret_of_squares(rng, model, wide, Y, weights, f"regret, {kind} curvature")
    return Result(f"{kind} {n} x {d}, {k} targets: {type(model).__name__}({options})", [result])


def _regret_of_squares(rng, model, X, Y, weights, kind):
    """Check regrets against weights of any length."""
    root = np.sqrt(weights)[:, None]
    G, b = (root * X).T @ (root * X), (root * X).T @ (root * Y)
    scale = np.trace(G) / len(G) or 1.0
    rivals = [
        np.linalg.solve(G + scale * 10.0**power * np.eye(len(G)), b) for power in (-12, -6, -2, 0)
    ]
    rivals += [rivals[1] * rng.uniform(0, 1.2) for _ in range(2)]
    rivals += [rng.standard_normal(b.shape) * 10.0 ** rng.uniform(-2, 1), np.zeros(b.shape)]
    lows, highs = [], []
    for W in rivals:
        gaps = X.astype(LD) @ W.astype(LD) - Y.astype(LD)
        cost = (weights.astype(LD)[:, None] * gaps**2).sum()
        lows.append(LD(model.cumulative_loss_) - cost)
        highs.append(model.regret_bound(norm=float(np.linalg.norm(W)) * (1 + 1e-12)))
    # A bound that is infinite says nothing, and for this loss there is one.
    finite = np.where(np.isfinite(highs), highs, np.nan)
    return check(kind, np.array(lows), finite, 1e-12 * model.cumulative_loss_)
