"""Every sketch and every estimator, in the forms that take other ways through the code.

``LEARN`` says what each learns from beside X: nothing, targets, labels, or other views.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sksketch
from _support import laws
from _support.hostile import WIDTH
from _support.paper_learners import paper_classifier, paper_regressor
from robustness import abuse

# What sizes this small are warned of.
QUIET = [
    pytest.mark.filterwarnings(f"ignore:{text}")
    for text in ("the coefficients are certain", "the views tell", "without an initial ridge")
]

RNG = np.random.default_rng(5)
N_ROWS = 240
X = RNG.standard_normal((N_ROWS, WIDTH)) * 0.8 ** np.arange(WIDTH) + 1.0
TARGETS = X[:, 0] - X[:, 1] + 0.1 * RNG.standard_normal(N_ROWS)
SECOND = {
    "": (),
    "y": (TARGETS,),
    "label": (np.where(TARGETS > 0, 1, 0),),
    "Y": (X[:, :4] + 0.1,),
    "views": (X + 0.1 * RNG.standard_normal(X.shape), X + 0.1 * RNG.standard_normal(X.shape)),
}
METHODS = ("rfd", "fd", "pfd", "rp", "oja", "full", "adagrad", "ogd")
SMALL: dict[str, Any] = {"n_random_features": 16}
SGD: dict[str, Any] = {**SMALL, "solver": "sgd", "batch_size": 32}

ESTIMATORS: dict[str, tuple[Any, str]] = abuse.ESTIMATORS | {
    **{
        f"OnlineNewtonRegressor {m}": (
            lambda m=m: sksketch.OnlineNewtonRegressor(m, sketch_size=3),
            "y",
        )
        for m in METHODS
    },
    **{
        f"OnlineNewtonClassifier {m}": (
            lambda m=m: sksketch.OnlineNewtonClassifier(m, sketch_size=3),
            "label",
        )
        for m in METHODS
    },
    "OnlineNewtonRegressor gradients": (lambda: paper_regressor(sketch_size=3), "y"),
    "OnlineNewtonClassifier gradients": (lambda: paper_classifier(sketch_size=3), "label"),
    "OnlineNewton without ridge": (
        lambda: paper_regressor(sketch_size=3, initial_ridge=0.0),
        "y",
    ),
    "StreamingPCA block": (lambda: sksketch.StreamingPCA(2, sketch=laws.fd(laws.BLOCK)), ""),
    "StreamingRidge sfd": (lambda: sksketch.StreamingRidge(sketch="sfd", sketch_size=3), "y"),
    "StreamingRidge gaussian": (lambda: sksketch.StreamingRidge(sketch="gaussian"), "y"),
    "StreamingKernelPCA sgd": (lambda: sksketch.StreamingKernelPCA(2, **SGD), ""),
    "StreamingKernelPCA sketch": (
        lambda: sksketch.StreamingKernelPCA(2, **SMALL, solver="sketch"),
        "",
    ),
    "StreamingKernelPCA landmarks": (
        lambda: sksketch.StreamingKernelPCA(2, landmarks=X[:20].copy(), solver="sketch"),
        "",
    ),
    "StreamingKernelSVD sgd": (lambda: sksketch.StreamingKernelSVD(2, **SGD), "Y"),
    "StreamingKernelCCA landmarks": (
        lambda: sksketch.StreamingKernelCCA(2, ridge=1e-2, landmarks=300),
        "Y",
    ),
    "StreamingSpectralClustering all rows": (lambda: sksketch.StreamingSpectralClustering(2), ""),
    "MultiviewMixture": (lambda: sksketch.MultiviewMixture(2, landmarks=20), "views"),
    "SubspaceReduction power": (
        lambda: sksketch.SubspaceReduction(2, operator="gaussian", n_power_iter=1),
        "",
    ),
    "TableEncoder": (sksketch.TableEncoder, ""),
    "ReducedClassifier rpdr": (
        lambda: sksketch.ReducedClassifier(3, method="rpdr", loss="logistic"),
        "label",
    ),
}
SKETCHES = list(laws.SKETCHES)


def second_of(name: str) -> tuple[Any, ...]:
    """Return what comes beside X."""
    return SECOND[ESTIMATORS[name][1]] if name in ESTIMATORS else ()


def make(name: str) -> Any:
    return ESTIMATORS[name][0]() if name in ESTIMATORS else laws.SKETCHES[name]()


def streams(name: str) -> bool:
    return name not in ESTIMATORS or hasattr(make(name), "partial_fit")


def learn(model: Any, rows: Any, *second: Any) -> Any:
    """Learn from one more block, or from all at once where that is the only way."""
    if isinstance(model, sksketch.Sketch):
        more = {}
        if isinstance(model, sksketch.Regression):
            first = rows[:, [0]]
            more = {"targets": (first.toarray() if sp.issparse(first) else first)[:, 0] + 1.0}
        return model.update(rows, **more)
    if not hasattr(model, "partial_fit"):
        return model.fit(rows, *second)
    if isinstance(model, sksketch.OnlineNewtonClassifier):
        return model.partial_fit(rows, *second, classes=[0, 1])
    return model.partial_fit(rows, *second)


def answers(model: Any, rows: Any, *second: Any) -> list[Any]:
    """Return what is read of a model: its state, its fitted attributes and its answers."""
    state = model.state()
    found = [state.kind, dict(state.meta), dict(state.arrays)]
    if isinstance(model, sksketch.Sketch):
        summary = model.summary()
        return [*found, summary.components, summary.eigenvalues, summary.ridge]
    fitted = ("components_", "coef_", "intercept_", "eigenvalues_", "weights_")
    found += [getattr(model, name) for name in fitted if hasattr(model, name)]
    if hasattr(model, "transform"):
        pair = "Kernel" in type(model).__name__ and second
        found.append(model.transform(rows, *second) if pair else model.transform(rows))
    if hasattr(model, "predict"):
        found.append(model.predict(rows, *(second if len(second) > 1 else ())))
    return found


def digest(value: Any) -> str:
    """Return one short text for all bits of nested answers."""
    hashed = hashlib.blake2b(digest_size=8)
    _feed(hashed, value)
    return hashed.hexdigest()


def _feed(hashed: Any, value: Any) -> None:
    if isinstance(value, dict):
        for name in sorted(value):
            hashed.update(name.encode())
            _feed(hashed, value[name])
    elif isinstance(value, list | tuple):
        for part in value:
            _feed(hashed, part)
    elif isinstance(value, np.ndarray):
        hashed.update(f"{value.dtype} {value.shape}".encode())
        hashed.update(np.ascontiguousarray(value).tobytes())
    else:
        hashed.update(repr(value).encode())


def classes() -> set[type]:
    """Return every public class of sketches and estimators."""
    found = set()
    for name in sksketch.__all__:
        value = getattr(sksketch, name)
        if isinstance(value, type) and hasattr(value, "from_state"):
            found.add(value)
    return found - {sksketch.Sketch}
