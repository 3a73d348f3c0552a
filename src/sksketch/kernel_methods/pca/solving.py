"""Kernel PCA of rows: the solver that suits them, and its run over all of them."""

from __future__ import annotations

from typing import Any

from sksketch._typing import Rows
from sksketch.arrays.random import sampled, stream
from sksketch.exceptions import NotMergeableError, Option
from sksketch.kernel_methods.fitting import Params, fitted_features
from sksketch.kernel_methods.pca.component_solvers import SketchedComponents, SteppedComponents
from sksketch.kernel_methods.pca.doubly_stochastic import DoublyStochasticPCA
from sksketch.kernel_methods.pca.kernel_plan import planned
from sksketch.kernel_methods.piloted import PilotedLearner, Planned, check_enough

PILOT_ROWS = 2000
SAMPLE_ROWS = 4000
DEFAULT_POLISH = 2


def chosen_solver(params: Params, pilot: Rows, seed: int, n_rows: int | None = None) -> Planned:
    """Choose features and solver by pilot rows.

    Parameters
    ----------
    params : mapping
        Parameters of the estimator.
    pilot : rows
        Some of all rows.
    seed : int
        Of features and samples.
    n_rows : int, default=None
        Rows in all, where that is known.

    Returns
    -------
    Planned
    """
    k, center = params["n_components"], params["center"]
    features = fitted_features(params, pilot, seed, landmarks=params["landmarks"])
    features, solver, plan = planned(features, params["solver"], pilot, k, center, n_rows)
    if solver == "sketch":
        return Planned(SketchedComponents(features, k, center), plan)
    options = {name: params[name] for name in ("feature_batch", "step", "order")}
    learner = DoublyStochasticPCA(features, k, center=center, **options)
    return Planned(SteppedComponents(learner, params["batch_size"]), plan)


def require_parts(solver: str) -> None:
    """Refuse parts of the rows for a solver whose results cannot be merged."""
    if solver != "sketch":
        raise NotMergeableError(
            Option("solver", solver),
            " makes or may choose steps that depend on all rows before them, so parts cannot be "
            "merged; pass ",
            Option("solver", "sketch"),
        )


def solved(params: Params, rows: Rows, learner: PilotedLearner) -> Planned:
    """Solve for rows that are all there are, with the seed of a learner."""
    n_rows, polish, seed = rows.shape[0], params["polish"], learner.seed
    check_enough(params["n_components"], n_rows, params["n_components"] + params["center"])
    pilot = sampled(rows, learner.pilot_rows, seed, "pilot rows")
    order = stream(seed, "order").permutation(n_rows)
    chosen = chosen_solver(params, pilot, seed, n_rows)
    n_passes = DEFAULT_POLISH if polish is None else polish
    chosen.solver.fit(rows, pilot, order, n_passes, sample_of(rows, seed))
    return chosen


def sample_of(rows: Rows, seed: int) -> Any:
    """Return random rows to measure by."""
    return sampled(rows, SAMPLE_ROWS, seed, "sample")
