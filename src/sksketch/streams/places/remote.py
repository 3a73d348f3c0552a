"""Files behind a URL, read through fsspec: streamed or by range, never fetched as a whole."""

from __future__ import annotations

import errno
import re
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from sksketch.exceptions import SourceError

_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.:-]+://")
# What file systems know about the version of a file.
_VERSIONS = ("ETag", "etag", "checksum", "md5Hash", "md5", "mtime", "LastModified", "updated")


class RemoteFile:
    """A file of a remote file system, with what readers use of a path."""

    def __init__(self, system: Any, path: str) -> None:
        self._system, self._path = system, path
        pure = PurePosixPath(urlsplit(path).path if _URL.match(path) else path)
        self.name, self.stem = pure.name, pure.stem
        self.suffix, self.suffixes = pure.suffix, pure.suffixes

    def open(self, mode: str = "rb") -> Any:
        """Open the bytes, to be read from the first to the last."""
        return self._system.open(self._path, mode)

    def open_ranges(self) -> Any:
        """Open the bytes, to be read here and there: what is asked for and nothing around it."""
        return self._system.open(self._path, "rb", cache_type="none")

    def facts(self) -> list[Any]:
        """Return what tells this version of the file: name, size, and its tag or time."""
        about = self._system.info(self._path)
        known = {name: str(about[name]) for name in _VERSIONS if about.get(name) is not None}
        known = known or {"created": str(about.get("created"))}
        return [str(self), about.get("size"), *known.values()]

    def __str__(self) -> str:
        return str(self._system.unstrip_protocol(self._path))


File = Path | RemoteFile


def is_url(path: object) -> bool:
    """Return whether this is a URL and not a path; a letter alone is a drive.

    >>> is_url("s3://bucket/rows.parquet"), is_url("C://rows.csv"), is_url("rows.csv")
    (True, False, False)
    """
    return isinstance(path, str) and bool(_URL.match(path))


def local_path(url: str) -> Path | None:
    """Return the path of a file on this machine, or None for any other URL."""
    parts = urlsplit(url)
    if parts.scheme not in ("file", "local"):
        return None
    path = unquote(parts.path)
    # A drive comes after a slash that is none of the path.
    return Path(path[1:] if re.match(r"/[A-Za-z]:", path) else path)


def find_remote(url: str) -> list[tuple[RemoteFile, tuple[str, ...]]]:
    """Return the files that a URL, directory or pattern stands for, and the folders inside it."""
    system, path = _open_system(url)
    if "*" in path or "?" in path.rpartition("/")[2]:
        found = sorted(name for name in system.glob(path) if not system.isdir(name))
        fixed = len(PurePosixPath(re.split(r"[*?\[]", path)[0].rpartition("/")[0]).parts)
        if not found and not system.exists(path):
            raise SourceError(f"no file matches {url!r}; check the pattern")
        if found:
            return [(RemoteFile(system, n), PurePosixPath(n).parts[fixed:-1]) for n in found]
    if _is_directory(system, path):
        root = len(PurePosixPath(path).parts)
        inner = [(name, PurePosixPath(name).parts[root:]) for name in sorted(system.find(path))]
        kept = [(n, parts) for n, parts in inner if not any(p[0] in "._" for p in parts)]
        if not kept:
            raise SourceError(f"the directory {url} holds no data file; check the path")
        return [(RemoteFile(system, name), parts[:-1]) for name, parts in kept]
    if not system.exists(path):
        raise FileNotFoundError(errno.ENOENT, "no such file or directory", url)
    return [(RemoteFile(system, path), ())]


def _is_directory(system: Any, path: str) -> bool:
    # A page of the web may list links, and is no directory for that.
    http = "http" in (system.protocol if isinstance(system.protocol, tuple) else [system.protocol])
    return not (http and PurePosixPath(path).suffix) and bool(system.isdir(path))


def _open_system(url: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise ImportError(f'{url} needs fsspec: pip install "scikit-sketch[remote]"') from None
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ValueError as error:
        raise SourceError(f"{url}: {error}; check the beginning of the URL") from None
    return system, str(path)
