"""One broker per log directory: the .lock file, held for the life of the process.

A POSIX record lock on the same file as Apache Kafka's (FileLock), so that either keeps the other out.
"""

from __future__ import annotations

import fcntl
import os

LOCK_FILE = ".lock"


class DirectoryInUse(Exception):
    """Another process has the directory; the text names it."""


class DirectoryLock:
    """Held from the constructor to `release`; the kernel lets go when the process dies, however it dies."""

    def __init__(self, directory: str) -> None:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self.path = os.path.join(directory, LOCK_FILE)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            message = (
                f"{directory} is in use: another broker holds {self.path}; stop it, or give --data another directory"
            )
            raise DirectoryInUse(message) from None

    def release(self) -> None:
        os.close(self._descriptor)
