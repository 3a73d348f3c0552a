"""One number far beyond the others, through every online learner: a finite model, or a refusal."""

from __future__ import annotations

import copy
import functools
import itertools
import warnings
from typing import Any

import numpy as np

import sksketch
from _support.paper_learners import AS_IN_PAPER
from robustness import everyone

N_ROWS, WIDTH = 400, 6
# Powers of ten: most where something happens.
ALL = (*range(2, 80, 2), *range(90, 301, 30))
PLACES = ("entry", "row", "target", "weight", "tiny start", "all rows")
MOMENTS = ("first block", "later block", "one row")
OPTIONS = {
    "Regressor": ({}, {"loss": "huber"}, {"loss": "absolute"}, {"initial_ridge": 10.0}),
    "Classifier": ({}, {"loss": "squared"}, {"loss": "hinge"}, {"initial_ridge": 10.0}),
}
# By the curvature of the loss with and without units of the columns, and as the paper.
FORMS: tuple[dict[str, Any], ...] = ({}, {"normalize": False}, AS_IN_PAPER)


def problem(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_ROWS, WIDTH))
    y = X @ np.arange(float(WIDTH))
    return X, y if kind == "Regressor" else (y > 0).astype(int)


def spoiled(X, y, place: str, size: float, at: int):
    """Return rows, targets and weights with one that is out of all proportion."""
    X, y, w = X.copy(), y.astype(float) if y.dtype.kind == "f" else y.copy(), np.ones(len(y))
    if place == "entry":
        X[at, 0] = size
    elif place == "row":
        X[at] *= size
    elif place == "target" and y.dtype.kind == "f":
        y[at] = size
    elif place == "weight":
        w[at] = size
    elif place == "tiny start":
        X[: at // 2] /= size
    elif place == "all rows":
        X *= size
    return X, y, w


def learn(model: Any, X, y, w) -> None:
    more = {"classes": [0, 1]} if isinstance(model, sksketch.OnlineNewtonClassifier) else {}
    model.partial_fit(X, y, sample_weight=w, **more)


def finite(model: Any, X) -> bool:
    """Say whether all that is read is finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        read = [model.coef_, model.intercept_, model.online_error_, model.cumulative_loss_]
    return all(np.isfinite(part).all() for part in read)


def attempt(kind: str, method: str, place: str, moment: str, size: float, seed: int) -> str:
    """Learn from an outlier, then from rows as before, and look at the model."""
    warnings.simplefilter("ignore", RuntimeWarning)
    # The numbers of places and moments divide by 3.
    options = OPTIONS[kind][seed % 4] | FORMS[seed % 5 % 3]
    model = getattr(sksketch, f"OnlineNewton{kind}")(method, sketch_size=3, **options)
    X, y = problem(kind, seed)
    block = 100
    at = 50 if moment == "first block" else 250
    given = spoiled(X, y, place, size, at)
    refused = 0
    for start in range(0, N_ROWS, block):
        parts = [part[start : start + block] for part in given]
        if moment == "one row" and start == 200:
            steps = [[part[i : i + 1] for part in parts] for i in range(block)]
        else:
            steps = [parts]
        for step in steps:
            before = copy.deepcopy(model)
            try:
                learn(model, *step)
            except ValueError as error:
                refused += 1
                if hasattr(before, "learners_"):
                    if everyone.digest(_all(model)) != everyone.digest(_all(before)):
                        return f"!changed by a refusal: {error}"
                elif hasattr(model, "learners_"):
                    return "!begun by a refusal"
            if hasattr(model, "learners_") and not finite(model, X):
                return "!not finite"
    return "refused, nothing changed" if refused else "taken, finite"


def _all(model: Any) -> list[Any]:
    state = model.state()
    return [dict(state.meta), dict(state.arrays)]


def trials(*powers: str):
    """Give every method, place and moment with outliers of these powers of ten, or all."""
    sizes = [10.0 ** int(power) for power in powers or ALL]
    cases = itertools.product(OPTIONS, everyone.METHODS, PLACES, MOMENTS, sizes)
    for seed, (kind, method, place, moment, size) in enumerate(cases):
        if kind == "Classifier" and place == "target":
            continue
        name = f"{method} {kind} {place} {moment} {size:.0e} seed {seed}"
        yield name, functools.partial(attempt, kind, method, place, moment, size, seed)
