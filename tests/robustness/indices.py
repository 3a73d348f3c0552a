"""Sparse matrices whose indices lead out of them, in memory and in files, through every door."""

from __future__ import annotations

import copy
import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import sksketch
from _support.hostile import WIDTH
from robustness import abuse

FORMATS = ("csr", "csc", "bsr", "coo", "dia")
N_ROWS = 12


def parts_of(rng: np.random.Generator, form: str) -> dict[str, Any]:
    """Return the arrays that scipy would save of a sparse matrix."""
    dense = rng.standard_normal((N_ROWS, WIDTH)) * (rng.random((N_ROWS, WIDTH)) < 0.4)
    # So that indices one too large lead out of the rows, and of the columns.
    dense[[0, -1]] = 1.0
    X = sp.coo_array(dense).asformat(form)
    names = {"coo": ("row", "col", "data"), "dia": ("data", "offsets")}
    chosen = names.get(form, ("data", "indices", "indptr"))
    return {name: np.array(getattr(X, name)) for name in chosen} | {"shape": np.array(X.shape)}


def broken(rng: np.random.Generator, form: str) -> dict[str, Any]:
    """Return them with one array that lies."""
    parts = parts_of(rng, form)
    index = {"coo": ("row", "col"), "dia": ("offsets",)}.get(form, ("indices", "indptr"))
    name = str(rng.choice(index))
    far = int(rng.choice([1, 7, 10**4, 10**8, 2**31 - 1]))
    array = parts[name].astype(np.int64)
    how = int(rng.integers(4))
    if how == 0:
        array = array + far
    elif how == 1:
        array[rng.integers(len(array))] = far + max(N_ROWS, array.max())
    elif how == 2:
        array[rng.integers(len(array))] = -far
    else:
        array = array[rng.permutation(len(array))] * max(far, 7)
    parts[name] = array.astype(np.int32) if rng.random() < 0.7 else array
    return parts


def written(folder: str, form: str, parts: dict[str, Any], named: bool) -> Path:
    """Write them as scipy does, or as the plain arrays of a CSR matrix."""
    path = Path(folder, "bad.npz")
    more = {"format": np.array(form.encode()), "_is_array": np.array(True)} if named else {}
    np.savez(path, **parts, **more)
    return path


def assembled(form: str, parts: dict[str, Any]) -> Any:
    """Put them together behind the back of scipy's checks."""
    X = sp.coo_array(np.ones((N_ROWS, WIDTH))).asformat(form)
    for name, part in parts.items():
        if form == "coo" and name in ("row", "col"):
            continue
        if name != "shape":
            setattr(X, name, part)
    if form == "coo":
        X.coords = (parts["row"], parts["col"])
    return X


def from_file(form: str, seed: int, named: bool) -> str:
    """Open a file of them, choose columns and a target, and read all."""
    rng = np.random.default_rng(seed)
    options: dict[str, Any] = [{}, {"columns": [0, 2]}, {"target": 1}, {"columns": 1}][seed % 4]
    parts = broken(rng, form)
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, form, parts, named)
        try:
            source = sksketch.open_rows(path, **options)
            blocks = [block.X for block in source.blocks()]
        except ValueError as error:
            # What scipy or numpy say of it, in a sentence that names the file.
            return "refused" if "bad.npz" in str(error) else f"!unclear: {error}"
    return _whole(blocks, source.n_features)


def streamed(name: str, form: str, seed: int) -> str:
    """Give them to `fit_stream`, whole or as blocks."""
    rng = np.random.default_rng(seed)
    X = assembled(form, broken(rng, form))
    make, second = abuse.ESTIMATORS[name]
    given = [X] if seed % 2 else X
    try:
        if second:
            y = np.arange(N_ROWS) % 2
            sksketch.fit_stream(make(), [(X, y)] if seed % 2 else (X, y), progress=False)
        else:
            sksketch.fit_stream(make(), given, progress=False)
    except (ValueError, TypeError) as error:
        return "refused" if abuse.clear(error) else f"!unclear: {error!r}"
    return "read" if form == "dia" else "!taken"


def updated(name: str, form: str, seed: int) -> str:
    """Give them to every method that takes rows."""
    rng = np.random.default_rng(seed)
    model, X = copy.deepcopy(abuse.fitted(name)), assembled(form, broken(rng, form))
    methods = ["update"]
    if name in abuse.ESTIMATORS:
        methods = [m for m in (*abuse.LEARNS, *abuse.READS) if hasattr(model, m)]
    method = methods[seed % len(methods)]
    try:
        abuse.act(model, name, method, X)
    except (ValueError, TypeError) as error:
        return "refused" if abuse.clear(error) else f"!unclear: {error!r}"
    return "read" if form == "dia" else "!taken"


def _whole(blocks: list[Any], width: int) -> str:
    for X in blocks:
        if X.shape[1] != width:
            return f"!{X.shape[1]} columns, promised {width}"
        if sp.issparse(X):
            X.check_format(full_check=True)
            X.toarray()
    return "read"


STREAMED = [
    name
    for name, (_, second) in abuse.ESTIMATORS.items()
    if second != "Y" and hasattr(abuse.fitted(name), "partial_fit") and "Random" not in name
]


def every() -> Iterator[tuple[str, Any]]:
    """Give every door, with every format."""
    for form in FORMATS:
        yield f"file {form}", functools.partial(from_file, form, named=True)
        for name in STREAMED:
            yield f"stream {name} {form}", functools.partial(streamed, name, form)
        for name in (*abuse.SKETCHES, *abuse.ESTIMATORS):
            yield f"array {name} {form}", functools.partial(updated, name, form)
    yield "file plain", functools.partial(from_file, "csr", named=False)


def trials(n_files: str, n_others: str):
    """Give so many files of each format, and so many matrices at each other door."""
    for name, attempt in every():
        for seed in range(int(n_files if name.startswith("file") else n_others)):
            yield f"{name} seed {seed}", functools.partial(attempt, seed=seed)
