"""Three views of each row: checked as triples, and what was learned of them as plain data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Rows
from sksketch.arrays.namespace import like
from sksketch.arrays.random import stream
from sksketch.kernel_methods.batching import joined_rows
from sksketch.kernel_methods.feature_maps import load_features
from sksketch.kernel_methods.fitting import further_rows
from sksketch.kernel_methods.latent.density import (
    WeightedDensity,
    density_bandwidth,
    to_sum_one,
    with_bandwidth,
)
from sksketch.kernel_methods.latent.multiview import (
    Mixture,
    Triple,
    coordinates,
    responsibilities,
)
from sksketch.state.persistence import State


def checked_triple(
    first: Rows, others: tuple[Any, ...], n_features: tuple[int, ...] | None, shared: bool
) -> Triple:
    """Return three views with one row for each triple; the first has been checked already.

    ``n_features`` has the columns of views that were learned from; where ``shared``, all views
    have the same.
    """
    same = first.shape[1] if shared else None
    wanted = (first.shape[1], same, same) if n_features is None else n_features
    views = [first]
    for i, X in enumerate(others, 2):
        views.append(checked_view(X, f"X{i}", wanted[i - 1], shared))
    if len({X.shape[0] for X in views}) > 1:
        raise ValueError(
            f"the views have {', '.join(str(X.shape[0]) for X in views)} rows; give one row "
            "of each view for every triple"
        )
    return Triple(*views)


def checked_view(X: Rows, name: str, n_features: int | None, shared: bool) -> Any:
    """Return checked rows of a view."""
    rows = further_rows(X, name)
    if n_features is not None and rows.shape[1] != n_features:
        raise ValueError(
            f"{name} has {rows.shape[1]} columns, expected {n_features}"
            + "; views of different columns need same_conditionals=False" * bool(shared)
        )
    return rows


def kept_rows(
    features: Triple, views: Triple, mixture: Mixture, bases: Triple, n_rows: int, seed: int
) -> tuple[Triple, Triple]:
    """Return random rows of each view, and their weights for each class by the other views."""
    n = views[0].shape[0]
    chosen = stream(seed, "lift").choice(n, min(n, n_rows), replace=False)
    chosen.sort()
    rows = Triple(*(X[like(chosen, X)] for X in views))
    first, second, third = (
        responsibilities(mixture, coordinates(f, X, B), view)
        for view, (f, X, B) in enumerate(zip(features, rows, bases, strict=True))
    )
    return rows, Triple((second + third) / 2, (first + third) / 2, (first + second) / 2)


def densities(
    features: Triple,
    rows: Triple,
    weights: Triple,
    scales: tuple[float | str, ...],
    seed: int,
    *,
    shared: bool,
) -> Triple:
    """Return the densities of each view given the class.

    Their bandwidth is the first of ``scales`` that is a number, or that of Silverman's rule.
    """
    if shared:
        rows, weights = (Triple(*[joined_rows(list(one))] * 3) for one in (rows, weights))
    found = []
    for f, X, w in zip(features, rows, weights, strict=True):
        scale = next((one for one in scales if not isinstance(one, str)), None)
        if scale is None:
            scale = density_bandwidth(X, X.shape[0], f.kernel.name, seed)
        found.append(WeightedDensity(with_bandwidth(f.kernel, scale), X, to_sum_one(w)))
    return Triple(*found)


class Learned(NamedTuple):
    """Features, coefficients and densities of three views; one of each where they are shared."""

    features: Triple
    coefficients: Triple
    lifted: Triple | None
    shared: bool

    def stored(self, state: State) -> State:
        """Return a state with all of it stored in it."""
        views = range(1 if self.shared else 3)
        arrays = {f"coefficients{view}": self.coefficients[view] for view in views}
        found = state.with_more({"lifted": self.lifted is not None}, arrays)
        for view in views:
            found = found.with_inner(f"features{view}", self.features[view].state())
            if self.lifted is not None:
                found = found.with_inner(f"density{view}", self.lifted[view].state())
        return found

    @classmethod
    def of(cls, state: State, *, shared: bool) -> Learned:
        """Build it again from what `stored` gave."""
        views, again = range(1 if shared else 3), 3 if shared else 1
        features = [load_features(state.inner(f"features{view}")) for view in views]
        coefficients = [np.asarray(state.arrays[f"coefficients{view}"]) for view in views]
        lifted = None
        if state.meta["lifted"]:
            densities = [
                WeightedDensity.from_state(state.inner(f"density{view}"), features[view].kernel)
                for view in views
            ]
            lifted = Triple(*(densities * again))
        return cls(Triple(*(features * again)), Triple(*(coefficients * again)), lifted, shared)
