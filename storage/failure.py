"""What a failing disk means to the broker."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from protocol.errors import ErrorCode, KafkaError

OUT_OF_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


_damage = logging.getLogger("storage.damage")
_told: set[tuple[str, str]] = set()


def tell(event: str, what: str, **fields: object) -> None:
    """A line for the operator about a damaged file, once for each `what` (a path, say), in any thread.

    Through the standard library's logging; the broker makes it a line like its own.
    """
    if (event, what) not in _told:
        _told.add((event, what))
        _damage.warning(event, extra={"fields": {"what": what, **fields}})


class LogDirFailure(KafkaError):
    """A log directory can no longer be trusted: it goes offline, with all of its partitions.

    Clients get KAFKA_STORAGE_ERROR. A failed fsync is never tried again: the system has dropped the pages it could not
    write, and would report success.
    """

    def __init__(self, log_dir: str, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)
        self.log_dir = log_dir


class LogDirFull(KafkaError):
    """There is no room for an append, and nothing of it was kept: retried, it succeeds once there is room."""

    def __init__(self, log_dir: str, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)
        self.log_dir = log_dir


Report: TypeAlias = Callable[[LogDirFailure | LogDirFull], None]
"""Told of every failure where it happens, in any thread; whoever asked for the work gets it as an exception too."""


def unheard(_: LogDirFailure | LogDirFull) -> None:
    """The report of a log that stands alone: its user sees the exception."""


def failure(log_dir: str, doing: str, error: OSError, report: Report = unheard) -> LogDirFailure:
    """The directory's failure that an error of the system amounts to."""
    failed = LogDirFailure(log_dir, f"{log_dir}: {doing}: {error}")
    report(failed)
    return failed


def full(log_dir: str, doing: str, error: OSError, report: Report = unheard) -> LogDirFull:
    """The lack of room that an error of the system amounts to."""
    lacking = LogDirFull(log_dir, f"{log_dir}: {doing}: {error}")
    report(lacking)
    return lacking


@contextmanager
def failing(log_dir: str, doing: str, *, may_be_full: bool = False, report: Report = unheard) -> Iterator[None]:
    """Turn any OSError of the block into LogDirFailure.

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
        self._failed: dict[str, LogDirFailure | LogDirFull] = {}

    def attempt(self, log_dir: str, work: Callable[[], object]) -> None:
        """A piece of work in a directory; none is done where one has failed."""
        if log_dir in self._failed:
            return
        try:
            work()
        except (LogDirFailure, LogDirFull) as error:
            self._failed[log_dir] = error

    def raise_first(self) -> None:
        """What failed first, when all that could be done is done."""
        for error in self._failed.values():
            raise error
