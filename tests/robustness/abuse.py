"""Hostile arrays through every public object: refused with nothing changed, or the right answer."""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import sksketch
from _support import hostile, laws
from _support.hostile import WIDTH
from robustness import forging
from sksketch.sketches.projections.linear_sketch import LinearSketch

GOOD = np.random.default_rng(0).standard_normal((90, WIDTH)).round(2) + 1.0
TARGETS = GOOD[:, 0] - GOOD[:, 1] + 0.1 * GOOD[:, 2]
LABELS = np.where(TARGETS > 0, 1, 0)

SKETCHES = [
    *("fd exact uniform", "fd block uniform", "fd covariance uniform", "fd exact decay"),
    *("exact covariance", "centered fd exact uniform", "centered exact covariance"),
    *("sfd boosted", "2lfd small", "gaussian 20", "sign 20", "countsketch 20", "srht 20"),
    *("sample 20", "window fd exact uniform", "window centered exact covariance"),
]
SMALL = {"n_random_features": 16}
FEW = {"n_components": 2, "n_random_features": 16}

# Each with the arguments it learns from beside X.
ESTIMATORS: dict[str, tuple[Any, str]] = {
    "StreamingPCA": (lambda: sksketch.StreamingPCA(2), ""),
    "StreamingPCA rfd": (lambda: sksketch.StreamingPCA(2, sketch="rfd", sketch_size=3), ""),
    "StreamingSVD": (lambda: sksketch.StreamingSVD(2, sketch="sfd", sketch_size=4), ""),
    "StreamingRidge": (lambda: sksketch.StreamingRidge(), "y"),
    "StreamingRidge rfd": (lambda: sksketch.StreamingRidge(sketch="rfd", sketch_size=3), "y"),
    "StreamingRidgeCV": (lambda: sksketch.StreamingRidgeCV([0.1, 1.0]), "y"),
    "OnlineNewtonRegressor": (lambda: sksketch.OnlineNewtonRegressor(sketch_size=3), "y"),
    "OnlineNewtonClassifier": (lambda: sksketch.OnlineNewtonClassifier(sketch_size=3), "label"),
    "OnlineNewton adagrad": (lambda: sksketch.OnlineNewtonRegressor("adagrad"), "y"),
    "RandomFeatures": (lambda: sksketch.RandomFeatures(n_random_features=8), ""),
    "StreamingKernelPCA": (lambda: sksketch.StreamingKernelPCA(2, **SMALL), ""),
    "StreamingKernelSVD": (lambda: sksketch.StreamingKernelSVD(2, **SMALL), "Y"),
    "StreamingKernelCCA": (lambda: sksketch.StreamingKernelCCA(2, ridge=1e-2, **SMALL), "Y"),
    "StreamingCCA": (lambda: sksketch.StreamingCCA(2, ridge=1.0), "Y"),
    "StreamingCCA rfd": (
        lambda: sksketch.StreamingCCA(2, ridge=1.0, sketch="rfd", sketch_size=1),
        "Y",
    ),
    "StreamingPLS": (lambda: sksketch.StreamingPLS(2), "Y"),
    "StreamingGLM": (lambda: sksketch.StreamingGLM("gaussian"), "y"),
    "StreamingRidge least squares": (lambda: sksketch.StreamingRidge(0.0), "y"),
    "StreamingSpectralClustering": (
        lambda: sksketch.StreamingSpectralClustering(2, landmarks=6),
        "",
    ),
    "SubspaceReduction": (lambda: sksketch.SubspaceReduction(2), ""),
    "RandomReduction": (lambda: sksketch.RandomReduction(2), ""),
    "ReducedClassifier": (lambda: sksketch.ReducedClassifier(3), "label"),
    "ReducedRegressor": (lambda: sksketch.ReducedRegressor(3), "y"),
    "StreamingPCA window": (lambda: sksketch.StreamingPCA(2, window=90), ""),
    "StreamingRidge half life": (lambda: sksketch.StreamingRidge(half_life=50.0), "y"),
    "StreamingOutlierDetector": (lambda: sksketch.StreamingOutlierDetector(), ""),
}
LEARNS, READS = ("fit", "partial_fit"), ("transform", "predict")


@functools.cache
def fitted(name: str) -> Any:
    if name in ESTIMATORS:
        make, second = ESTIMATORS[name]
        return learn(make(), "fit", second, GOOD)
    return laws.SKETCHES[name]().update(GOOD)


def learn(model: Any, method: str, second: str, X: Any, **more: Any) -> Any:
    n = X.shape[0] if len(getattr(X, "shape", ())) > 1 else len(X) if hasattr(X, "__len__") else 5
    values = {"y": TARGETS, "label": LABELS, "Y": GOOD[:, :4]}
    extra = [np.resize(values[second], (n, *values[second].shape[1:]))] if second else []
    if second == "label" and n > 1:
        extra[0][:2] = 0, 1
    return getattr(model, method)(X, *extra, **more)


def act(model: Any, name: str, method: str, X: Any) -> Any:
    """Return what a method gives; what learns gives the state after it."""
    if name not in ESTIMATORS:
        return model.update(X).state()
    if method in LEARNS:
        return learn(model, method, ESTIMATORS[name][1], X).state()
    return getattr(model, method)(X)


def same(left: Any, right: Any, rtol: float) -> bool:
    """Compare two answers, or the answers of two states."""
    if isinstance(left, forging.State):
        left, right = _reading(left), _reading(right)
    if isinstance(left, tuple | list):
        return all(same(a, b, rtol) for a, b in zip(left, right, strict=True))
    a, b = (x.toarray() if sp.issparse(x) else np.asarray(x) for x in (left, right))
    if a.shape != b.shape:
        return False
    if a.dtype.kind not in "fiub":
        return bool((a == b).all())
    scale = np.abs(b).max(initial=0.0)
    return bool(np.allclose(a, b, rtol=rtol, atol=rtol * scale + 1e-300))


def _reading(state: forging.State) -> list[Any]:
    """Return what a user would read from a restored object."""
    model = sksketch.run.loading.restore(state)
    if isinstance(model, sksketch.Sketch):
        summary = model.summary()
        return [summary.to_dense(), model.n_rows_seen, model.squared_norm]
    if hasattr(model, "predict"):
        return [model.predict(GOOD[:9])]
    if isinstance(
        model,
        sksketch.StreamingKernelPCA | sksketch.StreamingKernelSVD | sksketch.StreamingKernelCCA,
    ):
        # Signs and, for nearly equal values, directions are free.
        names = ("eigenvalues_", "singular_values_", "correlations_")
        return [getattr(model, n) for n in names if hasattr(model, n)]
    if hasattr(model, "components_"):
        V = model.components_
        return [V.T @ V]
    return [model.transform(GOOD[:9])]


def unchanged(model: Any, name: str) -> str | None:
    """Say what is different from before, or nothing."""
    try:
        forging.assert_same(model.state(), fitted(name).state())
    except AssertionError as error:
        return str(error)
    return None


def clear(error: Exception) -> bool:
    first = str(error).splitlines()[0] if str(error) else ""
    return 10 < len(first) < 400


def attempt(name: str, method: str, kind: str, seed: int) -> str:
    """Give one hostile array to one method of a copy of a fitted object."""
    makers = hostile.REFUSED | hostile.EITHER | hostile.TAKEN
    X = makers[kind](np.random.default_rng(seed))
    model = copy.deepcopy(fitted(name))
    try:
        answer = act(model, name, method, X)
    except (ValueError, TypeError) as error:
        if kind in hostile.TAKEN and not _may_refuse(name, method, kind):
            return f"!refused what is right: {str(error)[:200]}"
        if (change := unchanged(model, name)) is not None:
            return f"!changed by a refusal: {change[:200]}"
        return "refused, nothing changed" if clear(error) else f"!unclear: {error!r}"
    except Exception as error:  # noqa: BLE001 (any other is what we look for)
        return f"!{type(error).__name__}: {str(error)[:200]}"
    if kind in hostile.REFUSED and not _may_take(name, method, kind):
        return "!taken"
    if method in READS and (change := unchanged(model, name)) is not None:
        return f"!changed by reading: {change[:200]}"
    X = makers[kind](np.random.default_rng(seed))
    if kind in hostile.REFUSED:
        return "taken"
    if "overflow" in kind and ("Kernel" in name or name == "RandomFeatures"):
        # The phase of a random feature has no digits left there, in any precision.
        return "taken"
    if name not in ESTIMATORS and sp.issparse(X) and not isinstance(model, LinearSketch):
        # Sparse rows may be buffered in other portions, so only what is certified must hold.
        seen = laws.Rows(WIDTH).update(GOOD, decay=model.decay)
        seen.update(hostile.plain(X), decay=model.decay)
        lost = laws.broken_bounds(model, seen.matrix(centered=laws.is_centered(model)))
        return f"!{lost[0]}" if lost else "taken, the right answer"
    plain = hostile.plain(X)
    if name.startswith("OnlineNewton") and method == "fit" and sp.issparse(X):
        # Columns of sparse rows are not counted from their means, those of dense ones are.
        plain = sp.csr_matrix(plain)
    reference = act(copy.deepcopy(fitted(name)), name, method, plain)
    narrow = str(getattr(X, "dtype", "")) in ("float16", "float32", ">f4") or kind == "frame"
    right = same(answer, reference, 2e-3 if narrow else 1e-6)
    return "taken, the right answer" if right else "!another answer than for plain numbers"


def _may_refuse(name: str, method: str, kind: str) -> bool:
    # Nothing can be learned from rows that are all alike or at most rounding apart.
    alike = ("sparse with stored zeros", "one row for all", "denormals", "largest whole numbers")
    return method in LEARNS and kind in alike


def _may_take(name: str, method: str, kind: str) -> bool:
    # A new fit may have any width.
    return method == "fit" and ("width" in kind or kind in ("too narrow", "too wide"))


def attempt_second(name: str, method: str, what: str, kind: str, seed: int) -> str:
    """Give good rows with bad targets or weights."""
    rng = np.random.default_rng(seed)
    X = GOOD[: int(rng.integers(5, 60))]
    model = copy.deepcopy(fitted(name))
    try:
        if what == "weights":
            weights = hostile.BAD_WEIGHTS[kind](rng, len(X))
            if name in ESTIMATORS:
                learn(model, method, ESTIMATORS[name][1], X, sample_weight=weights)
            else:
                model.update(X, weights)
        else:
            getattr(model, method)(X, hostile.BAD_TARGETS[kind](rng, len(X)))
    except (ValueError, TypeError) as error:
        if (change := unchanged(model, name)) is not None:
            return f"!changed by a refusal: {change[:200]}"
        return "refused, nothing changed" if clear(error) else f"!unclear: {error!r}"
    except Exception as error:  # noqa: BLE001 (any other is what we look for)
        return f"!{type(error).__name__}: {str(error)[:200]}"
    return "!taken"


def every() -> Iterator[tuple[str, Any]]:
    """Give every pair of a method and a kind of input."""
    kinds = (*hostile.REFUSED, *hostile.EITHER, *hostile.TAKEN)
    for name in (*SKETCHES, *ESTIMATORS):
        methods = ["update"]
        if name in ESTIMATORS:
            methods = [m for m in (*LEARNS, *READS) if hasattr(fitted(name), m)]
        second = ESTIMATORS[name][1] if name in ESTIMATORS else ""
        for method in methods:
            for kind in kinds:
                if second != "Y" or method in LEARNS:
                    yield f"{name}.{method} {kind}", functools.partial(attempt, name, method, kind)
            if method in READS:
                continue
            pairs = [("targets", hostile.BAD_TARGETS)] if second in ("y", "label") else []
            if _takes_weights(name, method):
                pairs.append(("weights", hostile.BAD_WEIGHTS))
            for what, table in pairs:
                for kind in table:
                    yield (
                        f"{name}.{method} {what} {kind}",
                        functools.partial(attempt_second, name, method, what, kind),
                    )


def _takes_weights(name: str, method: str) -> bool:
    import inspect

    if name not in ESTIMATORS:
        return True
    return "sample_weight" in inspect.signature(getattr(fitted(name), method)).parameters


def trials(n_trials: str, start: str = "0"):
    """Give so many trials, in an order by chance that goes through all pairs again and again."""
    pairs = list(every())
    rng = np.random.default_rng(int(start))
    orders = (rng.permutation(len(pairs)) for _ in itertools.count())
    chosen = itertools.chain.from_iterable(orders)
    for seed, at in enumerate(itertools.islice(chosen, int(n_trials)), int(start)):
        name, attempt_one = pairs[at]
        yield f"{name} seed {seed}", functools.partial(attempt_one, seed)
