"""Parts of a table side by side: scikit-learn's FeatureUnion and ColumnTransformer as steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion

from sksketch.models.pipelines.steps import Step, as_step
from sksketch.streams.columns import is_table


class SideBySide(Step):
    """The parts of a `FeatureUnion`, which all get the same rows."""

    def __init__(self, union: FeatureUnion) -> None:
        pairs = [(name, as_step(name, part)) for name, part in union.transformer_list]
        self.estimator, self._parts = union, [part for _, part in pairs]
        self.takes_tables = any(part.takes_tables for part in self._parts)
        self.n_passes = max((part.n_passes for part in self._parts), default=0)

    def transform(self, X: Any) -> Any:
        """Map rows by all parts."""
        return self.estimator.transform(X)

    def learn(self, number: int, X: Any, y: Any) -> None:
        """Let the parts learn that need this pass."""
        for part in self._parts:
            if number < part.n_passes:
                part.learn(number, X, y)

    def learners(self) -> Iterator[Any]:
        """Yield the estimators of all parts that learn."""
        for part in self._parts:
            yield from part.learners()


class Listener(TransformerMixin, BaseEstimator):
    """A part of a `ColumnTransformer` that takes its columns to a step, and makes none."""

    def __init__(self, step: Step, number: int | None) -> None:
        self.step, self.number = step, number

    def __sklearn_clone__(self) -> Listener:
        return self

    def fit(self, X: Any, y: object = None) -> Listener:
        """Let the step learn, or map if it has learned all."""
        if self.number is None:
            self.step.transform(X)
        elif self.number < self.step.n_passes:
            self.step.learn(self.number, X, y)
        return self

    def transform(self, X: Any) -> Any:
        """Return no columns."""
        return np.empty((X.shape[0], 0))


class ByColumns(Step):
    """The parts of a `ColumnTransformer`, each with columns of its own.

    Which columns these are is left to scikit-learn: for every block a transformer of the same
    columns takes them to the parts.
    """

    takes_tables = True
    estimator: ColumnTransformer

    def __init__(self, transformer: ColumnTransformer) -> None:
        self.estimator = transformer
        self._parts = [
            (name, _part(name, part), columns) for name, part, columns in transformer.transformers
        ]
        self._remainder = _part("remainder", transformer.remainder)
        self.n_passes = max((part.n_passes for part in self._steps()), default=0)
        self._ready = False

    def _steps(self) -> list[Step]:
        parts = [part for _, part, _ in self._parts] + [self._remainder]
        return [part for part in parts if isinstance(part, Step)]

    def learn(self, number: int, X: Any, y: Any) -> None:
        """Let the parts learn that need this pass."""
        self._with(lambda step: Listener(step, number)).fit(as_frame(X), y)

    def _with(self, wrap: Callable[[Step], Any]) -> ColumnTransformer:
        """Return a transformer of the same columns with other parts."""

        def wrapped(part: Any) -> Any:
            return wrap(part) if isinstance(part, Step) else part

        params = self.estimator.get_params(deep=False)
        params["transformers"] = [(name, wrapped(part), cols) for name, part, cols in self._parts]
        params["remainder"] = wrapped(self._remainder)
        return ColumnTransformer(**params)

    def transform(self, X: Any) -> Any:
        """Map rows by all parts."""
        X = as_frame(X)
        if not self._ready:
            self._finish(X)
        return self.estimator.transform(X)

    def _finish(self, X: Any) -> None:
        """Give the user's transformer the parts that have learned."""
        # Parts that have parts of their own are finished by the first rows that they map.
        self._with(lambda step: Listener(step, None)).fit(X)
        fitted = self._with(lambda step: FrozenEstimator(step.estimator)).fit(X)
        parameters = fitted.get_params(deep=False)
        learned = {name: v for name, v in vars(fitted).items() if name not in parameters}
        learned["transformers_"] = [
            (name, part.estimator if isinstance(part, FrozenEstimator) else part, columns)
            for name, part, columns in fitted.transformers_
        ]
        vars(self.estimator).update(learned)
        self._ready = True

    def learners(self) -> Iterator[Any]:
        """Yield the estimators of all parts that learn."""
        for part in self._steps():
            yield from part.learners()


def _part(name: str, part: Any) -> Any:
    # scikit-learn fits copies of the parts, too.
    return part if isinstance(part, str) else as_step(name, clone(part))


def as_frame(X: Any) -> Any:
    """Return an Arrow table as a data frame that scikit-learn knows, and others as they are."""
    if not is_table(X):
        return X
    try:
        return X.to_pandas()
    except ImportError:
        raise ImportError(
            "scikit-learn chooses columns of pandas' frames: pip install pandas"
        ) from None
