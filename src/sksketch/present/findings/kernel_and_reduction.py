"""Findings of kernel models, of reductions and of the models learned on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.kernel_methods import (
    MultiviewMixture,
    RandomFeatures,
    StreamingKernelCCA,
    StreamingKernelPCA,
    StreamingKernelSVD,
    StreamingSpectralClustering,
)
from sksketch.models.base import Estimator
from sksketch.moments import StreamingCCA, StreamingGLM, StreamingPLS
from sksketch.present.findings.moments import generalized, two_views
from sksketch.present.findings.plain import PlainFindings, Points
from sksketch.present.findings.rated import quality_of, quality_text
from sksketch.reduction import (
    RandomReduction,
    ReducedClassifier,
    ReducedRegressor,
    SubspaceReduction,
)

# Number of coefficients shown for each model.
MOST = 10


def plain_findings(model: object, names: list[str] | None = None) -> PlainFindings:
    """Return what a model has found.

    >>> model = RandomFeatures(n_random_features=8).fit([[0.0], [1.0]])
    >>> plain_findings(model).facts["bandwidth"]
    1.0
    """
    return _FINDERS[type(model)](model, names)


def _kernel_facts(model: Estimator) -> dict[str, Any]:
    facts = {"kernel": model.kernel, "columns": int(model.n_features_in_)}
    if hasattr(model, "n_samples_seen_"):
        facts["rows seen"] = int(model.n_samples_seen_)
    return facts


def _random_features(model: RandomFeatures, _names: object) -> PlainFindings:
    facts = _kernel_facts(model) | {
        "features": int(model.n_features_out_),
        "bandwidth": float(model.bandwidth_),
    }
    kind = "landmarks" if model.landmarks is not None else "random features"
    sentence = f"{model.n_features_out_:,} {kind} stand for the {model.kernel} kernel."
    return PlainFindings("Kernel features", sentence, facts)


def _kernel_pca(model: StreamingKernelPCA, _names: object) -> PlainFindings:
    values = np.asarray(model.eigenvalues_)
    facts = _kernel_facts(model) | {
        "components": len(values),
        "bandwidth": float(model.bandwidth_),
        "features": int(model.n_random_features_used_),
        "solver": model.solver_,
        "plan": model.plan_,
    }
    sentence = f"The {len(values):,} leading components of the {model.kernel} kernel on these rows."
    points = None
    sample = model.__dict__.get("embedding_sample_")
    if sample is not None:
        second = 1 if len(values) > 1 else 0
        axes = "component 1", f"component {second + 1}"
        points = Points(sample[0][:, 0], sample[0][:, second], *axes)
    return PlainFindings("Kernel PCA", sentence, facts, ("eigenvalue", values), points)


def _kernel_pair(model: StreamingKernelCCA | StreamingKernelSVD, _names: object) -> PlainFindings:
    correlated = isinstance(model, StreamingKernelCCA)
    values = np.asarray(model.correlations_ if correlated else model.singular_values_)
    first, second = model.bandwidths_
    facts = _kernel_facts(model) | {
        "columns of view 2": int(model.n_features_y_),
        "components": len(values),
        "bandwidth": float(first),
        "bandwidth of view 2": float(second),
        "solver": model.solver_,
        "plan": model.plan_,
    }
    if correlated:
        facts["total correlation"] = float(values.sum())
        title, quantity = "Kernel CCA", "correlation"
        sentence = (
            f"The {len(values):,} pairs of functions of the two views have a total correlation of "
            f"{values.sum():.4g} on the rows learned from, which flatters; score it on others."
        )
    else:
        title, quantity = "Kernel SVD", "singular value"
        sentence = f"The {len(values):,} leading pairs of singular functions of the two views."
    sample = model.__dict__.get("embedding_sample_")
    points = None
    if sample is not None:
        axes = "first function of view 1", "first function of view 2"
        points = Points(sample[0][:, 0], sample[1][:, 0], *axes)
    return PlainFindings(title, sentence, facts, (quantity, values), points)


def _clustering(model: StreamingSpectralClustering, _names: object) -> PlainFindings:
    facts = _kernel_facts(model) | {
        "clusters": int(model.n_clusters),
        "bandwidth": float(model.bandwidth_),
    }
    sentence = f"{model.n_clusters:,} clusters of rows that the {model.kernel} kernel connects."
    return PlainFindings("Spectral clustering", sentence, facts)


def _mixture(model: MultiviewMixture, _names: object) -> PlainFindings:
    weights = np.asarray(model.weights_)
    facts = {
        "kernel": model.kernel,
        "components": len(weights),
        "weights": ", ".join(f"{w:.4g}" for w in weights),
        "sum of the weights as estimated": float(model.weight_sum_),
    }
    sentence = f"{len(weights):,} components that make the three views independent."
    return PlainFindings(
        "Latent variable model", sentence, facts, ("weight", np.sort(weights)[::-1])
    )


def _subspace(model: SubspaceReduction, _names: object) -> PlainFindings:
    lower, upper = model.spectral_error_
    facts = {
        "columns": int(model.n_features_in_),
        "rows seen": int(model.n_samples_seen_),
        "coordinates": int(model.n_components_),
        "operator": model.operator,
        "squared norm": float(model.sketch_.squared_norm),
        "left out at least": float(lower),
        "left out at most": float(upper),
    }
    sentence = (
        f"{model.n_components_:,} directions of the rows; what is left out has a largest squared "
        f"singular value between {lower:.4g} and {upper:.4g}."
    )
    return PlainFindings("Reduction to a subspace", sentence, facts)


def _random_reduction(model: RandomReduction, _names: object) -> PlainFindings:
    facts = {
        "columns": int(model.n_features_in_),
        "coordinates": int(model.n_components_),
        "operator": model.operator,
    }
    sentence = f"{model.n_components_:,} random combinations of {model.n_features_in_:,} columns."
    return PlainFindings("Random reduction", sentence, facts)


def _reduced(model: ReducedClassifier | ReducedRegressor, names: list[str] | None) -> PlainFindings:
    coefficients = np.atleast_2d(model.coef_)
    outcomes = [str(k) for k in range(len(coefficients))]
    if isinstance(model, ReducedClassifier):
        labels = model.classes_ if len(coefficients) > 1 else model.classes_[1:]
        outcomes = [f"{label:g}" if isinstance(label, float) else str(label) for label in labels]
    bound = float(model.objective_gap_bound_)
    facts = {
        "columns": int(model.n_features_in_),
        "rows seen": int(model.dual_coef_.shape[1]),
        "coordinates": int(model.reduction_.n_components_),
        "method": model.method,
        "loss": model.loss,
        "alpha": float(model.alpha),
        "duality gap": float(model.duality_gap_),
        "objective gap bound": bound,
        "lemma2 bound": float(model.lemma2_bound_),
        "intercept": np.atleast_1d(model.intercept_),
    }
    sentence = f"No model of all columns has an objective lower than this one's by {bound:.4g}."
    largest = {
        outcome: _largest(coef, names) for outcome, coef in zip(outcomes, coefficients, strict=True)
    }
    title = "Reduced " + ("classifier" if isinstance(model, ReducedClassifier) else "regression")
    rated = tuple(quality_text(name, numbers) for name, numbers in quality_of(model).items())
    return PlainFindings(title, sentence, facts, largest=largest, quality=rated)


def _largest(coef: Array, names: list[str] | None) -> dict[str, float]:
    order = np.argsort(-np.abs(coef), kind="stable")[:MOST]
    return {names[i] if names else f"column {i}": float(coef[i]) for i in order}


_FINDERS: dict[Any, Callable[[Any, list[str] | None], PlainFindings]] = {
    RandomFeatures: _random_features,
    StreamingKernelPCA: _kernel_pca,
    StreamingKernelSVD: _kernel_pair,
    StreamingKernelCCA: _kernel_pair,
    StreamingSpectralClustering: _clustering,
    MultiviewMixture: _mixture,
    SubspaceReduction: _subspace,
    RandomReduction: _random_reduction,
    ReducedClassifier: _reduced,
    ReducedRegressor: _reduced,
    StreamingCCA: two_views,
    StreamingPLS: two_views,
    StreamingGLM: generalized,
}
PLAIN: tuple[Any, ...] = tuple(_FINDERS)
