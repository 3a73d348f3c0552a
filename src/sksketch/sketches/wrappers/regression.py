"""A sketch of the rows beside their cross moment with targets, not sketched: all ridge needs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from sksketch._typing import Array, Matrix
from sksketch.arrays.device_sparse import is_sparse_on_device, on_host
from sksketch.arrays.namespace import on_device, precision
from sksketch.arrays.rows import as_rows, as_weights, squared_row_norms
from sksketch.exceptions import StateFormatError
from sksketch.sketches.base import Answer, Sketch
from sksketch.sketches.column_errors import ExactGram
from sksketch.sketches.projections.count_sketch import CountSketch
from sksketch.sketches.projections.linear_sketch import LinearSketch
from sksketch.sketches.projections.projection import GaussianSketch, HadamardSketch, SignSketch
from sksketch.sketches.projections.row_sample_sketch import RowSampleSketch
from sksketch.sketches.targets import as_targets, check_same, described
from sksketch.sketches.wrappers.centered import INNER, Centered
from sksketch.sketches.wrappers.cross_moments import CrossMoments
from sksketch.sketches.wrappers.exact_products import ExactProducts
from sksketch.sketches.wrappers.moment_sums import Moments, MomentShift
from sksketch.state.persistence import State

LINEAR: dict[str, type[LinearSketch]] = {
    kind.kind: kind
    for kind in (GaussianSketch, SignSketch, CountSketch, HadamardSketch, RowSampleSketch)
}


class Regression(Sketch):
    """Remember rows through a sketch, and their products with targets as they are.

    Parameters
    ----------
    sketch : Sketch
        An empty sketch. A linear one, S A, carries S b and S 1 along.
    centered : bool, default=True
        Whether everything is meant around the means, as for a model with intercept.
    exact_products : bool, default=False
        Whether to keep the sums of products of all columns and targets without any rounding as
        well, for the same bits from any parts of the rows; of rows on a device none are kept.

    See Also
    --------
    StreamingRidge : The estimator that solves for coefficients.
    Centered : A sketch around the mean, without targets.

    Notes
    -----
    As Shi and Phillips [1]_ do, the rows are sketched and their products with the targets are not.

    References
    ----------
    .. [1] Shi and Phillips (2021), "A Deterministic Streaming Sketch for Ridge Regression",
       AISTATS, PMLR 130.

    Examples
    --------
    >>> from sksketch import ExactCovariance
    >>> X, y = np.array([[1.0, 0.0], [3.0, 4.0], [5.0, 2.0]]), np.array([1.0, 2.0, 3.0])
    >>> sketch = Regression(ExactCovariance()).update(X, targets=y)
    >>> sketch.moments().cross.ravel(), sketch.summary().to_dense().round(9)
    (array([4., 2.]), array([[8., 4.],
           [4., 8.]]))
    """

    kind = "regression"

    def __init__(
        self, sketch: Sketch, *, centered: bool = True, exact_products: bool = False
    ) -> None:
        known = (*INNER.values(), *LINEAR.values())
        if not isinstance(sketch, known):
            raise TypeError(
                f"expected a sketch of rows, got {sketch!r:.80}; "
                f"pass an empty {', '.join(kind.__name__ for kind in known)}"
            )
        if sketch.n_features is not None:
            raise ValueError("expected an empty sketch, got one with rows; wrap it before update")
        if exact_products and sketch.decay < 1.0:
            raise ValueError(
                "products without rounding are not forgotten; pass a sketch without decay or "
                "half_life, or exact_products=False"
            )
        self.centered, self.exact_products = bool(centered), bool(exact_products)
        self._products: ExactProducts | None = None
        self.decay = sketch.decay
        self.linear = isinstance(sketch, LinearSketch)
        self.sketch = Centered(sketch) if self.centered and not self.linear else sketch
        self._cross: CrossMoments | None = None
        self._target_shape: tuple[int, ...] | None = None
        # Of rows of which only some belong here, in what was read from a window.
        self._shift: MomentShift | None = None

    def update(self, X: object, weights: object = None, targets: object = None) -> Self:
        """Take in a block of rows and their targets.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            Real, finite numbers.
        weights : array-like of shape (n_rows,), default=None
            Each row counts as ``weights[i]`` copies of itself.
        targets : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            They come with all updates of a sketch or with none.

        Returns
        -------
        self
            The sketch itself, unchanged if the block is refused.
        """
        self._require_whole()
        rows = as_rows(X, n_features=self.n_features)
        checked = as_weights(weights, rows.shape[0])
        columns = None
        if targets is not None:
            columns = as_targets(targets, None, rows.shape[0], np.dtype(np.float64))
        shape = None if columns is None else columns.shape[1:]
        if self.n_features is not None:
            check_same(shape, self._target_shape)
        wide = None if columns is None else columns.reshape(len(columns), -1)
        if isinstance(self.sketch, LinearSketch):
            carried = None if wide is None else np.column_stack([wide, np.ones(len(wide))])
            self.sketch.update(rows, checked, targets=carried)
        else:
            self.sketch.update(rows, checked)
        self._interrupted = True
        self._follow(shape)
        if wide is not None:
            counted = np.ones(len(wide)) if checked is None else checked
            if self._cross is None:
                sizes = rows.shape[1], wide.shape[1]
                self._cross = CrossMoments(*sizes, centered=self.centered, decay=self.decay)
            self._cross.update(on_host(rows), wide, counted)
            self._add_products(rows, wide, checked)
        self._interrupted = False
        return self

    def _add_products(self, rows: Matrix, targets: Array, weights: Array | None) -> None:
        """Add to the sums without rounding, unless they lack earlier rows."""
        if not self.exact_products:
            return
        if on_device(rows) or is_sparse_on_device(rows):
            self.exact_products, self._products = False, None
            return
        if self._products is None:
            self._products = ExactProducts(rows.shape[1] + targets.shape[1])
        self._products.update(rows, targets, weights)

    @property
    def products(self) -> ExactProducts | None:
        """Sums of products of all columns and targets without any rounding, if they are kept."""
        return self._products

    def check(self, X: object, weights: object = None, targets: object = None) -> None:
        """Raise what `update` would raise for these rows; changes nothing.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            Rows.
        weights : array-like of shape (n_rows,), default=None
            Weights of the rows.
        targets : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            Targets of the rows.
        """
        rows = as_rows(X, n_features=self.n_features)
        as_weights(weights, rows.shape[0])
        dtype = np.dtype(np.float32 if precision(rows) == np.float32 else np.float64)
        squared_row_norms(rows, self.dtype or dtype)
        if targets is not None:
            as_targets(targets, None, rows.shape[0], np.dtype(np.float64))

    def _follow(self, shape: tuple[int, ...] | None) -> None:
        """Take over the counters of the sketch."""
        self.n_features, self.dtype = self.sketch.n_features, self.sketch.dtype
        self.n_rows_seen = self.sketch.n_rows_seen
        self.total_weight = self.sketch.total_weight
        self._target_shape = shape

    def _take(self, rows: Matrix) -> None:
        # Rows alone; those with targets come through update.
        self.update(rows)

    def moments(self) -> Moments:
        """Return means, cross moment and squares of rows and targets.

        Returns
        -------
        Moments
            Weighted sums over the rows seen, around their means if ``centered``.
        """
        self._require_rows()
        if self._cross is None:
            raise ValueError("no targets have come with the rows; pass them to update")
        found = self._cross.read(self._entry_error)
        return found if self._shift is None else self._shift.applied(found)

    def _round(self, relative: float) -> None:
        self._entry_error = max(self._entry_error, relative)
        self.sketch._round(relative)

    def _exact_gram(self, extra: Array | None = None) -> ExactGram | None:
        return self.sketch._exact_gram(extra)

    @property
    def target_shape(self) -> tuple[int, ...] | None:
        """Shape of the targets of one row; None if none have come."""
        return self._target_shape

    def projected(self) -> tuple[Array, Array, Array]:
        """Return S A, S b and S 1 of a linear sketch.

        Returns
        -------
        tuple of three arrays
            Of shapes (sketch_size, n_features), (sketch_size, n_targets) and (sketch_size,).
        """
        assert isinstance(self.sketch, LinearSketch)
        carried = self.sketch.targets
        if carried is None:
            raise ValueError("no targets have come with the rows; pass them to update")
        return self.sketch.matrix, carried[:, :-1], carried[:, -1]

    def fresh(self) -> Self:
        """Return an empty sketch with the same options.

        Returns
        -------
        Sketch
            An empty sketch of the same class.
        """
        inner = self.sketch.sketch if isinstance(self.sketch, Centered) else self.sketch
        return type(self)(inner.fresh(), centered=self.centered, exact_products=self.exact_products)

    def for_shard(self, index: int, n_shards: int) -> Self:
        """Return an empty sketch for one of many parts of the rows.

        Parameters
        ----------
        index : int
            Number of the part, from 0 on.
        n_shards : int
            Number of all parts.

        Returns
        -------
        Sketch
            An empty sketch for that part.
        """
        inner = self.sketch.sketch if isinstance(self.sketch, Centered) else self.sketch
        return type(self)(
            inner.for_shard(index, n_shards),
            centered=self.centered,
            exact_products=self.exact_products,
        )

    def _shrink_waiting(self) -> None:
        self.sketch.compact()
        if self._cross is not None:
            self._cross.compact()

    def _refusal(self, other: Self) -> str | None:
        if self._shift is not None or other._shift is not None:
            return "one of the two was read from a window; merge the windows and read that"
        if self.centered != other.centered:
            return "only one of the two is centered; build both alike"
        filled = self.n_features is not None and other.n_features is not None
        if filled and self._target_shape != other._target_shape:
            return (
                f"{described(self._target_shape)} here and {described(other._target_shape)} "
                "there; build both with the same targets"
            )
        if type(self.sketch) is not type(other.sketch):
            return "the wrapped sketches are of different kinds; wrap the same kind"
        return self.sketch._refusal(other.sketch)

    def merge(self, other: Self) -> Self:
        """Add what another sketch has seen, as if its rows had come here.

        Parameters
        ----------
        other : Regression
            Of the same kind and for the same columns; it is left as it was.

        Returns
        -------
        self
            The sketch itself.
        """
        super().merge(other)
        if other.n_features is not None:
            self._follow(other._target_shape)
        return self

    def _absorb(self, other: Self) -> None:
        self.sketch.merge(other.sketch)
        if other._cross is not None:
            if self._cross is None:
                n_features, n_targets = other.moments().cross.shape
                sizes = n_features, n_targets
                self._cross = CrossMoments(*sizes, centered=self.centered, decay=self.decay)
            self._cross.merge(other._cross)
        if not (self.exact_products and other.exact_products):
            # Sums that lack some rows are of no use.
            self.exact_products, self._products = False, None
        elif other._products is not None:
            if self._products is None:
                self._products = ExactProducts(other._products.n_columns)
            self._products.merge(other._products)

    def _answer(self, extra: Matrix | None = None, allowance: float = 0.0) -> Answer:
        self._require_rows()
        return self.sketch._answer(extra, allowance)

    def _plan(self) -> str:
        return f"{self.sketch.plan()} The cross moment with the targets is not sketched."

    def state(self) -> State:
        """Return the states of the sketch and of the cross moment.

        Returns
        -------
        State
            Plain values and arrays, as `save` writes them.
        """
        shape = self._target_shape
        meta = {
            "centered": self.centered,
            "n_targets": None if shape is None else (shape[0] if shape else 0),
            "has_targets": shape is not None,
            "entry_error": self._entry_error,
            "exact_products": self.exact_products,
        }
        state = State(self.kind, self.version, meta, {}).with_inner("sketch", self.sketch.state())
        if self._products is not None:
            state = state.with_inner("products", self._products.state())
        if self._shift is not None:
            arrays = self._shift._asdict()
            state = state.with_more({}, {f"shift.{n}": np.array(v) for n, v in arrays.items()})
        return state if self._cross is None else state.with_inner("cross", self._cross.state())

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build a sketch that continues where ``state`` was taken.

        Parameters
        ----------
        state : State
            What `state` returned, or what was read from a file.

        Returns
        -------
        Sketch
            A sketch that continues where ``state`` was taken.
        """
        cls._check_kind(state)
        meta: Any = state.meta
        inner = state.inner("sketch")
        kinds: dict[str, Any] = {Centered.kind: Centered, **INNER, **LINEAR}
        if inner.kind not in kinds:
            raise StateFormatError(
                f"a regression on {inner.kind!r} is not known to this release; upgrade sksketch"
            )
        sketch = kinds[inner.kind].from_state(inner)
        bare = sketch.sketch if isinstance(sketch, Centered) else sketch
        # Earlier releases have not kept the products.
        made = cls(
            bare.fresh(),
            centered=meta["centered"],
            exact_products=meta.get("exact_products", False),
        )
        made.sketch = sketch
        if "products.kind" in meta:
            made._products = ExactProducts.from_state(state.inner("products"))
        made._entry_error = meta.get("entry_error", 0.0)
        if meta["has_targets"]:
            cross = state.inner("cross")
            # What the first version of these states did not say about their rounding.
            known: dict[str, Any] = {}
            if cross.version < CrossMoments.version:
                known = {"squared_norm": sketch.squared_norm, "n_rows": sketch.n_rows_seen}
            made._cross = CrossMoments.from_state(cross, **known)
        if sketch.n_features is not None:
            shape = (meta["n_targets"],) if meta["n_targets"] else ()
            made._follow(shape if meta["has_targets"] else None)
        if shift := state.behind("shift."):
            plain: dict[str, Any] = {n: v if v.ndim else v.item() for n, v in shift.items()}
            made._shift = MomentShift(**plain)
        return made
