"""``(X, y)``: a table or matrix and its targets, as one source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from array_api_compat import is_array_api_obj

from sksketch._typing import Array
from sksketch.exceptions import SourceError
from sksketch.streams.source import RawBlock, Reader, digest


def is_pair(source: object) -> bool:
    """Return whether a tuple is ``(X, y)`` and not two blocks of rows.

    >>> is_pair((np.ones((3, 2)), np.ones(3))), is_pair((np.ones((3, 2)), np.ones((4, 2))))
    (True, False)
    """
    if not isinstance(source, tuple) or len(source) != 2 or hasattr(source, "_fields"):
        return False
    rows, targets = map(_shape, source)
    return len(rows) == 2 and (len(targets) == 1 or (len(targets) == 2 and targets[0] == rows[0]))


def _shape(part: Any) -> tuple[int, ...]:
    if hasattr(part, "shape"):
        return tuple(part.shape)
    try:
        return np.shape(part) if isinstance(part, list | tuple) else ()
    except ValueError:
        return ()


class PairReader:
    """The rows of another reader, with targets that lie beside them."""

    def __init__(self, rows: Reader, targets: Any) -> None:
        self._rows = rows
        self.reads_once = getattr(rows, "reads_once", False)
        series = nw.from_native(targets, allow_series=True, pass_through=True)
        names: list[str] | None = None
        if isinstance(series, nw.DataFrame):
            names, targets = list(series.columns), series.to_numpy()
        elif isinstance(series, nw.Series):
            name, targets = series.name, series.to_numpy()
            names = [str(name)] if name else None
        y = targets if is_array_api_obj(targets) else np.asarray(targets)
        self._y: Array = y
        if rows.n_rows is not None and rows.n_rows != y.shape[0]:
            raise SourceError(
                f"{rows.n_rows} rows came with {y.shape[0]} targets; give one target for each row"
            )
        self.n_features, self.feature_names = rows.n_features, rows.feature_names
        self.n_targets = 1 if y.ndim == 1 else int(y.shape[1])
        self.target_names, self.n_rows, self.ahead = names, rows.n_rows, rows.ahead

    def read(self, start_row: int) -> Iterator[RawBlock]:
        """Yield the rows after the first ``start_row`` with their targets."""
        first = start_row
        for raw in self._rows.read(start_row):
            stop = first + raw.X.shape[0]
            if stop > len(self._y):
                raise SourceError(f"there are more rows than the {len(self._y)} targets")
            yield RawBlock(raw.X, self._y[first:stop], raw.place, raw.sample_weight)
            first = stop

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells the rows, and a digest of the targets."""
        known: Any = self._y
        parts = [known] if isinstance(known, np.ndarray) else []
        return {**self._rows.fingerprint(), "target_digest": digest(*parts)}
