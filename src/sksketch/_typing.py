"""Names for the types that signatures share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Array: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
# Rows whose own methods are used: dense, or compressed. An array on a device has those, too.
Matrix: TypeAlias = Array | sp.csr_array
#: Seeds as scikit-learn takes them.
Seed: TypeAlias = int | np.random.RandomState | None
PathLike: TypeAlias = str | os.PathLike[str]


class Rows(Protocol):
    """Rows as the package passes them on: numpy, CSR of scipy, or an array on a device."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    @property
    def dtype(self) -> Any:
        """Type of the entries, as their library has it."""

    @property
    def ndim(self) -> int:
        """Two for rows, one for targets."""

    @property
    def T(self) -> Any:
        """Columns as rows."""

    def __getitem__(self, key: Any, /) -> Any: ...

    def __matmul__(self, other: Any, /) -> Any: ...


#: What users may pass as rows, targets or weights.
RowsLike: TypeAlias = Rows | npt.ArrayLike
#: One row for an online learner: names with numbers, or numbers in the order of columns.
OneRow: TypeAlias = Mapping[Any, Any] | npt.ArrayLike
