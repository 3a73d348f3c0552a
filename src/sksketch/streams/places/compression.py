"""Compressed text: known by its first bytes and the ending of its name, unpacked while reading."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from typing import Any

ENDINGS = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd", ".xz": "xz"}
# A header line might begin with the first letters of bzip2, and not with all of these.
_MAGIC = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "bzip2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
}
HEAD_BYTES = 10

# What the libraries raise for data that are damaged or cut short.
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


def packing_of(head: bytes) -> str | None:
    """Return how data that begin so are compressed, or None if they are not.

    >>> packing_of(gzip.compress(b"a,b")), packing_of(b"BZh,other,names")
    ('gzip', None)
    """
    return next((kind for kind, magic in _MAGIC.items() if magic.match(head)), None)


def unpacked(stream: Any, kind: str) -> Any:
    """Return a stream of the bytes that a compressed one holds."""
    if kind == "gzip":
        return gzip.GzipFile(fileobj=stream)
    if kind == "bzip2":
        return bz2.BZ2File(stream)
    if kind == "xz":
        return lzma.LZMAFile(stream)
    try:
        import pyarrow
    except ImportError:
        raise ImportError('.zst files need pyarrow: pip install "scikit-sketch[io]"') from None
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(stream, mode="r"), "zstd")
