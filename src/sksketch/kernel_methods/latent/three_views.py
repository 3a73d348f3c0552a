"""Three views of each row for an estimator: checks, and what was learned as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from sksketch._typing import Array
from sksketch.arrays.namespace import on_device
from sksketch.arrays.rows import laid_out
from sksketch.kernel_methods.feature_maps import load_features
from sksketch.kernel_methods.kernel_estimator import KernelEstimator
from sksketch.kernel_methods.latent.density import WeightedDensity
from sksketch.kernel_methods.latent.multiview import Triple
from sksketch.models.checks import checked_on_device, host_rows
from sksketch.state.persistence import State


class ThreeViews(KernelEstimator):
    """An estimator whose rows come as triples."""

    same_conditionals: bool
    features_: Triple
    coefficients_: Triple
    weights_: Array
    weight_sum_: float
    singular_values_: Array
    _lifted: Triple | None
    _n_features: tuple[int, ...]

    def _triple(self, given: tuple[Any, Any, Any], *, reset: bool) -> Triple:
        """Return three checked views with one row for each triple."""
        first = self._checked(_column(given[0]), reset=reset)
        shared = first.shape[1] if self.same_conditionals else None
        wanted = (first.shape[1], shared, shared) if reset else self._n_features
        views = [first]
        views += [self._rows(X, f"X{i}", wanted[i - 1]) for i, X in enumerate(given[1:], 2)]
        if len({X.shape[0] for X in views}) > 1:
            raise ValueError(
                f"the views have {', '.join(str(X.shape[0]) for X in views)} rows; give one row "
                "of each view for every triple"
            )
        if reset:
            self._n_features = tuple(X.shape[1] for X in views)
        return Triple(*views)

    def _rows(self, X: Any, name: str, n_features: int | None) -> Any:
        """Return checked rows of a view."""
        if on_device(X):
            rows = checked_on_device(_column(X))
        else:
            rows = check_array(
                _column(host_rows(X)),
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                input_name=name,
            )
            rows = laid_out(sp.csr_array(rows) if sp.issparse(rows) else rows)
        if n_features is not None and rows.shape[1] != n_features:
            shared = bool(self.same_conditionals)
            raise ValueError(
                f"{name} has {rows.shape[1]} columns, expected {n_features}"
                + "; views of different columns need same_conditionals=False" * shared
            )
        return rows

    # Saving

    def _learned(self, state: State) -> State:
        arrays: dict[str, Array] = {
            "weights": self.weights_,
            "singular_values": self.singular_values_,
            "n_features": np.array(self._n_features),
        }
        facts = {"weight_sum": self.weight_sum_, "lifted": self._lifted is not None}
        views = range(1 if self.same_conditionals else 3)
        arrays |= {f"coefficients{view}": self.coefficients_[view] for view in views}
        found = state.with_more(facts, arrays)
        for view in views:
            found = found.with_inner(f"features{view}", self.features_[view].state())
            if self._lifted is not None:
                found = found.with_inner(f"density{view}", self._lifted[view].state())
        return found

    def _recall(self, state: State) -> None:
        self.weights_ = np.asarray(state.arrays["weights"])
        self.singular_values_ = np.asarray(state.arrays["singular_values"])
        self.weight_sum_ = float(str(state.meta["weight_sum"]))
        self._n_features = tuple(map(int, state.arrays["n_features"]))
        views, again = range(1 if self.same_conditionals else 3), 3 if self.same_conditionals else 1
        features = [load_features(state.inner(f"features{view}")) for view in views]
        self.features_ = Triple(*(features * again))
        coefficients = [np.asarray(state.arrays[f"coefficients{view}"]) for view in views]
        self.coefficients_ = Triple(*(coefficients * again))
        self._lifted = None
        if state.meta["lifted"]:
            lifted = [
                WeightedDensity.from_state(state.inner(f"density{view}"), features[view].kernel)
                for view in views
            ]
            self._lifted = Triple(*(lifted * again))


def _column(X: Any) -> Any:
    """Return a vector as one column of rows."""
    if on_device(X):
        return X[:, None] if X.ndim == 1 else X
    return np.asarray(X)[:, None] if np.ndim(X) == 1 and not hasattr(X, "tocsr") else X
