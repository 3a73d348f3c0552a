"""Answers that are computed at their first read."""

from __future__ import annotations

from typing import Any


class LazyAnswers:
    """Forgets what was read once a parameter changes.

    Fitted attributes are read from what was learned, with the parameters as they are. Without
    this, what they are after ``set_params`` would depend on whether somebody had looked before.
    """

    _answers: dict[str, Any]

    def __setattr__(self, name: str, value: Any) -> None:
        is_parameter = not (name.startswith("_") or name.endswith("_"))
        if is_parameter and "_answers" in self.__dict__:
            self.__dict__["_answers"] = {}
        super().__setattr__(name, value)
