"""What each kernel computes, in plain numpy: the reference of the compiled ones.

Rows in compressed form are the ``indptr``, ``indices`` and ``data`` of a CSR array without
duplicates. ``indptr`` may be a stretch of the whole, so that no rows need be copied.
"""

from __future__ import annotations

import re

import numpy as np
import scipy.sparse as sp

from sksketch._typing import Array


def normal_csr_inplace(
    image: Array,
    pull: Array,
    W: Array,
    indptr: Array,
    indices: Array,
    data: Array,
    scale: Array,
    offset: Array,
) -> None:
    """Add X'T to ``image`` and scale'T to ``pull``, where T = X W - scale offset'.

    With ``offset`` = W'c this is what a product of (X - scale c')' (X - scale c') with W needs;
    only ``image - c pull'`` is left to do. An empty ``scale`` stands for zeros.
    """
    X = sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, len(W)))
    T = X @ W
    if len(scale):
        T -= np.outer(scale, offset)
        pull += scale @ T
    image += X.T @ T


def outer_csr_inplace(
    total: Array, columns: Array, indptr: Array, indices: Array, data: Array
) -> None:
    """Add the sum over t of ``outer(row t, columns[t])`` to ``total``, row after row.

    ``total`` has shape (n_features, size) and ``columns`` (n_rows, size).
    """
    for t in range(len(columns)):
        row = slice(indptr[t], indptr[t + 1])
        total[indices[row]] += data[row][:, None] * columns[t]


def parse_svmlight_inplace(
    progress: Array, labels: Array, indptr: Array, indices: Array, data: Array, text: Array
) -> None:
    """Read lines ``label index:value index:value ... # comment`` into labels and CSR arrays.

    ``text`` holds whole lines as bytes. ``progress`` has a code, the position in the text, and
    the rows, entries and lines that are complete; a second call goes on from there. Code 0: all
    was read. Codes 2 to 6 say what is wrong with what begins at the position: 2 the label, 3 no
    colon, 4 the index, 5 the value, 6 an index not above the one before. (Code 1, which only the
    compiled kernel gives: the number there needs more care; put it into its place and call
    again.) Entries named ``qid`` are skipped.
    """
    raw = text.tobytes()
    while progress[1] < len(raw):
        stop = raw.find(b"\n", progress[1]) + 1 or len(raw)
        line = raw[progress[1] : stop].partition(b"#")[0]
        start, entries, last = int(progress[1]), int(progress[3]), -1
        for order, word in enumerate(re.finditer(rb"[^ \t\r\n\f\v]+", line)):
            name, colon, number = word[0].partition(b":")
            if order == 0:
                code, labels[progress[2]] = _number(word[0], 2)
            elif name == b"qid" and colon:
                continue
            elif not colon:
                code = 3
            elif not re.fullmatch(rb"[0-9]+", name) or int(name) >= 2**31:
                code = 4
            elif int(name) <= last:
                code = 6
            else:
                last = indices[entries] = int(name)
                code, data[entries] = _number(number, 5)
                entries += 1
            if code:
                progress[0], progress[1] = code, start + word.start()
                return
        progress[4] += 1
        progress[1] = stop
        if line.strip():
            progress[2] += 1
            indptr[progress[2]] = progress[3] = entries


def _number(word: bytes, complaint: int) -> tuple[int, float]:
    """Return 0 and the number that a word is, or the complaint."""
    try:
        return (complaint, 0.0) if b"_" in word else (0, float(word))
    except ValueError:
        return complaint, 0.0


def scatter_csr_inplace(
    total: Array, positions: Array, signs: Array, indptr: Array, indices: Array, data: Array
) -> None:
    """Add ``signs[t]`` times row t to the row ``positions[t]`` of ``total``, row after row."""
    for t in range(len(positions)):
        row = slice(indptr[t], indptr[t + 1])
        total[positions[t], indices[row]] += signs[t] * data[row]


def scatter_rows_inplace(total: Array, positions: Array, signs: Array, rows: Array) -> None:
    """Add ``signs[t] * rows[t]`` to the row ``positions[t]`` of ``total``, row after row."""
    for t in range(len(positions)):
        total[positions[t]] += signs[t] * rows[t]


def walsh_hadamard_inplace(rows: Array) -> None:
    """Replace rows, a power of two of them, by H rows.

    H has the entries ``(-1) ** popcount(i & j)``; it is not normalised.
    """
    n_rows, n_features = rows.shape
    half = 1
    while half < n_rows:
        pairs = rows.reshape(-1, 2, half, n_features)
        sums = pairs[:, 0] + pairs[:, 1]
        pairs[:, 1] = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] = sums
        half *= 2
