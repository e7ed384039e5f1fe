"""The errors of a failing disk, told apart from those of our own."""

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
"""Errors by which the system refuses the call itself: a negative size, a file that is closed, a name that is too long;
and those of a process that has taken more than it should have, of descriptors or memory.

No device answers so, and nothing was done to any. All others (EIO, EROFS, ENXIO, ENODEV, ESTALE, EUCLEAN, EACCES,
ENOENT and whatever else a file system may come up with) count as the disk's: a disk that is given up without need costs
less than one that is trusted without reason.
"""

_bugs = logging.getLogger("storage.bug")
_damage = logging.getLogger("storage.damage")
_reported: set[tuple[str, str]] = set()


def tell(event: str, what: str, **fields: object) -> None:
    """Logs a line for the operator about a damaged file, once for each `what` (a path, say), in any thread.

    Through the standard library's logging; the broker makes it a line like its own.
    """
    if (event, what) not in _reported:
        _reported.add((event, what))
        _damage.warning(event, extra={"fields": {"what": what, **fields}})


class StorageError(KafkaError):
    """Failed work on files, with its log directory."""

    def __init__(self, code: ErrorCode, log_dir: str, message: str) -> None:
        super().__init__(code, message)
        self.log_dir = log_dir


class LogDirFailure(StorageError):
    """A log directory can no longer be trusted: it goes offline, with all of its partitions.

    Clients get KAFKA_STORAGE_ERROR. A failed fsync is never tried again: the system has dropped the pages it could not
    write, and would report success.
    """

    def __init__(self, log_dir: str, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, log_dir, message)


class LogDirFull(StorageError):
    """There is no room for an append, and nothing of it was kept: retried, it succeeds once there is room."""

    def __init__(self, log_dir: str, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, log_dir, message)


class StorageBug(StorageError):
    """A file was asked for what no file can do: a mistake of this broker, and no directory's failure.

    Its trace is logged where it is met; clients get UNKNOWN_SERVER_ERROR.
    """

    def __init__(self, log_dir: str, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, log_dir, message)


Report: TypeAlias = Callable[[LogDirFailure | LogDirFull], None]
"""Called with every failure where it happens, in any thread; the caller of the work gets it as an exception too."""


def unheard(_: LogDirFailure | LogDirFull) -> None:
    """The report of a log that stands alone: its user sees the exception."""


def failure(log_dir: str, doing: str, error: OSError, report: Report = unheard) -> LogDirFailure | StorageBug:
    """Returns the directory's failure that an error of the system amounts to, or else the bug of our own."""
    if error.errno in OUR_OWN:
        _bugs.error("a file was asked for what it cannot do", exc_info=error, extra={"fields": {"doing": doing}})
        return StorageBug(log_dir, f"{log_dir}: {doing}: {error}")
    failed = LogDirFailure(log_dir, f"{log_dir}: {doing}: {error}")
    report(failed)
    return failed


def full(log_dir: str, doing: str, error: OSError, report: Report = unheard) -> LogDirFull:
    """Returns the lack of room that an error of the system amounts to."""
    lacking = LogDirFull(log_dir, f"{log_dir}: {doing}: {error}")
    report(lacking)
    return lacking


@contextmanager
def failing(log_dir: str, doing: str, *, may_be_full: bool = False, report: Report = unheard) -> Iterator[None]:
    """Turn any OSError of the block into LogDirFailure, or StorageBug.

    With `may_be_full`, a lack of room into LogDirFull: for what can be tried again later as if nothing had happened.
    """
    try:
        yield
    except OSError as error:
        kind = full if may_be_full and error.errno in OUT_OF_SPACE else failure
        raise kind(log_dir, doing, error, report) from error


class Failures:
    """Work on several directories, of which one that fails does not keep the others from theirs."""

    def __init__(self) -> None:
        self._failed: dict[str, StorageError] = {}

    def attempt(self, log_dir: str, work: Callable[[], object]) -> None:
        """Runs a piece of work in a directory, unless one has failed there; a bug of our own stops no other."""
        if isinstance(self._failed.get(log_dir), LogDirFailure | LogDirFull):
            return
        try:
            work()
        except StorageError as error:
            self._failed[log_dir] = error

    def raise_first(self) -> None:
        """Raises the first failure, when all other work is done."""
        for error in self._failed.values():
            raise error
