"""Paths to files: which ones a name stands for, their bytes, and how to tell them again."""

from __future__ import annotations

import codecs
import errno
import glob
import hashlib
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, NamedTuple
from zipfile import BadZipFile

from sksketch.exceptions import Option, SourceError, StreamExhaustedError
from sksketch.streams.places.compression import DAMAGED, ENDINGS, HEAD_BYTES, packing_of, unpacked
from sksketch.streams.places.remote import File, RemoteFile, find_remote, is_url, local_path

STDIN = "-"
TEXT_BYTES = 4 * 2**20
END_BYTES = 2**16
LONGEST_LINE = 256 * 2**20
INPUT_IS_READ = (
    "the standard input can be read only once, and it has been read; pipe it again, or give a file"
)

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow",
    ".orc": "orc",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".vw": "vw",
    ".mtx": "mtx",
    ".npy": "npy",
    ".npz": "npz",
    ".zarr": "zarr",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".h5ad": "hdf5",
    ".nc": "netcdf",
    ".nc4": "netcdf",
}
# The formats of text, which may be compressed, and those that may come from the standard input.
TEXT_FORMATS = ("csv", "jsonl", "svmlight", "vw", "mtx")
INPUT_FORMATS = ("csv", "jsonl", "svmlight", "vw")
# What a Path has to be, to be mapped into memory or to be a folder of its own.
LOCAL_FORMATS = ("npy", "zarr")
# How to come from other well-known files to one of these.
CONVERSIONS = {
    ".xlsx": "pandas.read_excel(...).to_parquet(...)",
    ".xls": "pandas.read_excel(...).to_parquet(...)",
    ".dta": "pandas.read_stata(...).to_parquet(...)",
    ".sav": "pandas.read_spss(...).to_parquet(...)",
    ".sas7bdat": "pandas.read_sas(...).to_parquet(...)",
    ".mat": "scipy.io.loadmat and numpy.save",
    ".rds": "write_parquet of R's arrow",
    ".avro": "polars.read_avro(...).write_parquet(...)",
    ".db": "a query of DuckDB or SQLite into Parquet",
    ".sqlite": "a query of DuckDB or SQLite into Parquet",
    ".zip": "unzip",
}

# What the libraries that parse files raise when the bytes are not what they expect.
_PARSER_ERRORS = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError),
    *(SyntaxError, SystemError, TypeError, ValueError, BadZipFile, TokenError, zlib.error),
)


class TextBlock(NamedTuple):
    """Whole lines of a text file, and the number of the first one, from 1."""

    first_line: int
    text: bytes
    file: File | None = None


def find_files(path: Any) -> list[tuple[File, tuple[str, ...]]]:
    """Return the files that a path, URL, directory, pattern or list of those stands for.

    Those of directories and patterns are sorted by name, so that the order of rows is the
    same everywhere, and come with the folders that lie between. Names that begin with a dot or
    underscore are not data.
    """
    if isinstance(path, list | tuple):
        return [found for part in path for found in find_files(part)]
    if is_url(path):
        local = local_path(path)
        return [*find_remote(path)] if local is None else find_files(local)
    place = Path(path)
    if place.is_dir() and not is_zarr(place):
        found = sorted(p for p in place.rglob("*") if p.is_file() and not _is_hidden(p, place))
        if not found:
            raise SourceError(f"the directory {place} holds no data file; check the path")
        return [(file, file.relative_to(place).parts[:-1]) for file in found]
    if place.exists():
        return [(place, ())]
    if glob.has_magic(str(place)):
        matches = [Path(name) for name in sorted(glob.glob(str(place), recursive=True))]
        found = [p for p in matches if p.is_file() or is_zarr(p)]
        if not found:
            raise SourceError(f"no file matches {str(place)!r}; check the pattern")
        fixed = next(i for i, part in enumerate(place.parts) if glob.has_magic(part))
        return [(file, file.parts[fixed:-1]) for file in found]
    raise FileNotFoundError(errno.ENOENT, "no such file or directory", str(place))


def _is_hidden(path: Path, root: Path) -> bool:
    return any(part[0] in "._" for part in path.relative_to(root).parts)


def is_zarr(path: File) -> bool:
    """Return whether a directory is a Zarr array or group and not one of files."""
    marks = ("zarr.json", ".zgroup", ".zarray")
    return (
        isinstance(path, Path)
        and path.is_dir()
        and (path.suffix == ".zarr" or any((path / mark).exists() for mark in marks))
    )


def format_of(files: list[File], wanted: str | None) -> str:
    """Return the one format of all files, from their names unless it is given."""
    if wanted is not None:
        if wanted not in FORMATS.values():
            known = ", ".join(sorted(set(FORMATS.values())))
            raise ValueError(f"format is {wanted!r}; give one of {known}")
        return wanted
    found: dict[str, File] = {}
    for file in files:
        packed = file.suffix.lower() in ENDINGS
        suffix = (Path(file.stem).suffix if packed else file.suffix).lower()
        kind = "zarr" if is_zarr(file) else FORMATS.get(suffix)
        if kind is None or (packed and kind not in TEXT_FORMATS):
            raise _unsupported(file, suffix, packed and kind is not None)
        found.setdefault(kind, file)
    if len(found) > 1:
        (one, first), (other, second) = list(found.items())[:2]
        raise SourceError(
            f"{first} is {one} and {second} is {other}; give files of one kind, with a pattern "
            f"such as '*{first.suffix}'"
        )
    return next(iter(found))


def _unsupported(file: File, suffix: str, packed: bool) -> SourceError:
    """Return an error that lists the endings that are known, and how to come to one of them."""
    if packed:
        return SourceError(
            f"a {suffix} file is read from here and there, which {file.suffix} does not allow; "
            "unpack it",
            place=str(file),
        )
    advice = f" with {CONVERSIONS[suffix]}" if suffix in CONVERSIONS else ""
    return SourceError(
        f"unsupported ending {suffix!r}; supported: {' '.join(FORMATS)}, text also with "
        f"{' '.join(ENDINGS)}; convert it{advice}, or pass ",
        Option("format", "csv"),
        " or another if it is one of these",
        place=str(file),
    )


def fingerprint(files: Sequence[File]) -> list[list[Any]]:
    """Return name, size, time of change and a digest of both ends of every file."""
    return [_facts(file) for file in files]


def input_fingerprint(first: TextBlock | None) -> dict[str, Any]:
    """Return what tells the standard input: a digest of its first block, or of all of a short one.

    The block does not depend on how a pipe delivers it.
    """
    text = b"" if first is None else first.text
    return {"kind": "standard input", "digest": hashlib.blake2b(text, digest_size=16).hexdigest()}


def _facts(path: File) -> list[Any]:
    if isinstance(path, RemoteFile):
        return path.facts()
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
    except (SourceError, StreamExhaustedError):
        raise
    except _PARSER_ERRORS as error:
        # A seek to nowhere comes from a wrong offset in the file; other codes are the system's.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise SourceError(f"{complaint} ({reason}); {advice}", place=str(where)) from None


def text_blocks(
    file: File | None,
    quotes: bool = False,
    *,
    encoding: str | None = None,
    comment: str | None = None,
    skip: int = 0,
) -> Iterator[TextBlock]:
    """Yield a text file, compressed or not, in blocks of whole lines; None is the standard input.

    With ``quotes`` a line end between double quotes ends no line. The first ``skip`` lines are
    left out, and lines that begin with ``comment`` are empty. The text is UTF-8 whatever its
    ``encoding`` was.
    """
    line, pending = 1, b""
    mark = (
        None if comment is None else re.compile(rb"(?m)^%s[^\n]*\n" % re.escape(comment.encode()))
    )
    for buffer in _buffers(file) if encoding is None else _in_utf8(file, encoding):
        pending += buffer
        while line <= skip and (end := pending.find(b"\n") + 1):
            pending, line = pending[end:], line + 1
        if line <= skip:
            continue
        if mark is not None:
            pending = mark.sub(b"\n", pending)
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
    if comment is not None and pending.startswith(comment.encode()):
        pending = b""
    if pending and line > skip:
        yield TextBlock(line, pending, file)


def _in_utf8(file: File | None, encoding: str) -> Iterator[bytes]:
    """Yield the bytes of a file in another encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for buffer in _buffers(file):
            yield decoder.decode(buffer).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        reason = f"{error.reason}" if isinstance(error, UnicodeDecodeError) else str(error)
        raise SourceError(
            f"the text is not {encoding} ({reason}); pass another ",
            Option("encoding"),
            place=name_of(file),
        ) from None


def name_of(file: File | None) -> str:
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


def _buffers(file: File | None) -> Iterator[bytes]:
    packing = None if file is None else _packing(file)
    with _open(file) as raw:
        stream = raw if packing is None else unpacked(raw, packing)
        try:
            while buffer := _read_full(stream):
                yield buffer
        except (*DAMAGED, OSError) as error:
            if packing is None or (isinstance(error, OSError) and error.errno is not None):
                raise
            raise SourceError(
                f"{file}: the {packing} data are cut short or damaged ({error}); fetch the file "
                "again"
            ) from None
        finally:
            stream.close()


def _read_full(stream: IO[bytes]) -> bytes:
    """Read as much as makes a block; a pipe gives less at a time."""
    parts, missing = [], TEXT_BYTES
    while missing > 0 and (part := stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _open(file: File | None) -> Any:
    if file is None:
        # Not sys.stdin: its lock would be held by a thread that waits for input at the end.
        return os.fdopen(0, "rb", buffering=0, closefd=False)
    return file.open("rb")


def _packing(file: File) -> str | None:
    """Return how the bytes of a file are compressed, if they are; its name must agree."""
    with file.open("rb") as raw:
        packing = packing_of(raw.read(HEAD_BYTES))
    named = ENDINGS.get(file.suffix.lower())
    if named is not None and named != packing:
        raise SourceError(
            f"{file}: the name says {named} and the content does not; fetch it again, or rename it"
        )
    return packing


def _last_line_end(text: bytes, quotes: bool) -> int:
    """Return the position after the last line end, outside of quotes if they count."""
    cut = text.rfind(b"\n") + 1
    while quotes and cut and text.count(b'"', 0, cut) % 2:
        cut = text.rfind(b"\n", 0, text.rfind(b'"', 0, cut)) + 1
    return cut
