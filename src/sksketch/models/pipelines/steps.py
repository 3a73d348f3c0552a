"""Steps of a pipeline as a stream sees them: some learn, each in a pass of its own, then all map.

A `Pipeline` needs the passes of all its steps, one after the other; a `ColumnTransformer` or
`FeatureUnion` those of the longest of its parts, which learn side by side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from sksketch.models.protocols import Settled
from sksketch.streams.encoded import Selective


class Step(ABC):
    """A step on the way to the last one."""

    # Times that it must see all rows before it can map them.
    n_passes: int = 0
    # Whether its rows may have columns of any type.
    takes_tables: bool = False
    # The user's own, which is fitted once the step has learned.
    estimator: Any = None

    @abstractmethod
    def transform(self, X: Any) -> Any:
        """Map rows."""

    def learn(self, number: int, X: Any, y: Any) -> None:
        """Learn from rows, in the pass of that number; there are ``n_passes``."""
        raise ValueError(f"{self.estimator!r} has {self.n_passes} passes to learn in, not {number}")

    def learners(self) -> Iterator[Any]:
        """Yield the estimators that learn."""
        yield from ()

    def columns_used(self) -> list[str] | None:
        """Return the columns of a table that it maps once it has learned; None is all."""
        return None


class Fixed(Step):
    """A step that maps rows as it is."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def transform(self, X: Any) -> Any:
        """Map rows."""
        return X if self.estimator is None else self.estimator.transform(X)


class Learning(Step):
    """A step that learns from all rows by ``partial_fit``."""

    n_passes = 1

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.takes_tables = getattr(estimator, "takes_tables", False)

    def transform(self, X: Any) -> Any:
        """Map rows."""
        return self.estimator.transform(X)

    def learn(self, number: int, X: Any, y: Any) -> None:
        """Learn from rows."""
        self.estimator.partial_fit(X, y)

    def learners(self) -> Iterator[Any]:
        """Yield the estimator."""
        yield self.estimator

    def columns_used(self) -> list[str] | None:
        """Return the columns that features are made of, where the estimator knows."""
        return self.estimator.columns_used() if isinstance(self.estimator, Selective) else None


class Chain(Step):
    """Steps one after the other."""

    def __init__(self, steps: list[Step], estimator: Any = None) -> None:
        self.steps, self.estimator = steps, estimator
        self.takes_tables = bool(steps) and steps[0].takes_tables
        self.n_passes = sum(step.n_passes for step in steps)

    def transform(self, X: Any) -> Any:
        """Map rows by all steps."""
        for step in self.steps:
            X = step.transform(X)
        return X

    def learn(self, number: int, X: Any, y: Any) -> None:
        """Map rows by the steps that have learned, and let the next one learn."""
        for step in self.steps:
            if number < step.n_passes:
                step.learn(number, X, y)
                return
            number -= step.n_passes
            X = step.transform(X)

    def learners(self) -> Iterator[Any]:
        """Yield the estimators of all steps that learn."""
        for step in self.steps:
            yield from step.learners()

    def columns_used(self) -> list[str] | None:
        """Return the columns that the first step maps."""
        return self.steps[0].columns_used() if self.steps else None


def as_step(name: str, estimator: Any) -> Step:
    """Return a step of a pipeline as one that can stream, or say why it cannot."""
    if estimator is None or isinstance(estimator, str):
        return Fixed(None)
    if hasattr(estimator, "steps"):
        return Chain([as_step(*pair) for pair in estimator.steps], estimator)
    if hasattr(estimator, "transformer_list") or hasattr(estimator, "transformers"):
        # They take time to load.
        from sksketch.models.pipelines import side_by_side

        if hasattr(estimator, "transformers"):
            return side_by_side.ByColumns(estimator)
        return side_by_side.SideBySide(estimator)
    if isinstance(estimator, Settled | FrozenEstimator) or is_stateless(estimator):
        return Fixed(estimator)
    if hasattr(estimator, "partial_fit") and hasattr(estimator, "transform"):
        return Learning(estimator)
    if _is_fitted(estimator) and hasattr(estimator, "transform"):
        return Fixed(estimator)
    raise ValueError(
        f"the step {name!r} ({type(estimator).__name__}) learns from all rows at once, and they "
        "stream; use a step with partial_fit, such as StandardScaler or TableEncoder, or fit it "
        "to some rows before"
    )


def is_stateless(estimator: object) -> bool:
    """Return whether an estimator maps rows without having seen any."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    return hasattr(estimator, "transform") and tags is not None and not tags().requires_fit


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        return False
    return True
