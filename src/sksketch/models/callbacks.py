"""scikit-learn's callbacks, loaded when some are set: they bring a progress bar's library along."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self


class CallbackSupport:
    """Lets an estimator take callbacks where scikit-learn has them, from 1.9 on."""

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set the callbacks that hear of every fit, and of every block of `fit_stream`.

        Parameters
        ----------
        *callbacks : callbacks of scikit-learn
            Such as ``sklearn.callback.ProgressBar()``; none removes those that were set.

        Returns
        -------
        self
        """
        _mixin().set_callbacks(self, *callbacks)
        return self

    def _init_callback_context(self, *args: Any, **options: Any) -> Any:
        return _mixin()._init_callback_context(self, *args, **options)


def _mixin() -> Any:
    try:
        from sklearn.callback import CallbackSupportMixin
    except ImportError:
        raise ImportError(
            "callbacks need scikit-learn 1.9 or newer: pip install -U scikit-learn"
        ) from None
    return CallbackSupportMixin


class Callbacks:
    """The callbacks set on an estimator with ``set_callbacks``, told of every block.

    The run is a task and each block a task in it. An estimator of a scikit-learn without
    callbacks, or with none set, costs nothing.
    """

    def __init__(self, estimator: Any) -> None:
        able = hasattr(estimator, "_init_callback_context")
        self._estimator = estimator if able and getattr(estimator, "_skl_callbacks", None) else None
        self._task: Any = None

    @contextmanager
    def running(self, task: str, n_blocks: int | None = 0) -> Iterator[None]:
        """Tell the callbacks of the beginning and of the end of a run of so many blocks."""
        estimator = self._estimator
        if estimator is None:
            yield
            return
        try:
            self._task = estimator._init_callback_context(task, max_subtasks=n_blocks)
            self._task.call_on_fit_task_begin(estimator=estimator)
            yield
            self._task.call_on_fit_task_end(estimator=estimator)
        finally:
            for callback in estimator.__dict__.pop("_skl_callbacks_to_teardown", []):
                callback.teardown(estimator=estimator, context=self._task)
            estimator.__dict__.pop("_callback_fit_ctx", None)

    def block(self, X: Any, y: Any) -> None:
        """Tell the callbacks that a block was learned from."""
        if self._estimator is not None:
            task = self._task.subcontext(task_name="block")
            task.call_on_fit_task_begin(estimator=self._estimator, X=X, y=y)
            task.call_on_fit_task_end(estimator=self._estimator, X=X, y=y)
