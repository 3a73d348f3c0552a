"""Rows of very many columns to few coordinates, by a random projection."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.random_projection import johnson_lindenstrauss_min_dim
from sklearn.utils import Tags

from sksketch._typing import Array, RowsLike, Seed
from sksketch.exceptions import NotMergeableError, StateFormatError
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.checks import checked_array, checked_rows, host_rows
from sksketch.models.constraints import number, one_of, whole
from sksketch.models.parameters import seed_of
from sksketch.models.scikit_learn import preserving_precision
from sksketch.reduction import reduction_base
from sksketch.reduction.reduction_base import REDUCTION_CONSTRAINTS
from sksketch.reduction.residual import Blocks
from sksketch.reduction.subspace import ColumnSample, LinearMap, RandomMap, inverse_gram
from sksketch.sketches import make_sketch
from sksketch.sketches.projections.projection import Projection
from sksketch.state.persistence import State

# Columns of a saved projection, above which it has at least as many.
MOST_COMPONENTS = 2**20


class RandomReduction(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Coordinates of rows by a random projection that knows nothing of the data.

    Parameters
    ----------
    n_components : int or "auto", default=100
        Number of coordinates. "auto" takes as many as the Johnson-Lindenstrauss lemma asks for to
        keep distances between the rows of `fit` up to ``eps``.
    operator : {"countsketch", "gaussian", "srht", "sample"}, default="countsketch"
        The projection: one sign for each column, normal numbers, a randomized Hadamard
        transform, or some of the columns themselves. The sketch of the same name makes the
        first three.
    eps : float, default=0.1
        With ``n_components="auto"``: by which part squared distances may change.
    random_state : int, RandomState or None, default=0
        Chooses the projection.

    Attributes
    ----------
    n_components_ : int
        Number of coordinates.
    components_ : array of shape (n_components_, n_features)
        The projection, computed when read.
    inverse_components_ : array of shape (n_features, n_components_)
        Its pseudo-inverse, computed when read.
    seed_ : int
        The seed that the projection is drawn from.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the rows have names.

    See Also
    --------
    SubspaceReduction : Coordinates on a random subspace of the data.
    ReducedClassifier : Learns on the coordinates.
    sklearn.random_projection.GaussianRandomProjection : A projection that is stored.

    Notes
    -----
    Squared lengths are right on average. "sample" may lose any row that has few columns, so
    take it for dense data only. It is the oblivious reduction that [1]_ compares with.

    References
    ----------
    .. [1] Xu, Y., Yang, H., Zhang, L. and Yang, T. (2017). "Efficient Non-oblivious Randomized
       Reduction for Risk Minimization with Improved Excess Risk Guarantee". AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((100, 2000))
    >>> Z = RandomReduction(n_components=400, operator="gaussian").fit_transform(X)
    >>> Z.shape, float(((Z**2).sum() / (X**2).sum()).round(1))
    ((100, 400), 1.0)
    """

    kind = "random-reduction"
    _fitted = "seed_"
    _constraints = REDUCTION_CONSTRAINTS | {
        "n_components": (whole(1), one_of("auto")),
        "eps": (number(0.0, 1.0, bounds="()"),),
    }
    _size: int

    def __init__(
        self,
        n_components: int | str = 100,
        *,
        operator: str = "countsketch",
        eps: float = 0.1,
        random_state: Seed = 0,
    ) -> None:
        self.n_components = n_components
        self.operator = operator
        self.eps = eps
        self.random_state = random_state

    def fit(self, X: RowsLike, y: RowsLike | None = None) -> Self:
        """Draw the projection for the columns of ``X``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; only the number of columns counts, and with ``n_components="auto"`` theirs.
        y : ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        self
            This estimator.
        """
        self._check_params()
        with or_as_before(self):
            rows = self._validated(X, reset=True)
            self._begin(seed_of(self.random_state), self._size_for(*rows.shape))
            self._map()
        return self

    def _size_for(self, n_rows: int, n_features: int) -> int:
        """Return the number of coordinates for that many rows."""
        if self.n_components != "auto":
            return int(self.n_components)
        size = int(johnson_lindenstrauss_min_dim(n_rows, eps=self.eps))
        if not 0 < size <= n_features:
            beyond = f"larger than the original space with n_features={n_features}"
            raise ValueError(
                f"eps={self.eps:f} and n_samples={n_rows} lead to a target dimension of {size} "
                f"which is {beyond if size else 'none at all'}; give n_components as a number"
            )
        return size

    def _fit_blocks(self, blocks: Blocks) -> Self:
        """Draw the projection for rows that come in blocks, each with its weights."""
        for rows, _ in blocks():
            self.partial_fit(rows)
        return self

    def partial_fit(self, X: RowsLike, y: RowsLike | None = None) -> Self:
        """Do as `fit` the first time, and check that later rows have the same columns.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; only their number of columns counts.
        y : ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        self
            This estimator.
        """
        if not hasattr(self, "seed_"):
            if self.n_components == "auto":
                raise ValueError(
                    'n_components="auto" depends on the number of all rows, which a stream does '
                    "not tell; call fit, or give a number"
                )
            return self.fit(X)
        self._validated(X, reset=False)
        return self

    def _begin(self, seed: int, size: int) -> None:
        self.seed_, self._size, self._answers = seed, size, {}
        self._drawn: LinearMap | None = None

    def _map(self) -> LinearMap:
        self._require_fitted()
        if self._drawn is None:
            # Of a saved one with the first rows: a small file may name any size.
            self._drawn = self._draw()
        return self._drawn

    def _draw(self) -> LinearMap:
        size, width = self._size, self.n_features_in_
        if self.operator == "sample":
            return ColumnSample(size, width, self.seed_)
        operator = make_sketch(self.operator, size, seed=self.seed_)
        assert isinstance(operator, Projection)
        return RandomMap(operator, width)

    def _validated(self, X: RowsLike, *, reset: bool) -> Any:
        return checked_rows(self, host_rows(X), reset=reset)

    def _rows(self, X: RowsLike) -> Any:
        self._require_fitted()
        rows = self._validated(X, reset=False)
        return sp.csr_array(rows) if sp.issparse(rows) else rows

    def _absorb(self, other: Self) -> None:
        """Check that two projections are the same; there is nothing to add."""
        if (self.n_components, self.operator) != (other.n_components, other.operator):
            raise NotMergeableError(f"cannot merge {other!r} into {self!r}; draw both alike")
        if not hasattr(self, "seed_"):
            names = getattr(other, "feature_names_in_", None)
            self._take_columns(other.n_features_in_, names)
            self._begin(other.seed_, other._size)
        mine, theirs = ((p.seed_, p._size, p.n_features_in_) for p in (self, other))
        if mine != theirs:
            raise NotMergeableError(
                "cannot merge projections of other random_state, size or columns; draw both alike"
            )

    n_components_ = property(reduction_base.n_components_)
    components_ = property(reduction_base.components_)
    transform = reduction_base.transform
    inverse_model = reduction_base.inverse_model

    def inverse_transform(self, X: RowsLike) -> Any:
        """Return the shortest rows that have the given coordinates, or come closest to them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_components_)
            Coordinates, as `transform` returns them.

        Returns
        -------
        array of shape (n_samples, n_features)
            Rows, in the precision of the coordinates.
        """
        coordinates = checked_array(host_rows(X), "X")
        coordinates = coordinates.toarray() if sp.issparse(coordinates) else coordinates
        linear = self._map()
        if coordinates.shape[1] != linear.n_components:
            raise ValueError(
                f"got coordinates of shape {coordinates.shape}, expected "
                f"(n, {linear.n_components}); pass what transform returned"
            )
        rows = linear.restore(coordinates.astype(np.float64), self._inverse_gram())
        return rows.astype(coordinates.dtype, copy=False)

    @property
    def inverse_components_(self) -> Array:
        """Pseudo-inverse of ``components_``, dense."""
        linear = self._map()
        return linear.restore(np.eye(linear.n_components), self._inverse_gram()).T

    def _inverse_gram(self) -> Array:
        inverse: Array = self._once("inverse_gram", lambda: inverse_gram(self._map()))
        return inverse

    @property
    def _n_features_out(self) -> int:
        return self._map().n_components

    def __sklearn_tags__(self) -> Tags:
        return preserving_precision(super().__sklearn_tags__())

    # Saving

    def _saved_params(self) -> dict[str, Any]:
        return super()._saved_params() | {"random_state": self.seed_}

    def _learned(self, state: State) -> State:
        found = {"n_components": self._size} if self.n_components == "auto" else {}
        return state.with_more(found, {})

    def _recall(self, state: State) -> None:
        self._check_params()
        auto = self.n_components == "auto"
        size = state.count("n_components") if auto else int(self.n_components)
        if size > max(self.n_features_in_, MOST_COMPONENTS):
            raise StateFormatError(
                f"the file asks for {size:,} components of "
                f"{self.n_features_in_:,} columns, which nobody draws; save it again"
            )
        self._begin(seed_of(self.random_state), size)
