"""The one way in which files are written: whole and on disk, or not at all."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

# Its arrays are those of numpy and scipy, which the help of a command does without.
if TYPE_CHECKING:
    from sksketch._typing import PathLike

if sys.platform != "win32":
    import fcntl

# What a disk says that takes no more; it knows no names.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a file to write that takes the place of ``path`` once it is whole and on disk.

    Until then it has a name of its own beside the target and is locked, so that several
    processes may write one path; what a writer that was killed has left is removed. A file that
    is written again keeps its rights. Into a character device or a pipe the bytes are copied at
    the end; what else is not a regular file is refused.
    """
    try:
        yield from _opened(path)
    except OSError as error:
        if error.errno in _FULL and error.filename is None:
            error.filename = os.fspath(path)
        raise


def _opened(path: PathLike) -> Generator[IO[bytes], None, None]:
    former = _status(path)
    if former is not None and not stat.S_ISREG(former.st_mode):
        yield from _copied_into(path, former.st_mode)
        return
    # The file that a link points to is replaced, not the link.
    target = Path(os.path.realpath(path))
    sweep(target)
    temporary, descriptor = _create(target, 0o666 if former is None else 0o600)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            if former is not None:
                _give_rights(temporary, former)
            os.fsync(descriptor)
            if sys.platform == "win32":
                # Open files have no other name there, and locks are not used.
                file.close()
            os.replace(temporary, target)
        sync_directory(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sweep(path: PathLike) -> None:
    """Remove what writers of ``path`` that were killed have left beside it."""
    target = Path(os.path.realpath(path))
    for left in target.parent.glob(f".{glob.escape(target.name)}.{'[0-9a-f]' * 8}.tmp"):
        try:
            descriptor = os.open(left, os.O_RDWR)
        except OSError:
            # Another writer has renamed or removed it, or it is another user's.
            continue
        try:
            if lock(descriptor):
                left.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def lock(descriptor: int, wait: bool = False, shared: bool = False) -> bool:
    """Take a file until its descriptor is closed; False if another process has it.

    What is shared, any number of processes have. The system gives a file back when the process
    ends, however it ends.
    """
    if sys.platform == "win32":
        return False
    try:
        mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, mode | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        # Also where the file system has no locks: nothing is swept there.
        return False
    return True


def sync_directory(path: Path) -> None:
    """Wait until a renaming is on disk, where the system knows how."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot; the file itself is complete by now.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def is_special(path: PathLike) -> bool:
    """Return whether a path is a device, pipe or socket and no file or directory."""
    former = _status(path)
    return former is not None and not (stat.S_ISREG(former.st_mode) or stat.S_ISDIR(former.st_mode))


def is_same(path: PathLike, other: PathLike) -> bool:
    """Return whether two names stand for one file, whether it is there or not."""
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


def _status(path: PathLike) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _create(target: Path, rights: int) -> tuple[Path, int]:
    """Return a new file beside the target, locked."""
    while True:
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
        descriptor = os.open(temporary, flags, rights)
        # Waits for another writer that has taken it for one that was left, and then sweeps it.
        lock(descriptor, wait=True)
        if temporary.exists():
            return temporary, descriptor
        os.close(descriptor)


def _give_rights(path: Path, former: os.stat_result) -> None:
    """Give a file the rights of the one before it, and its owner where that is allowed."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(path, former.st_uid, former.st_gid)
    os.chmod(path, former.st_mode & 0o777)


def _copied_into(path: PathLike, mode: int) -> Generator[IO[bytes], None, None]:
    """Yield a file whose bytes go into what stands under a name and is no file."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "this is a directory; name a file", os.fspath(path))
    if not (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
        raise OSError(errno.EINVAL, "neither a file nor a pipe; give another name", os.fspath(path))
    with tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        try:
            with open(path, "wb") as device:
                shutil.copyfileobj(file, device)
        except BrokenPipeError:
            raise OSError(
                errno.EIO, "whoever read it has stopped before the end", os.fspath(path)
            ) from None
