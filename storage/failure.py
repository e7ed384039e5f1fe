"""What a failing disk means to the broker."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from protocol.errors import ErrorCode, KafkaError

OUT_OF_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


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


def failure(log_dir: str, doing: str, error: OSError) -> LogDirFailure:
    """The directory's failure that an error of the system amounts to."""
    return LogDirFailure(log_dir, f"{log_dir}: {doing}: {error}")


@contextmanager
def failing(log_dir: str, doing: str, *, may_be_full: bool = False) -> Iterator[None]:
    """Turn any OSError of the block into LogDirFailure.

    With `may_be_full`, a lack of room into LogDirFull: for what can be tried again later as if nothing had happened.
    """
    try:
        yield
    except OSError as error:
        if may_be_full and error.errno in OUT_OF_SPACE:
            raise LogDirFull(log_dir, f"{log_dir}: {doing}: {error}") from error
        raise failure(log_dir, doing, error) from error
