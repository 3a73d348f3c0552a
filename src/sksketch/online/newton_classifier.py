"""The online Newton classifier: one pass, row by row, second order and no learning rate."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from sksketch._typing import Array, OneRow, Rows, RowsLike
from sksketch.models import labels
from sksketch.models.constraints import DICTIONARY, NOTHING, one_of
from sksketch.online.checks import check_classes, first_labels, given_classes, refuse_label, signs
from sksketch.online.losses import CLASSIFICATION
from sksketch.online.online_estimator import OnlineEstimator
from sksketch.state.guard import reads
from sksketch.state.persistence import State


class OnlineNewtonClassifier(ClassifierMixin, OnlineEstimator):
    """Linear classifier that learns row by row with curvature and nothing to tune.

    Each row is predicted, then learned from by a Newton step whose curvature is a sketch of all
    gradients so far. The cost of a row grows with its non-zeros and not with the columns.

    Parameters
    ----------
    method : {"rfd", "fd", "pfd", "rp", "oja", "full", "adagrad", "ogd"}, default="rfd"
        "rfd" keeps the curvature by Robust Frequent Directions. "fd", "pfd", "rp" and "oja" are
        other sketches, "full" the whole curvature (for few columns), "adagrad" its diagonal, "ogd"
        none.
    sketch_size : int, default=20
        The m of the paper, at least 2: the sketch keeps m - 1 directions.
    loss : {"squared", "logistic", "hinge"}, default="squared"
        Loss of labels -1 and 1.
    C : float, default=1.0
        Predictions are projected to ``[-C, C]`` while learning.
    initial_ridge : float or "auto", default="auto"
        Curvature in all directions at the start. "auto" takes the squared length of the first
        row that is added. 0 is the paper's RFD0, for "rfd" only.
    fit_intercept : bool, default=True
        Whether to add a column of ones.
    n_passes : int, default=1
        Times that `fit` reads the rows.
    class_weight : dict, "balanced" or None, default=None
        Weight of each label; "balanced" only for `fit`.
    null_projection : {"range", "exact", "printed", "clip"}, default="range"
        How to project while there is no ridge, see `online.unridged_newton`.
    fraction : float, default=0.2
        Of the directions, how many "pfd" cuts.
    buffer_rows : int, default=None
        Rows between shrinks and kept ones together. By default the first shrink comes when
        there are ``sketch_size`` rows, and the room doubles until there are three times as many;
        with ``initial_ridge=0`` there are always twice as many.
    hash_size : int, default=None
        For rows with names, see `learn_one`: None gives each name a column as it comes, and lets
        those after the first 2^18 share 2^16 columns by their hash, so that memory has an end; a
        number hashes all names to that many columns.
    random_state : int, default=0
        Seed of "rp" and "oja".

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights.
    intercept_ : array of shape (1,) or (n_classes,)
        Weights of the column of ones.
    online_error_ : float
        Part of the rows that were predicted wrong before they were learned from.
    cumulative_loss_ : float
        Sum of the losses of those predictions, clipped to ``[-C, C]`` first, over all classes.
    learners_ : list of OnlineLearner
        One learner, or one for each of several classes.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the rows have names.

    See Also
    --------
    OnlineNewtonRegressor : The same for targets that are numbers.
    ReducedClassifier : Learns from all rows at once, on few coordinates.
    sklearn.linear_model.SGDClassifier : First-order steps, with a learning rate.

    Notes
    -----
    A block of rows gives exactly what its rows give one by one. Several classes have a learner
    each, against the rest. `merge` is refused: every step depends on all rows before.
    `sksketch.online.reference.learn` is the same algorithm in plain numpy, to read beside [1]_.

    References
    ----------
    .. [1] Luo, L., Chen, C., Zhang, Z., Li, W.-J. and Zhang, T. (2019). "Robust Frequent
       Directions with Application in Online Learning". Journal of Machine Learning Research
       20(45).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2_000, 5))
    >>> y = np.where(X @ [1.0, -2.0, 0.0, 1.0, 0.5] > 0, "yes", "no")
    >>> model = OnlineNewtonClassifier(sketch_size=4).fit(X, y)
    >>> model.online_error_ < 0.1, model.predict(X[:3]).tolist() == y[:3].tolist()
    (True, True)
    """

    kind = "online-newton-classifier"
    _constraints = OnlineEstimator._shared_constraints | {
        "loss": (one_of(*CLASSIFICATION),),
        "class_weight": (DICTIONARY, one_of("balanced"), NOTHING),
    }

    def __init__(
        self,
        method: str = "rfd",
        *,
        sketch_size: int = 20,
        loss: str = "squared",
        C: float = 1.0,
        initial_ridge: float | str = "auto",
        fit_intercept: bool = True,
        n_passes: int = 1,
        class_weight: dict[Any, float] | str | None = None,
        null_projection: str = "range",
        fraction: float = 0.2,
        buffer_rows: int | None = None,
        hash_size: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.method = method
        self.sketch_size = sketch_size
        self.loss = loss
        self.C = C
        self.initial_ridge = initial_ridge
        self.fit_intercept = fit_intercept
        self.n_passes = n_passes
        self.class_weight = class_weight
        self.null_projection = null_projection
        self.fraction = fraction
        self.buffer_rows = buffer_rows
        self.hash_size = hash_size
        self.random_state = random_state

    def fit(self, X: RowsLike, y: RowsLike, sample_weight: RowsLike | None = None) -> Self:
        """Learn from all rows, forgetting what was learned before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row's loss; rows of weight zero are left out.

        Returns
        -------
        self
            This estimator.
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(
        self,
        X: RowsLike,
        y: RowsLike,
        classes: RowsLike | None = None,
        sample_weight: RowsLike | None = None,
    ) -> Self:
        """Learn from more rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come; needed at the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row's loss.

        Returns
        -------
        self
            This estimator.
        """
        self.partial_fit_predict(X, y, classes, sample_weight)
        return self

    def partial_fit_predict(
        self,
        X: RowsLike,
        y: RowsLike,
        classes: RowsLike | None = None,
        sample_weight: RowsLike | None = None,
    ) -> Array:
        """Learn from more rows; return the label of each as predicted before it was learned from.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come; needed at the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row's loss.

        Returns
        -------
        array of shape (n_samples,)
            Labels.
        """
        first = not hasattr(self, "learners_")
        self._refuse_balanced()
        with self._or_as_before():
            if first or not hasattr(self, "classes_"):
                self.classes_ = given_classes(classes)
            elif classes is not None:
                check_classes(classes, self.classes_)
            return self._predictions(self._take(X, y, sample_weight, reset=first))

    def progressive_score(self, X: RowsLike, y: RowsLike, classes: RowsLike | None = None) -> float:
        """Predict each row, then learn from it; return the part that was predicted right.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come; needed at the first call.

        Returns
        -------
        float
            Accuracy of the predictions made before each row was learned from.
        """
        found = self.partial_fit_predict(X, y, classes)
        return float(np.mean(found == np.asarray(y)))

    def learn_one(self, x: OneRow, y: object) -> Self:
        """Learn from one row.

        Parameters
        ----------
        x : dict of names and numbers, or sequence of numbers
            A name that is new gets a column, so the columns need not be known.
        y : str, int or bool
            Its label, which may be new as well.

        Returns
        -------
        self
            This estimator.

        Examples
        --------
        >>> model = OnlineNewtonClassifier(sketch_size=2)
        >>> for _ in range(5):
        ...     model = model.learn_one({"cheap": 1, "pills": 1}, "spam")
        ...     model = model.learn_one({"meeting": 1, "at noon": 1}, "mail")
        >>> model.predict_one({"pills": 1})
        'spam'
        """
        y = y.item() if isinstance(y, np.generic) else y
        if y != y:
            raise ValueError("the label is NaN; give one that is equal to itself")
        with self._or_as_before():
            row = self._meet(x, lambda width: self._begin_labels(y, width))
            self._meet_label(y)
            labels = np.array([y], dtype=self.classes_.dtype)
            weights = self._weighted(labels, np.ones(1))
            self._learn(row, labels, signs(self.classes_, labels), weights)
        return self

    def predict_one(self, x: OneRow) -> Any:
        """Return the label of one row.

        Parameters
        ----------
        x : dict of names and numbers, or sequence of numbers
            The row.

        Returns
        -------
        str, int, bool or None
            Its label; None before anything was learned.
        """
        if not hasattr(self, "learners_"):
            return None
        return self._predictions(self._scores_of_one(x))[0].item()

    def _refuse_balanced(self) -> None:
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all labels at once; pass a dictionary, or call fit"
            )

    def _begin_labels(self, y: object, width: int) -> None:
        self._refuse_balanced()
        self.classes_, self._guess = first_labels(y)
        self._open_labels = True
        self._start(width, 1)

    def _meet_label(self, y: object) -> None:
        """Make room for a label that is new, unless all were named before."""
        labels = self.classes_.tolist()
        guess = getattr(self, "_guess", None)
        if guess is not None and y != labels[1 - guess]:
            labels[guess] = y
            self._guess = None
        elif y not in labels:
            labels.append(y)
        if labels == self.classes_.tolist():
            return
        found = np.array(labels)
        if not getattr(self, "_open_labels", False) or found.dtype.kind != self.classes_.dtype.kind:
            refuse_label(y, self.classes_)
        if len(labels) > max(len(self.classes_), 2):
            # Every label has a learner of its own now; the first one was for the second label.
            more = [self._new_learner(self.n_features_in_) for _ in range(2)]
            first = more[:1] if len(labels) == 3 else []
            self.learners_ = [*first, *self.learners_, more[1]]
        self.classes_ = found
        self._answers = {}

    def _targets(self, y: Array, reset: bool) -> Array:
        if reset:
            check_classification_targets(y)
        if reset and "classes_" not in vars(self):
            self.classes_ = np.unique(y)
        if reset and len(self.classes_) < 2:
            raise ValueError(
                f"got one class, {self.classes_.tolist()[0]!r}; two or more are needed to learn"
            )
        strange = ~np.isin(y, self.classes_)
        if strange.any():
            refuse_label(np.asarray(y)[strange].tolist()[0], self.classes_)
        return signs(self.classes_, y)

    def _weighted(self, y: Rows, weights: Array) -> Array:
        return weights * labels.weights_by_class(self.class_weight, self.classes_, y)

    def _predictions(self, scores: Array) -> Array:
        return labels.predicted(self.classes_, scores)

    def _errors(self, scores: Array, y: Rows) -> Array:
        return np.asarray(self._predictions(scores) != np.asarray(y), dtype=np.float64)

    decision_function = labels.decision_function
    predict = labels.predict

    @available_if(labels.has_probabilities("logistic"))
    @reads
    def predict_proba(self, X: RowsLike) -> Array:
        """Return the probability of each label, for the logistic loss.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        return labels.one_against_rest(self._scores(X))

    @property
    def coef_(self) -> Array:
        """Weights of the columns, one row for each learner."""
        return self._dense()[0]

    @property
    def intercept_(self) -> Array:
        """Weights of the column of ones."""
        return self._dense()[1]

    def _learned(self, state: State) -> State:
        guess = getattr(self, "_guess", None)
        facts = {"classes": labels.labels_text(self.classes_), "guess": guess}
        facts["open_labels"] = bool(getattr(self, "_open_labels", False))
        return super()._learned(state).with_more(facts, {})

    def _recall(self, state: State) -> None:
        super()._recall(state)
        meta: Any = state.meta
        self.classes_ = labels.labels_of(meta["classes"])
        self._open_labels, self._guess = meta["open_labels"], meta.get("guess")
