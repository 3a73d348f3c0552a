"""Base of the sketches that shrink: their options, read-outs and saved facts."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from sksketch._typing import Array, Matrix
from sksketch.sketches.base import Answer, Sketch
from sksketch.sketches.directions.shrink.compression import ShrinkState
from sksketch.sketches.directions.shrink.readout import read_out


class ShrinkSketch(Sketch):
    """A sketch whose rows, once the waiting ones are shrunk, are one `ShrinkState`.

    A subclass lists its options, takes rows in and says what all of them amount to (`_whole`).
    """

    _OPTIONS: ClassVar[tuple[str, ...]]

    correction: str | float = "none"
    initial_ridge: float
    _cached: tuple[ShrinkState, Answer] | None
    _held: ShrinkState

    def fresh(self) -> Self:
        """Return an empty sketch with the same options.

        Returns
        -------
        Sketch
            An empty sketch of the same class.
        """
        return type(self)(**{name: getattr(self, name) for name in self._OPTIONS})

    def for_shard(self, index: int, n_shards: int) -> Self:
        """Return an empty sketch for one of many parts, whose failure probabilities will add up.

        Parameters
        ----------
        index : int
            Number of the part, from 0 on.
        n_shards : int
            Number of all parts.

        Returns
        -------
        Sketch
            An empty sketch for that part.
        """
        options = {name: getattr(self, name) for name in self._OPTIONS}
        if "failure_probability" in options:
            options["failure_probability"] /= n_shards
        return type(self)(**options)

    @abstractmethod
    def _whole(self, extra: Matrix | None = None, allowance: float = 0.0) -> ShrinkState:
        """Return the whole state, the waiting rows and ``extra`` included."""

    def _read(
        self, extra: Matrix | None = None, allowance: float = 0.0
    ) -> tuple[ShrinkState, Answer]:
        """Return that state and the answer it gives; changes nothing."""
        self._require_rows()
        if extra is None and self._cached is not None:
            return self._cached
        held = self._whole(extra, allowance)
        held = held.beside(held.eigenvalues)
        answer = read_out(
            held,
            correction=self.correction,
            initial_ridge=self.initial_ridge,
            n_rows_seen=self.n_rows_seen + (0 if extra is None else len(extra)),
        )
        if extra is None:
            self._cached = held, answer
        return held, answer

    def _answer(self, extra: Matrix | None = None, allowance: float = 0.0) -> Answer:
        return self._read(extra, allowance)[1]

    @property
    def matrix(self) -> Array:
        """B: at most `sketch_size` orthogonal rows, heaviest first."""
        return self._read()[0].matrix

    @property
    def n_shrinks(self) -> int:
        """Shrinks so far, not counting the one that a read-out may add on its own copy."""
        return self._held.ledger.n_shrinks

    @property
    def shrinkage(self) -> float:
        """Certified bound on what any direction of A'A lost; the sum of all cuts if exact."""
        return 0.0 if self.n_features is None else self._read()[0].ledger.shrinkage

    def _facts(self) -> dict[str, Any]:
        """Return options and counters, for a saved state."""
        facts = {f"option.{name}": getattr(self, name) for name in self._OPTIONS}
        facts |= {"n_rows_seen": self.n_rows_seen, "total_weight": self.total_weight}
        facts |= {"n_features": self.n_features, "entry_error": self._entry_error}
        return facts | {"dtype": None if self.dtype is None else str(self.dtype)}

    @classmethod
    def _from_facts(cls, meta: Any) -> Self:
        """Build a sketch with those facts; what it remembers is left to do."""
        sketch = cls(**{name: meta[f"option.{name}"] for name in cls._OPTIONS})
        if meta["n_features"] is not None:
            sketch._begin(meta["n_features"], np.dtype(meta["dtype"]))
        sketch.n_rows_seen = meta["n_rows_seen"]
        sketch.total_weight = meta["total_weight"]
        sketch._round(meta.get("entry_error", 0.0))
        return sketch
