"""AnnData objects, in memory and backed by a file."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array
from sksketch.exceptions import SourceError
from sksketch.streams.columns import Choice
from sksketch.streams.formats.matrices.hdf5 import rows_of
from sksketch.streams.formats.matrices.matrix import Cuttable, DenseRows, MatrixReader, MemoryRows


def is_annotated(source: object) -> bool:
    """Return whether an object is an AnnData, without loading the library."""
    return any(base.__name__ == "AnnData" for base in type(source).__mro__)


def annotated_reader(source: Any, choice: Choice, key: str | None) -> MatrixReader:
    """Return the rows of ``X``, or of what ``key`` names, such as ``layers/counts``."""
    where = "the AnnData" if key is None else f"the AnnData, {key}"
    rows = _rows(_member(source, key), where)
    inner = (key or "X").partition("/")[0]
    names = [str(name) for name in source.var_names] if inner in ("X", "layers") else None

    def annotation(name: str) -> Array:
        if name not in source.obs:
            raise SourceError(f"the AnnData has no target {name!r}; give an annotation in obs")
        values = source.obs[name]
        numbers = values.to_numpy()
        if numbers.dtype.kind in "biuf":
            return np.asarray(numbers)
        missing = values.isna().to_numpy()
        pairs = zip(values, missing, strict=True)
        return np.array([None if hole else str(value) for value, hole in pairs], dtype=object)

    # A backed view has rows of its own, so its file identifies only the whole.
    backed = getattr(source, "filename", None) if not source.is_view and key is None else None
    return MatrixReader(
        rows,
        choice,
        where,
        opened=lambda: nullcontext(rows),
        kind="anndata",
        names=names,
        annotation=annotation,
        file=None if backed is None or target_is_array(choice) else Path(backed),
    )


def target_is_array(choice: Choice) -> bool:
    """Return whether the targets came as an array, which no file has."""
    return choice.target is not None and bool(np.ndim(choice.target))


def _member(source: Any, key: str | None) -> Any:
    if key in (None, "X"):
        return source.X
    place, _, name = str(key).partition("/")
    members = getattr(source, place, None)
    if place == "raw" and members is not None:
        return members.X
    if place not in ("layers", "obsm", "varm") or members is None or name not in members:
        some = ", ".join(["X", *(f"layers/{k}" for k in source.layers)])
        raise SourceError(f"the AnnData has no {key!r}; it has {some}")
    return members[name]


def _rows(X: Any, where: str) -> Cuttable:
    if X is None:
        raise SourceError(f"{where} has no X; name another matrix with key")
    if sp.issparse(X):
        return MemoryRows(X)
    if hasattr(X, "group"):
        # A sparse matrix that stayed in its file.
        return rows_of(X.group, where)
    if type(X).__module__.partition(".")[0] == "h5py":
        return rows_of(X, where)
    return DenseRows(X if hasattr(X, "dtype") else np.asarray(X), where)
