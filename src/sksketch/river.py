"""Online learners as models of River, for its pipelines, metrics and evaluation.

River is no dependency: this module imports without it, and the classes say what to install.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from sksketch.online import OnlineNewtonClassifier, OnlineNewtonRegressor

try:
    from river import base
except ImportError:
    base = None

__all__ = ["RiverClassifier", "RiverRegressor"]

E = TypeVar("E", OnlineNewtonClassifier, OnlineNewtonRegressor)
_Classifier: Any = object if base is None else base.Classifier
_Regressor: Any = object if base is None else base.Regressor


class _Adapter(Generic[E]):
    """Base of both: a template with the parameters, and a model that learns."""

    def __init__(self, estimator: E) -> None:
        if base is None:
            raise ImportError(
                f"{type(self).__name__} is a model of River: pip install 'scikit-sketch[river]'"
            )
        # River clones by deep copies of the arguments, so what is learned is kept apart from them.
        self.estimator: E = estimator
        self.fitted: E = type(estimator)(**estimator.get_params(deep=False))

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the arguments with which River's checks build a model."""
        yield {}

    def learn_one(self, x: Mapping[Any, float], y: Any) -> None:
        """Learn from one row.

        Parameters
        ----------
        x : dict of names and numbers
            The row; new names may come at any time.
        y : label or number
            Its target.
        """
        self.fitted.learn_one(x, y)

    def predict_one(self, x: Mapping[Any, float]) -> Any:
        """Return the prediction of one row.

        Parameters
        ----------
        x : dict of names and numbers
            The row.

        Returns
        -------
        label, number or None
            The target as predicted. Before anything was learned a label is None and a number 0.
        """
        return self.fitted.predict_one(x)


class RiverClassifier(_Adapter[OnlineNewtonClassifier], _Classifier):  # type: ignore[misc]
    """An `OnlineNewtonClassifier` as a classifier of River.

    Parameters
    ----------
    estimator : OnlineNewtonClassifier, default=None
        Whose parameters are taken, nothing that it has learned; None is the default one.

    Attributes
    ----------
    fitted : OnlineNewtonClassifier
        The one that learns, to be saved or asked for its ``coef_``.

    See Also
    --------
    RiverRegressor : The same for targets that are numbers.

    Notes
    -----
    Labels need not be known before they come, two or more, of any type.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing  # doctest: +SKIP
    >>> model = preprocessing.StandardScaler() | RiverClassifier()  # doctest: +SKIP
    >>> evaluate.progressive_val_score(  # doctest: +SKIP
    ...     datasets.Phishing(), model, metrics.Accuracy()
    ... )
    """

    def __init__(self, estimator: OnlineNewtonClassifier | None = None) -> None:
        super().__init__(OnlineNewtonClassifier() if estimator is None else estimator)

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_proba_one(self, x: Mapping[Any, float]) -> dict[Any, float]:
        """Return the probability of each label so far for one row.

        Parameters
        ----------
        x : dict of names and numbers
            The row.

        Returns
        -------
        dict of labels and probabilities
            Empty before anything was learned.

        Raises
        ------
        NotImplementedError
            The loss of the estimator gives no probabilities. River's metrics of labels do
            without.
        """
        probabilities = getattr(self.fitted, "predict_proba_one", None)
        if probabilities is None:
            raise NotImplementedError(
                f"{self.fitted!r} gives no probabilities; take a metric of labels"
            )
        return dict(probabilities(x) or {})


class RiverRegressor(_Adapter[OnlineNewtonRegressor], _Regressor):  # type: ignore[misc]
    """An `OnlineNewtonRegressor` as a regressor of River.

    Parameters
    ----------
    estimator : OnlineNewtonRegressor, default=None
        Whose parameters are taken, nothing that it has learned; None is the default one.

    Attributes
    ----------
    fitted : OnlineNewtonRegressor
        The one that learns.

    See Also
    --------
    RiverClassifier : The same for labels.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing  # doctest: +SKIP
    >>> model = preprocessing.StandardScaler() | RiverRegressor()  # doctest: +SKIP
    >>> evaluate.progressive_val_score(  # doctest: +SKIP
    ...     datasets.TrumpApproval(), model, metrics.MAE()
    ... )
    """

    def __init__(self, estimator: OnlineNewtonRegressor | None = None) -> None:
        super().__init__(OnlineNewtonRegressor() if estimator is None else estimator)
