"""Files as the system sees them: locks, and writes that have reached the disk."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

if sys.platform != "win32":
    import fcntl


def lock(descriptor: int) -> bool:
    """Take a file until its descriptor is closed; False if another process has it.

    The system gives it back when the process ends, however it ends.
    """
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # Also where the file system has no locks: nothing is swept there.
        return False
    return True


def sync(path: Path) -> None:
    """Wait until a file is on disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
