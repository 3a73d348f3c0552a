"""Three views of each row: checked as triples, and what was learned of them as plain data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Rows
from sksketch.kernel_methods.feature_maps import load_features
from sksketch.kernel_methods.fitting import further_rows
from sksketch.kernel_methods.latent.density import WeightedDensity
from sksketch.kernel_methods.latent.multiview import Triple
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
