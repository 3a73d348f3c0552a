"""scikit-learn's callbacks, loaded when some are set: they bring a progress bar's library along."""

from __future__ import annotations

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
