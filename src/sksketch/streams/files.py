"""Paths to files: which ones a name stands for, their bytes, and how to tell them again."""

from __future__ import annotations

import errno
import glob
import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, NamedTuple
from zipfile import BadZipFile

from sksketch.exceptions import Option, SourceError

STDIN = "-"
TEXT_BYTES = 4 * 2**20
END_BYTES = 2**16
LONGEST_LINE = 256 * 2**20
INPUT_IS_READ = (
    "the standard input can be read only once, and it has been read; pipe it again, or give a file"
)

FORMATS = {
    ".npy": "npy",
    ".npz": "npz",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".vw": "vw",
    ".zarr": "zarr",
}
# The formats of text, which may be compressed and may come from the standard input.
TEXT_FORMATS = ("csv", "svmlight", "vw")

# What the libraries that parse files raise when the bytes are not what they expect.
_PARSER_ERRORS = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError),
    *(SyntaxError, SystemError, TypeError, ValueError, BadZipFile, TokenError, zlib.error),
)


class TextBlock(NamedTuple):
    """Whole lines of a text file, and the number of the first one, from 1."""

    first_line: int
    text: bytes
    file: Path | None = None


def find_files(path: Any) -> list[Path]:
    """Return the files that a path, directory, pattern or list of paths stands for.

    Those of directories and patterns are sorted by name, so that the order of rows is the
    same everywhere. Names that begin with a dot or underscore are not data.
    """
    if isinstance(path, list | tuple):
        return [file for part in path for file in find_files(part)]
    place = Path(path)
    if place.is_dir() and not is_zarr(place):
        found = sorted(p for p in place.rglob("*") if p.is_file() and not _is_hidden(p, place))
        if not found:
            raise SourceError(f"the directory {place} holds no data file; check the path")
        return found
    if place.exists():
        return [place]
    if glob.has_magic(str(place)):
        matches = [Path(name) for name in sorted(glob.glob(str(place), recursive=True))]
        found = [p for p in matches if p.is_file() or is_zarr(p)]
        if not found:
            raise SourceError(f"no file matches {str(place)!r}; check the pattern")
        return found
    raise FileNotFoundError(errno.ENOENT, "no such file or directory", str(place))


def _is_hidden(path: Path, root: Path) -> bool:
    return any(part[0] in "._" for part in path.relative_to(root).parts)


def is_zarr(path: Path) -> bool:
    """Return whether a directory is a Zarr array or group and not one of files."""
    marks = ("zarr.json", ".zgroup", ".zarray")
    return path.is_dir() and (
        path.suffix == ".zarr" or any((path / mark).exists() for mark in marks)
    )


def format_of(files: list[Path], wanted: str | None) -> str:
    """Return the one format of all files, from their names unless it is given."""
    if wanted is not None:
        if wanted not in FORMATS.values():
            known = ", ".join(sorted(set(FORMATS.values())))
            raise ValueError(f"format is {wanted!r}; give one of {known}")
        return wanted
    found: dict[str, Path] = {}
    for file in files:
        suffix = Path(file.stem).suffix if file.suffix == ".gz" else file.suffix
        kind = "zarr" if is_zarr(file) else FORMATS.get(suffix.lower())
        if kind is None or (file.suffix == ".gz" and kind not in TEXT_FORMATS):
            raise SourceError(
                "the name does not tell what it holds; pass ",
                Option("format", "csv"),
                " or another, or a pattern such as 'folder/*.csv'",
                place=str(file),
            )
        found.setdefault(kind, file)
    if len(found) > 1:
        (one, first), (other, second) = list(found.items())[:2]
        raise SourceError(
            f"{first} is {one} and {second} is {other}; give files of one kind, with a pattern "
            f"such as '*{first.suffix}'"
        )
    return next(iter(found))


def fingerprint(files: list[Path]) -> list[list[Any]]:
    """Return name, size, time of change and a digest of both ends of every file."""
    return [_facts(file) for file in files]


def input_fingerprint(first: TextBlock | None) -> dict[str, Any]:
    """Return what tells the standard input: a digest of its first block, or of all of a short one.

    The block does not depend on how a pipe delivers it.
    """
    text = b"" if first is None else first.text
    return {"kind": "standard input", "digest": hashlib.blake2b(text, digest_size=16).hexdigest()}


def _facts(path: Path) -> list[Any]:
    about = path.stat()
    if path.is_dir():
        return [path.name, 0, about.st_mtime_ns, ""]
    with path.open("rb") as file:
        ends = file.read(END_BYTES)
        file.seek(max(0, about.st_size - END_BYTES))
        ends += file.read(END_BYTES)
    found = hashlib.blake2b(ends, digest_size=16).hexdigest()
    return [path.name, about.st_size, about.st_mtime_ns, found]


@contextmanager
def blamed(where: object, complaint: str, advice: str) -> Iterator[None]:
    """Turn what a library says about damaged bytes into one sentence that names the place."""
    try:
        yield
    except SourceError:
        raise
    except _PARSER_ERRORS as error:
        # A seek to nowhere comes from a wrong offset in the file; other codes are the system's.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise SourceError(f"{complaint} ({reason}); {advice}", place=str(where)) from None


def text_blocks(file: Path | None, quotes: bool = False) -> Iterator[TextBlock]:
    """Yield a text file, gzip or not, in blocks of whole lines; None is the standard input.

    With ``quotes`` a line end between double quotes ends no line.
    """
    line, pending = 1, b""
    for buffer in _buffers(file):
        pending += buffer
        cut = _last_line_end(pending, quotes)
        if cut:
            yield TextBlock(line, pending[:cut], file)
            line += pending.count(b"\n", 0, cut)
            pending = pending[cut:]
        elif len(pending) > LONGEST_LINE:
            raise SourceError(
                f"{name_of(file)}, line {line}: the line does not end within "
                f"{LONGEST_LINE >> 20} MiB; check for a quote that is not closed"
            )
    if pending:
        yield TextBlock(line, pending, file)


def name_of(file: Path | None) -> str:
    """Return what messages call a file; None is the standard input."""
    return "standard input" if file is None else str(file)


def line_of_row(block: TextBlock, row: int, comment: bytes = b"\n") -> int:
    """Return the line of a row, past blank lines and what only a comment stands in."""
    for number, line in enumerate(block.text.split(b"\n")):
        if line.partition(comment)[0].strip():
            if not row:
                return block.first_line + number
            row -= 1
    return block.first_line


def _buffers(file: Path | None) -> Iterator[bytes]:
    try:
        with _open(file) as stream:
            while buffer := _read_full(stream):
                yield buffer
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError(
            f"{file}: the gzip data are cut short or damaged ({error}); fetch the file again"
        ) from None


def _read_full(stream: IO[bytes]) -> bytes:
    """Read as much as makes a block; a pipe gives less at a time."""
    parts, missing = [], TEXT_BYTES
    while missing > 0 and (part := stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _open(file: Path | None) -> Any:
    if file is None:
        # Not sys.stdin: its lock would be held by a thread that waits for input at the end.
        return os.fdopen(0, "rb", buffering=0, closefd=False)
    with file.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    if file.suffix == ".gz" and not zipped:
        raise SourceError(
            f"{file}: the name says gzip and the content does not; fetch it again, or rename it"
        )
    return gzip.open(file, "rb") if zipped else file.open("rb")


def _last_line_end(text: bytes, quotes: bool) -> int:
    """Return the position after the last line end, outside of quotes if they count."""
    cut = text.rfind(b"\n") + 1
    while quotes and cut and text.count(b'"', 0, cut) % 2:
        cut = text.rfind(b"\n", 0, text.rfind(b'"', 0, cut)) + 1
    return cut
