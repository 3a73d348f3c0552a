"""Sketches as plain data: the state they are saved as, and the guard of interrupted ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from sksketch._typing import PathLike
from sksketch.exceptions import StateFormatError
from sksketch.state.guard import Guarded
from sksketch.state.persistence import State, write_state


class Savable(Guarded, ABC):
    """The part of a sketch that is saved and read back."""

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    _interrupted: bool = False

    def _require_whole(self) -> None:
        """Refuse to continue from an update or merge that was interrupted."""
        if self._interrupted:
            raise RuntimeError(
                f"an update of this {type(self).__name__} was interrupted and left part of a block "
                "in it; load the last saved one or build it again"
            )

    @abstractmethod
    def state(self) -> State:
        """Return all that the sketch is, as plain data.

        Returns
        -------
        State
            Plain values and arrays, as `save` writes them.
        """

    @classmethod
    @abstractmethod
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

    @classmethod
    def _check_kind(cls, state: State) -> None:
        if state.kind != cls.kind:
            raise StateFormatError(
                f"got the state of a {state.kind!r}, expected {cls.kind!r}; "
                "use sksketch.load to read a file of any kind"
            )
        state.require(cls.version)

    def save(self, path: PathLike) -> None:
        """Write the sketch to one file, atomically; `sksketch.load` reads it back.

        Parameters
        ----------
        path : str or path
            Name of the file, usually with the ending ``.sks``.
        """
        self._require_whole()
        write_state(self.state(), path)
