"""Rows of very many columns to few coordinates, on a random subspace of the data."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from sksketch._typing import Array, Rows, RowsLike, Seed
from sksketch.arrays.rows import as_weights, squared_row_norms
from sksketch.exceptions import NotMergeableError
from sksketch.models.checks import host_rows
from sksketch.models.constraints import whole
from sksketch.models.parameters import seed_of
from sksketch.models.runner import is_dask
from sksketch.models.scikit_learn import preserving_precision
from sksketch.models.sketched import SketchEstimator
from sksketch.reduction import reduction_base
from sksketch.reduction.power_pass import PowerPass
from sksketch.reduction.reduction_base import REDUCTION_CONSTRAINTS, check_size
from sksketch.reduction.residual import (
    FAILURE_PROBABILITY,
    Blocks,
    Looked,
    from_source,
    in_memory,
    look,
    spectral_error,
)
from sksketch.reduction.subspace import LinearMap, basis_of
from sksketch.sketches import Sketch, make_sketch
from sksketch.sketches.projections.linear_sketch import LinearSketch
from sksketch.state.persistence import State
from sksketch.streams import RowSource


class SubspaceReduction(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SketchEstimator):
    """Coordinates of rows on a random subspace of the data (non-oblivious reduction).

    Random sums of the rows span a subspace that holds most of what the rows have, so far fewer
    coordinates are enough than with a projection that knows nothing of the data.

    Parameters
    ----------
    n_components : int, default=100
        Sums of rows; there are fewer coordinates if the data have a lower rank.
    operator : {"countsketch", "gaussian", "srht", "sample"}, default="countsketch"
        How sums are made. "countsketch" adds each row to one of them, and with "sample" each is
        a row itself, drawn by its squared length: both keep sparse rows sparse, for any number
        of columns. The sketch of the same name makes them.
    n_power_iter : int, default=0
        Further looks at all rows, each of which turns the subspace towards the directions in
        which the rows are longest. One is worth its time where the spectrum falls slowly.
    shard : int, default=0
        Number of this part of the data; only parts with different numbers can be merged.
    random_state : int, RandomState or None, default=0
        Chooses the sums.

    Attributes
    ----------
    n_components_ : int
        Number of coordinates.
    components_ : array of shape (n_components_, n_features)
        Orthonormal rows, computed when read: very many columns make it large.
    spectral_error_ : tuple of two floats
        Lower and upper bound on the largest eigenvalue of X'X outside of the subspace. The
        lower one is certain, the upper one holds with probability `spectral_confidence_`.
    spectral_confidence_ : float
        1 - 1e-6, and 1 where nothing but the length of the rows is known.
    certificate_ : Certificate
        What is certain about the Gram matrix of the rows from the sums alone.
    plan_ : str
        One sentence: how the rows are remembered, why, and in how much memory.
    sketch_ : Sketch
        The sums.
    n_samples_seen_ : int
        Rows that the subspace was learned from.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the rows have names.

    See Also
    --------
    RandomReduction : Coordinates by a projection that knows nothing of the data.
    ReducedClassifier : Learns on the coordinates.
    StreamingSVD : Coordinates on the leading directions of the data.
    sklearn.decomposition.TruncatedSVD : For rows that fit in memory.

    Notes
    -----
    This is Algorithm 1 of [1]_. Sparse rows of many columns are projected as T'(Y'x), with the
    sums Y sparse and T small, so that no matrix of n_features times n_components is made.

    `partial_fit` gathers sums, and the subspace is found when it is first needed. Coordinates
    of two moments are not those of the same directions: finish the pass before transforming.
    After `partial_fit` the bounds are 0 and the squared norm of all rows; `certify` looks again.

    Two can be merged that differ in ``shard`` alone, before any power pass, or with other rows of
    a power pass that both began with the same sums.

    References
    ----------
    .. [1] Xu, Y., Yang, H., Zhang, L. and Yang, T. (2017). "Efficient Non-oblivious Randomized
       Reduction for Risk Minimization with Improved Excess Risk Guarantee". AAAI.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 40))
    >>> reduction = SubspaceReduction(n_components=10).fit(X)
    >>> Z = reduction.transform(X)
    >>> Z.shape, bool(np.allclose(np.linalg.norm(Z, axis=1), np.linalg.norm(X, axis=1)))
    ((500, 3), True)
    """

    kind = "subspace-reduction"
    _constraints = REDUCTION_CONSTRAINTS | {"n_power_iter": (whole(0),), "shard": (whole(0),)}
    _power: PowerPass | None = None
    _n_passes_done = 0
    _bounds: tuple[float, float] | None = None

    def __init__(
        self,
        n_components: int = 100,
        *,
        operator: str = "countsketch",
        n_power_iter: int = 0,
        shard: int = 0,
        random_state: Seed = 0,
    ) -> None:
        self.n_components = n_components
        self.operator = operator
        self.n_power_iter = n_power_iter
        self.shard = shard
        self.random_state = random_state

    def _sketch_for(self, n_features: int) -> Sketch:
        if self.n_power_iter:
            check_size(self.n_components, n_features, "a power pass")
        if self.operator in ("gaussian", "srht"):
            check_size(self.n_components, n_features, f"operator={self.operator!r}")
        seed = seed_of(self.random_state)
        return make_sketch(self.operator, self.n_components, seed=seed, shard=self.shard)

    def fit(  # type: ignore[override]
        self, X: RowsLike, y: RowsLike | None = None, sample_weight: RowsLike | None = None
    ) -> Self:
        """Find the subspace of all rows of ``X``, forgetting what was learned before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present for scikit-learn's pipelines.
        sample_weight : array-like of shape (n_samples,), default=None
            Row ``i`` counts as ``sample_weight[i]`` copies.

        Returns
        -------
        self
            This estimator.
        """
        super().fit(X, y, sample_weight)
        if is_dask(X):
            return self
        rows, _ = self._checked(X, y, reset=False)
        return self._look_again(in_memory(rows, _weights(sample_weight, rows.shape[0])))

    def _fit_blocks(self, blocks: Blocks) -> Self:
        """Find the subspace of rows that come in blocks, each with its weights."""
        for rows, weights in blocks():
            self.partial_fit(rows, sample_weight=weights)
        return self._look_again(blocks)

    def _look_again(self, blocks: Blocks) -> Self:
        """Make the power passes over all rows, then find the bounds."""
        for _ in range(self.n_power_iter):
            self.next_pass()
            assert self._power is not None
            self._power.add(blocks)
            self._answers = {}
        return self._certify(blocks)

    def _update(
        self, sketch: Sketch, rows: Rows, targets: Array | None, sample_weight: RowsLike | None
    ) -> None:
        if self._power is not None and sketch is self.__dict__.get("_sketch"):
            squared_row_norms(rows, rows.dtype)
            self._power.add(in_memory(rows, _weights(sample_weight, rows.shape[0])))
            self._answers = {}
        else:
            super()._update(sketch, rows, targets, sample_weight)
            self._power, self._n_passes_done = None, 0
        self._bounds = None

    def next_pass(self) -> Self:
        """Let the same rows come again, through `partial_fit`, for a power iteration.

        `fit` and `fit_stream` do this by themselves, ``n_power_iter`` times.

        Returns
        -------
        self
            This estimator.

        Examples
        --------
        >>> X = np.random.default_rng(0).standard_normal((300, 20)) / np.arange(1, 21)
        >>> reduction = SubspaceReduction(4).partial_fit(X).next_pass().partial_fit(X)
        >>> bool(np.allclose(reduction.transform(X), SubspaceReduction(4, n_power_iter=1)
        ...     .fit_transform(X)))
        True
        """
        self._require_fitted()
        check_size(self.n_components, self.n_features_in_, "a power pass")
        self._power = PowerPass(self._map())
        self._n_passes_done += 1
        self._answers = {}
        return self

    @property
    def n_passes(self) -> int:
        """Times that `fit_stream` gives all rows."""
        return 1 + int(self.n_power_iter)

    def end_pass(self, number: int) -> None:
        """Begin another pass, unless it has begun.

        Parameters
        ----------
        number : int
            Times that all rows have come.
        """
        if self._n_passes_done < number:
            self.next_pass()

    def certify(
        self,
        X: RowsLike | RowSource,
        sample_weight: RowsLike | None = None,
        *,
        n_looks: int | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> Self:
        """Find the bounds of `spectral_error_`, in a few looks at all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or RowSource
            The rows that the subspace was learned from, or others to hold it against.
        sample_weight : array-like of shape (n_samples,), default=None
            Row ``i`` counts as ``sample_weight[i]`` copies.
        n_looks : int, default=None
            Times that a source is read, which then has the rows that the subspace was learned
            from. Two make the upper bound twice or three times as large as it would be.
        watch : callable, default=None
            Gets the number of rows of every block that is read from a source.

        Returns
        -------
        self
            This estimator.
        """
        if isinstance(X, RowSource):
            blocks = from_source(X, as_weights(sample_weight, X.n_rows or 0), watch)
            return self._certify(blocks, n_looks)
        rows = self._rows(X)
        return self._certify(in_memory(rows, _weights(sample_weight, rows.shape[0])))

    def _certify(self, blocks: Blocks, n_looks: int | None = None) -> Self:
        sketch = self.sketch_
        assert isinstance(sketch, LinearSketch)
        if n_looks is None:
            looked = look(blocks)
        else:
            # Sums of all rows depend on every entry of them as well.
            found = hashlib.blake2b(digest_size=16)
            for _, array in sorted(sketch.state().arrays.items()):
                found.update(array.tobytes())
            looked = Looked(sketch.n_rows_seen, sketch.squared_norm, found.hexdigest())
        self._bounds = spectral_error(blocks, self._map(), looked, int(sketch.seed), n_looks)
        return self

    @property
    def spectral_error_(self) -> tuple[float, float]:
        """Bounds on the largest eigenvalue of X'X outside of the subspace."""
        nothing_known: tuple[float, float] = self._once(
            "spectral_error_", lambda: (0.0, self.sketch_.squared_norm)
        )
        return nothing_known if self._bounds is None else self._bounds

    @property
    def spectral_confidence_(self) -> float:
        """Probability with which the upper bound of `spectral_error_` holds."""
        return 1.0 if self._bounds is None else 1.0 - FAILURE_PROBABILITY

    n_components_ = property(reduction_base.n_components_)
    components_ = property(reduction_base.components_)
    transform = reduction_base.transform
    inverse_model = reduction_base.inverse_model

    @property
    def _n_features_out(self) -> int:
        return self._map().n_components

    def __sklearn_tags__(self) -> Tags:
        return preserving_precision(super().__sklearn_tags__())

    def _placed(self, X: RowsLike) -> Any:
        return host_rows(X)

    def _map(self) -> LinearMap:
        basis: LinearMap = self._once("basis", self._find)
        return basis

    def _find(self) -> LinearMap:
        assert isinstance(self.sketch_, LinearSketch)
        if self._power is not None:
            return self._power.basis()
        return basis_of(self.sketch_.compact_matrix)

    def _absorb(self, other: Self) -> None:
        theirs = other._power
        if self._power is not None and theirs is not None:
            self._power.merge(theirs)
        elif self._power is not None or theirs is not None:
            raise NotMergeableError(
                "cannot merge after a power pass has begun in one of two; merge the first passes, "
                "then call next_pass and give all rows again"
            )
        else:
            super()._absorb(other)
        self._bounds = None

    def _template(self) -> Self:
        template = super()._template()
        # All parts draw from one seed, each with a number of its own.
        template.random_state = seed_of(self.random_state)
        return template

    def _part(self, index: int, n_shards: int) -> Self:
        if self._power is None:
            return super()._part(index, n_shards)
        twin = copy.copy(self)
        twin._power, twin._answers = self._power.fresh(), {}
        return twin

    def _saved_params(self) -> dict[str, Any]:
        seed = int(self.sketch_.seed)  # type: ignore[attr-defined]
        return super()._saved_params() | {"random_state": seed}

    def _learned(self, state: State) -> State:
        state = super()._learned(state)
        if self._bounds is not None:
            state = state.with_more({}, {"spectral_error": np.array(self._bounds)})
        if self._power is None:
            return state
        facts = {"n_passes_done": self._n_passes_done, "power_rows": self._power.n_rows}
        return state.with_more(facts, self._power.arrays())

    def _recall(self, state: State) -> None:
        super()._recall(state)
        meta: Any = state.meta
        if "spectral_error" in state.arrays:
            lower, upper = state.arrays["spectral_error"].tolist()
            self._bounds = lower, upper
        if "power_rows" in meta:
            self._power = PowerPass.from_arrays(state.arrays, meta["power_rows"])
            self._n_passes_done = meta["n_passes_done"]


def _weights(sample_weight: RowsLike | None, n_rows: int) -> Array:
    """Return row weights, all one if none were given."""
    weights = as_weights(sample_weight, n_rows)
    return np.ones(n_rows) if weights is None else weights
