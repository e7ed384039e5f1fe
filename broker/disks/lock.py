"""Lets only one broker use a log directory: a lock on its .lock file, held until the process ends.

It is a POSIX record lock on the same file as Apache Kafka's (FileLock), so that each excludes the other.
"""

from __future__ import annotations

import contextlib
import fcntl
import os

LOCK_FILE = ".lock"


class DirectoryInUse(Exception):
    """Another process uses the directory, which the message names."""


class DirectoryLock:
    """Held from the constructor to `release`; the kernel releases it when the process ends for any reason."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._made = _missing(directory)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self.path = os.path.join(directory, LOCK_FILE)
        self._is_new = not os.path.exists(self.path)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(self.path).st_ino != os.fstat(self._descriptor).st_ino:
                raise FileNotFoundError(self.path)  # another process has released the lock and removed the file
        except OSError:
            os.close(self._descriptor)
            message = (
                f"{directory} is in use: another broker holds {self.path}; stop that broker, or use another "
                "directory for --data"
            )
            raise DirectoryInUse(message) from None

    def release(self) -> None:
        """Releases the lock. If the directory is otherwise empty, removes the file and the directories that the lock
        created, so that a rejected start leaves no trace.
        """
        with contextlib.suppress(OSError):
            if self._is_new and os.listdir(self._directory) == [LOCK_FILE]:
                os.unlink(self.path)
                for directory in self._made:
                    os.rmdir(directory)
        os.close(self._descriptor)


def _missing(directory: str) -> list[str]:
    """Returns the directories to create, the innermost first."""
    missing: list[str] = []
    while directory and not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    return missing
