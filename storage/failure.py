"""Distinguishes the errors of a failing disk from the broker's own bugs."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from protocol.errors import ErrorCode, KafkaError

OUT_OF_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})

OUR_OWN = frozenset(
    {
        errno.EINVAL,
        errno.EBADF,
        errno.EFAULT,
        errno.ESPIPE,
        errno.ENOTTY,
        errno.EOVERFLOW,
        errno.ENAMETOOLONG,
        errno.EDOM,
        errno.ERANGE,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
    }
)
"""Errors that are bugs of the broker: the system rejects the call itself (a negative size, a closed file, a name that
is too long), or the process has used up its file descriptors or memory.

No device returns these errors, and the call changed nothing. All other errors (EIO, EROFS, ENXIO, ENODEV, ESTALE,
EUCLEAN, EACCES, ENOENT and any other) count as failures of the disk, because taking a sound disk offline costs less
than trusting a failing disk.
"""

_bugs = logging.getLogger("storage.bug")
_damage = logging.getLogger("storage.damage")
_reported: set[tuple[str, str]] = set()


def tell(event: str, what: str, **fields: object) -> None:
    """Logs damage to a file for the operator, once for each event and `what` (a path, for example). For any thread.

    Uses the standard library's logging; the broker formats the line like its own lines.
    """
    if (event, what) not in _reported:
        _reported.add((event, what))
        _damage.warning(event, extra={"fields": {"what": what, **fields}})


class StorageError(KafkaError):
    """An error of work on files, with the log directory."""

    def __init__(self, code: ErrorCode, log_dir: str, message: str) -> None:
        super().__init__(code, message)
        self.log_dir = log_dir


class LogDirFailure(StorageError):
    """A failure after which the log directory can't be trusted: it goes offline with all of its partitions.

    Clients get KAFKA_STORAGE_ERROR. A failed fsync is never retried: the system has dropped the pages that it could not
    write, and a second fsync would report success.
    """

    def __init__(self, log_dir: str, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, log_dir, message)


class LogDirFull(StorageError):
    """A write that failed because the disk is full, and left nothing behind. A retry succeeds when there is space."""

    def __init__(self, log_dir: str, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, log_dir, message)


class StorageBug(StorageError):
    """An invalid call on a file: a bug of this broker, not a failure of the directory.

    `failure` logs the traceback; clients get UNKNOWN_SERVER_ERROR.
    """

    def __init__(self, log_dir: str, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, log_dir, message)


Report: TypeAlias = Callable[[LogDirFailure | LogDirFull], None]
"""Callback for every failure, called in the thread that detects it. The caller of the work also gets the exception."""


def unheard(_: LogDirFailure | LogDirFull) -> None:
    """Ignores the failure. Used by a log without a log manager, because its caller gets the exception anyway."""


def failure(log_dir: str, doing: str, error: OSError, report: Report = unheard) -> LogDirFailure | StorageBug:
    """Returns LogDirFailure for an error of the disk, or StorageBug for an error in OUR_OWN."""
    if error.errno in OUR_OWN:
        _bugs.error("invalid call on a file", exc_info=error, extra={"fields": {"doing": doing}})
        return StorageBug(log_dir, f"{log_dir}: {doing}: {error}")
    failed = LogDirFailure(log_dir, f"{log_dir}: {doing}: {error}")
    report(failed)
    return failed


def full(log_dir: str, doing: str, error: OSError, report: Report = unheard) -> LogDirFull:
    """Returns LogDirFull for an error of the system."""
    lacking = LogDirFull(log_dir, f"{log_dir}: {doing}: {error}")
    report(lacking)
    return lacking


@contextmanager
def failing(log_dir: str, doing: str, *, may_be_full: bool = False, report: Report = unheard) -> Iterator[None]:
    """Turns any OSError of the block into LogDirFailure or StorageBug.

    With `may_be_full`, an error in OUT_OF_SPACE becomes LogDirFull: for work that can be retried later without harm.
    """
    try:
        yield
    except OSError as error:
        kind = full if may_be_full and error.errno in OUT_OF_SPACE else failure
        raise kind(log_dir, doing, error, report) from error


class Failures:
    """Runs work in several directories; a directory that fails does not stop the work in the others."""

    def __init__(self) -> None:
        self._failed: dict[str, StorageError] = {}

    def attempt(self, log_dir: str, work: Callable[[], object]) -> None:
        """Runs work in a directory, unless the directory failed before. A StorageBug does not stop later work."""
        if isinstance(self._failed.get(log_dir), LogDirFailure | LogDirFull):
            return
        try:
            work()
        except StorageError as error:
            self._failed[log_dir] = error

    def raise_first(self) -> None:
        """Raises the first failure. Call it after all work."""
        for error in self._failed.values():
            raise error
