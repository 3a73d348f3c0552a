"""The online Newton classifier: one pass, row by row, second order and no learning rate."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from sksketch._keys import ONLINE_CLASSIFICATION
from sksketch._typing import Array, OneRow, Rows, RowsLike
from sksketch.models import labels
from sksketch.models.constraints import DICTIONARY, NOTHING, one_of
from sksketch.online import learning
from sksketch.online.checks import (
    check_classes,
    check_labels,
    first_labels,
    given_classes,
    labels_with,
    signs,
)
from sksketch.online.online_estimator import OnlineEstimator
from sksketch.online.plain_rows import learn_label
from sksketch.state.guard import reads
from sksketch.state.persistence import State

IF_LOGISTIC = available_if(labels.has_probabilities("logistic"))


class OnlineNewtonClassifier(ClassifierMixin, OnlineEstimator):
    """Linear classifier that learns row by row with curvature and nothing to tune.

    Each row is predicted, then learned from by a Newton step with a sketch of the curvature of all
    rows so far. The cost of a row grows with its non-zeros and not with the columns.

    Parameters
    ----------
    method : {"rfd", "fd", "pfd", "rp", "oja", "full", "adagrad", "ogd"}, default="rfd"
        "rfd" is Robust Frequent Directions. "fd", "pfd", "rp" and "oja" are other sketches,
        "full" the whole curvature (for few columns), "adagrad" its diagonal, "ogd" none.
    sketch_size : int, default=20
        The m of the paper, at least 2: the sketch keeps m - 1 directions.
    loss : {"logistic", "squared", "hinge"}, default="logistic"
        Loss of labels -1 and 1; of several labels the logistic one is that of the softmax.
    curvature : {"loss", "gradient"}, default="loss"
        Made of rows ``sqrt(l'') x`` of the loss itself, or of gradients, as in the paper and as
        always for "rp", "oja", "adagrad" and "ogd".
    normalize : bool, default=True
        Whether units and offsets of columns do not matter: each is divided by a power of two near
        its standard deviation and, in dense rows, counted from its mean. Not with gradients.
    C : float, default=1.0
        With gradients, predictions are projected to ``[-C, C]`` while learning.
    initial_ridge : float or "auto", default="auto"
        Curvature in all directions at the start, the penalty of squared weights in the units of
        the columns. "auto" is 1; with gradients it is the squared length of the first row that is
        added, and 0 is the paper's RFD0, for "rfd" only.
    fit_intercept : bool, default=True
        Whether to learn an intercept.
    shuffle : bool, default=True
        Whether `fit` takes the rows in random order; with gradients it keeps theirs.
    max_passes : int, default=50
        Most times that `fit` reads the rows: after the online pass it descends to the weights of
        least loss and penalty, except for the hinge losses of several labels.
    n_passes : int, default=1
        With gradients, the times that `fit` reads the rows.
    class_weight : dict, "balanced" or None, default=None
        Weight of each label; "balanced" only for `fit`.
    null_projection : {"range", "exact", "printed", "clip"}, default="range"
        How RFD0 projects, see `online.gradient.unridged_newton`.
    fraction : float, default=0.2
        Of the directions, how many "pfd" cuts.
    buffer_rows : int, default=None
        Kept rows and those between shrinks; by default three times ``sketch_size``.
    hash_size : int, default=None
        Columns for names in `learn_one`, by their hash. None gives each of the first 2^18 names
        a column, and hashes the others to 2^16.
    random_state : int, default=0
        Seed of the order of rows in `fit`, and of "rp" and "oja".

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights.
    intercept_ : array of shape (1,) or (n_classes,)
        Weights of the column of ones.
    online_error_, baseline_error_ : float
        Part of the rows predicted wrong before they were learned from; the commonest label's.
    online_error_curve_ : array of shape (n_marks, 3)
        Rows (1, 2, 4, ... and all), and both errors after as many.
    cumulative_loss_ : float
        Sum of their losses; with gradients predictions are clipped to ``[-C, C]`` first.
    learners_ : list of OnlineLearner
        One learner; with gradients one for each of several classes.
    n_samples_seen_, n_features_in_ : int
        Rows learned from, and their columns.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where rows have them.

    See Also
    --------
    OnlineNewtonRegressor : The same for targets that are numbers.
    sklearn.linear_model.SGDClassifier : First-order steps, with a learning rate.

    Notes
    -----
    A block of rows gives exactly what its rows give one by one. `merge` is refused: every step
    depends on all rows before. `sksketch.online.curvature.reference` has the algorithm and its
    derivation in plain numpy; `sksketch.online.reference` that of the paper [1]_.

    References
    ----------
    .. [1] Luo et al. (2019). "Robust Frequent Directions with Application in Online Learning".
       Journal of Machine Learning Research 20(45).

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((2_000, 5))
    >>> y = np.where(X @ [1.0, -2.0, 0.0, 1.0, 0.5] > 0, "yes", "no")
    >>> OnlineNewtonClassifier(sketch_size=4).fit(X, y).score(X, y) > 0.98
    True
    """

    kind = "online-newton-classifier"
    _constraints = OnlineEstimator._shared_constraints | {
        "loss": (one_of(*ONLINE_CLASSIFICATION),),
        "class_weight": (DICTIONARY, one_of("balanced"), NOTHING),
    }

    def __init__(
        self,
        method: str = "rfd",
        *,
        sketch_size: int = 20,
        loss: str = "logistic",
        curvature: str = "loss",
        normalize: bool = True,
        C: float = 1.0,
        initial_ridge: float | str = "auto",
        fit_intercept: bool = True,
        shuffle: bool = True,
        max_passes: int = 50,
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
        self.curvature = curvature
        self.normalize = normalize
        self.C = C
        self.initial_ridge = initial_ridge
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.max_passes = max_passes
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
        labels.refuse_balanced(self.class_weight)
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
        return float(np.mean(self.partial_fit_predict(X, y, classes) == np.asarray(y)))

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
        if learn_label(self, x, y):
            return self
        if y != y:
            raise ValueError("the label is NaN; give one that is equal to itself")
        with self._or_as_before():
            row = self._meet(x, lambda width, dense: self._begin_labels(y, width, dense))
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
        if "learners_" not in vars(self):
            return None
        return labels.predicted_one(self.classes_, self._scores_of_one(x)[0])

    def _begin_labels(self, y: object, width: int, dense: bool) -> None:
        labels.refuse_balanced(self.class_weight)
        self.classes_, self._guess = first_labels(y)
        self._open_labels = True
        self._start(width, 1, dense=dense)

    def _meet_label(self, y: object) -> None:
        """Make room for a label that is new, unless all were named before."""
        guess, is_open = getattr(self, "_guess", None), getattr(self, "_open_labels", False)
        found, self._guess = labels_with(y, self.classes_, guess, is_open=is_open)
        if found is self.classes_:
            return
        if len(found) > max(len(self.classes_), 2):
            begin = partial(self._new_learner, self.n_features_in_)
            known = self.learners_, self._vocabulary
            self.learners_ = learning.with_label(*known, len(found), begin)
        self._baseline = self._baseline.with_outputs(len(found))
        self.classes_ = found
        self._answers = {}

    def _targets(self, y: Array, reset: bool) -> Array:
        if reset:
            check_classification_targets(y)
            self.classes_ = vars(self).get("classes_", np.unique(y))
        check_labels(y, self.classes_, several=reset)
        return signs(self.classes_, y)

    def _weighted(self, y: Rows, weights: Array) -> Array:
        return weights * labels.weights_by_class(self.class_weight, self.classes_, y)

    def _predictions(self, scores: Array) -> Array:
        return labels.predicted(self.classes_, scores)

    def _errors(self, scores: Array, y: Rows) -> Array:
        return np.asarray(self._predictions(scores) != np.asarray(y), dtype=np.float64)

    decision_function = labels.decision_function
    predict = labels.predict

    def _own_targets(self, columns: Array) -> Array:
        several = columns.shape[1] > 1 and self.loss == "logistic"
        return 0.5 * (columns + 1.0) if several else columns

    @property
    def _is_softmax(self) -> bool:
        return self._by_loss and self.loss == "logistic"

    predict_proba = IF_LOGISTIC(reads(labels.predict_proba))
    predict_log_proba = IF_LOGISTIC(reads(labels.predict_log_proba))
    predict_proba_one = IF_LOGISTIC(reads(labels.predict_proba_one))

    @property
    def coef_(self) -> Array:
        """Weights of the columns, one row for each learner."""
        return self._dense()[0]

    @property
    def intercept_(self) -> Array:
        """Weights of the column of ones."""
        return self._dense()[1]

    def _learned(self, state: State) -> State:
        guess, is_open = getattr(self, "_guess", None), bool(getattr(self, "_open_labels", False))
        text = labels.labels_text(self.classes_)
        facts = {"classes": text, "guess": guess, "open_labels": is_open}
        return super()._learned(state).with_more(facts, {})

    def _recall(self, state: State) -> None:
        super()._recall(state)
        meta: Any = state.meta
        self.classes_ = labels.labels_of(meta["classes"])
        self._open_labels, self._guess = meta["open_labels"], meta.get("guess")
