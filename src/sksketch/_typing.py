"""Names for the types that signatures share."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Array: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
# Rows of numbers, dense or compressed. An array on a device has what is used of them.
Matrix: TypeAlias = Array | sp.csr_array
PathLike: TypeAlias = str | os.PathLike[str]
