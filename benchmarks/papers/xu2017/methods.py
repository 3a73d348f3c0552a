"""The methods of Xu et al. (2017): one record for each run, with its certificates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.papers.xu2017.data import Problem
from sksketch import RandomReduction, ReducedClassifier, SubspaceReduction
from sksketch.reduction.dual import solve
from sksketch.reduction.dual_losses import DualLoss

# The paper's letters.
OPERATORS = {"rs": "sample", "rg": "gaussian", "srht": "srht", "rh": "countsketch"}
FULL = "full"
# By penalty, the error of another method less that of NOR.
Leads = dict[float, float]
TAUS = (0.5, 0.9)


@dataclass(frozen=True)
class Record:
    """Test error and costs of one method; the gaps are those to the full model's objective.

    ``draw`` is the seed of the random operator.
    """

    data: str
    alpha: float
    method: str
    size: int
    error: float
    reduction_seconds: float
    solve_seconds: float
    duality_gap: float
    true_gap: float
    certificate: float
    lemma2: float
    draw: int = 0


def options() -> dict[str, dict[str, Any]]:
    """Return the methods of the synthetic figures, by name."""
    found: dict[str, dict[str, Any]] = {}
    for letter, operator in OPERATORS.items():
        for method in ("nor", "rp", "rpdr"):
            found[f"{method} {letter}"] = {"method": method, "operator": operator}
        for tau in TAUS:
            dsrr = {"method": "dsrr", "operator": operator, "tau": tau}
            found[f"dsrr{tau} {letter}"] = dsrr
    found["nor rh +1"] = {"method": "nor", "n_power_iter": 1}
    found["nordr rh"] = {"method": "nordr"}
    return found


REAL = {
    "nor": {},
    "nor +1": {"n_power_iter": 1},
    "nordr": {"method": "nordr"},
    "rp": {"method": "rp"},
    "rpdr": {"method": "rpdr"},
    "dsrr": {"method": "dsrr"},
}


def on_synthetic(problem: Problem, alpha: float, size: int, n_draws: int) -> Iterator[Record]:
    """Run every method on one synthetic set, with several operators; the full model first."""
    X, y = problem.X, problem.y
    shares = np.full(len(y), 1.0 / len(y))
    begun = time.perf_counter()
    full = solve(DualLoss("hinge"), X, y, shares, alpha, tol=1e-3, max_passes=1000)
    seconds = time.perf_counter() - begun
    least = objective(problem, alpha, full.model)
    wrong = float(np.mean(np.sign(problem.X_test @ full.model) != problem.y_test))
    yield Record(problem.name, alpha, FULL, 0, wrong, 0.0, seconds, full.gap, 0.0, full.gap, np.inf)
    for name, chosen in options().items():
        for draw in range(n_draws):
            fixed = {"alpha": alpha, "fit_intercept": False, "random_state": draw}
            model = ReducedClassifier(size, **fixed, **chosen)
            yield measured(problem, model, name, least=least)


def leads_by_sampling(problem: Problem, alphas: tuple[float, ...], size: int, draw: int) -> Leads:
    """Return how much less NOR errs than RP on one set, both by sampling, by penalty."""
    leads = {}
    for alpha in alphas:
        fixed = {"alpha": alpha, "operator": "sample", "fit_intercept": False, "random_state": draw}
        nor, rp = (
            measured(problem, ReducedClassifier(size, method=method, **fixed), method).error
            for method in ("nor", "rp")
        )
        leads[alpha] = rp - nor
    return leads


def on_real(problem: Problem, sizes: tuple[int, ...], alpha: float) -> Iterator[Record]:
    """Run the methods on real rows over many sizes, and the model of all columns."""
    begun = time.perf_counter()
    full = LinearSVC(loss="hinge", C=1.0 / (alpha * len(problem.y)), max_iter=5000)
    full.fit(problem.X, problem.y)
    seconds = time.perf_counter() - begun
    wrong = 1.0 - full.score(problem.X_test, problem.y_test)
    nothing = np.nan
    yield Record(
        problem.name, alpha, FULL, 0, wrong, 0.0, seconds, nothing, nothing, nothing, nothing
    )
    for size in sizes:
        for name, chosen in REAL.items():
            # Bases that a power pass fills are 8 bytes for each column and component.
            if "n_power_iter" in chosen and size * problem.X.shape[1] > 1e8:
                continue
            model = ReducedClassifier(size, alpha=alpha, **chosen)
            yield measured(problem, model, name, reducing=reduction_seconds(problem, model))


def reduction_seconds(problem: Problem, model: ReducedClassifier) -> float:
    """Return the time that the reduction of a model takes alone."""
    kind = SubspaceReduction if model.method in ("nor", "nordr") else RandomReduction
    reduction = kind(model.n_components, operator=model.operator)
    if kind is SubspaceReduction:
        reduction.set_params(n_power_iter=model.n_power_iter)
    begun = time.perf_counter()
    reduction.fit_transform(problem.X)
    return time.perf_counter() - begun


def measured(
    problem: Problem,
    model: ReducedClassifier,
    name: str,
    *,
    least: float = np.nan,
    reducing: float = 0.0,
) -> Record:
    """Fit a model; its time is split where that of the reduction alone is given."""
    begun = time.perf_counter()
    model.fit(problem.X, problem.y)
    seconds = time.perf_counter() - begun
    gap = np.nan
    if np.isfinite(least):
        gap = objective(problem, model.alpha, model.coef_[0]) - least
    return Record(
        problem.name,
        model.alpha,
        name,
        model.n_components,
        1.0 - model.score(problem.X_test, problem.y_test),
        reducing,
        max(seconds - reducing, 0.0),
        model.duality_gap_,
        gap,
        model.objective_gap_bound_,
        model.lemma2_bound_,
        model.random_state,
    )


def objective(problem: Problem, alpha: float, coef: np.ndarray) -> float:
    """Return the hinge objective of a model without intercept, by its definition."""
    margins = problem.y * (problem.X @ coef)
    return float(np.maximum(0.0, 1.0 - margins).mean() + 0.5 * alpha * coef @ coef)
