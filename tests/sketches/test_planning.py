"""One policy decides between A'A and a sketch, for all estimators, as the guide says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from sksketch import (
    ExactCovariance,
    FrequentDirections,
    StreamingPCA,
    StreamingRidge,
    StreamingRidgeCV,
    StreamingSVD,
)
from sksketch.kernel_methods.pca.component_solvers import SketchedComponents
from sksketch.sketches.planning import POLICIES, exact_or_sketch

LARGEST_EXACT_RIDGE = 2896


@pytest.mark.parametrize("kind", [StreamingPCA, StreamingSVD])
@pytest.mark.parametrize(
    ("n_features", "n_components", "expected"),
    [
        (512, 10, ExactCovariance),
        (513, 10, FrequentDirections),
        (1000, 10, FrequentDirections),
        (1000, 64, FrequentDirections),
        (1000, 76, ExactCovariance),
        (1000, 100, ExactCovariance),
    ],
)
def test_components_at_a_thousand_columns(kind, n_features, n_components, expected):
    sketch = kind(n_components).new_sketch(n_features)
    assert isinstance(getattr(sketch, "sketch", sketch), expected)


@pytest.mark.parametrize("model", [StreamingRidge(), StreamingRidgeCV()])
@pytest.mark.parametrize(
    ("n_features", "exact"),
    [(1000, True), (LARGEST_EXACT_RIDGE, True), (LARGEST_EXACT_RIDGE + 1, False)],
)
def test_coefficients_at_a_thousand_columns(model, n_features, exact):
    sketch = model.new_sketch(n_features)
    assert isinstance(sketch.sketch.sketch, ExactCovariance) == exact


@pytest.mark.parametrize(("n_features", "exact"), [(1000, True), (2048, True), (2050, False)])
def test_components_of_a_thousand_features(n_features, exact):
    features = SimpleNamespace(n_columns=n_features)
    solver = SketchedComponents(features, n_components=2, center=False)
    assert isinstance(solver.sketch, ExactCovariance) == exact


@pytest.mark.parametrize("purpose", POLICIES)
def test_every_decision_has_a_reason(purpose):
    for n_features in (1, 512, 10_000, 100_000):
        decision = exact_or_sketch(purpose, n_features, 16)
        assert f"{n_features:,} columns" in decision.reason
        assert not exact_or_sketch(purpose, n_features, 16, budget=7).exact
