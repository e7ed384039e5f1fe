"""Reads files that options name, so that a wrong path, set by the operator or a client, can't stop the node."""

from __future__ import annotations

import errno
import os
import stat


def read_named_file(path: str, max_bytes: int) -> bytes:
    """Returns the content of a file. Raises OSError for a pipe or a device, which may never end, and for a file that is
    larger than `max_bytes`.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # opening a pipe doesn't wait for a writer
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if status.st_size > max_bytes:
            raise OSError(errno.EFBIG, f"it is larger than {max_bytes} bytes")
        return os.read(handle, max_bytes)
    finally:
        os.close(handle)
