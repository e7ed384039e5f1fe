"""Handles disks that fail or are full; all such failures are reported here.

A failed log directory is offline until the next start: its partitions answer KAFKA_STORAGE_ERROR and have no leader;
the other directories continue to serve. The broker stops, with exit code 1, if no directory is left or the metadata
log's directory has failed. A full disk rejects appends, and serves again as soon as it has free space.

Source: Kafka's LogDirFailureChannel and ReplicaManager.handleLogDirFailure; there a full disk is a failed disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker.logging import get_logger
from broker.metadata.log import MetadataLog
from broker.metadata.node import Node
from protocol.errors import KafkaError
from protocol.types import TopicPartition
from storage.failure import LogDirFailure, LogDirFull
from storage.log_dir import LogDir
from storage.logs import Logs

ROOM_BYTES = 16 << 20
"""Free space of a volume that counts as enough. With less, the next append could fill it."""

logger = get_logger(__name__)


class DiskFailures:
    """Handles failures on the event loop, wherever they occurred."""

    def __init__(
        self,
        logs: Logs,
        metadata_log: MetadataLog,
        node: Node,
        *,
        close: Callable[[TopicPartition], None],
        reopen: Callable[[], None],
        stop: Callable[[], None],
    ) -> None:
        """`close` takes the partition of a lost log offline; `reopen` retries to open offline partitions; `stop` ends
        the broker with an error.
        """
        self._logs = logs
        self._node = node
        self.full: dict[str, str] = {}
        """The work that failed, for each full directory."""
        self._close = close
        self._reopen = reopen
        self._stop = stop
        self._stopping = False
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        logs.on_failure = self.report
        metadata_log.report_failures(self.report)

    def report(self, error: LogDirFailure | LogDirFull) -> None:
        """Accepts a failure, from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._act, error)

    def _act(self, error: LogDirFailure | LogDirFull) -> None:
        if isinstance(error, LogDirFull):
            self._refuse(error)
        elif error.log_dir == self._node.metadata_dir:
            if self._stopping:  # closing the open logs fails again
                return
            self._stopping = True
            logger.error(
                "the directory of the metadata log has failed; stopping", log_dir=error.log_dir, reason=str(error)
            )
            self._stop()
        elif self._logs.dirs[error.log_dir].online:
            self._take_offline(self._logs.dirs[error.log_dir], error)

    def _take_offline(self, log_dir: LogDir, error: LogDirFailure) -> None:
        gone = self._logs.fail(log_dir.path, error)
        logger.error("log directory has failed: offline", log_dir=log_dir.path, reason=str(error), partitions=len(gone))
        self.full.pop(log_dir.path, None)
        for name in gone:
            self._close(name)
        if not self._logs.online_dirs():
            logger.error("no log directory is left; stopping")
            self._stop()
            return
        task = asyncio.ensure_future(self._tell_cluster(log_dir.path))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell_cluster(self, path: str) -> None:
        try:
            await self._node.directory_failed(path)
        except KafkaError as error:
            logger.error("no controller accepted the report of the failed directory", log_dir=path, reason=str(error))

    def _refuse(self, error: LogDirFull) -> None:
        """Logs a full directory once, not at every rejected append."""
        if error.log_dir not in self.full:
            logger.error("log directory is full: appends are rejected until there is free space", reason=str(error))
        self.full[error.log_dir] = str(error)

    def look_for_room(self) -> None:
        """Checks if full directories have free space again. Appends also notice it by themselves."""
        for path in list(self.full):
            if self._has_room(self._logs.dirs.get(path)):
                del self.full[path]
                logger.info("log directory has free space again", log_dir=path)
                self._reopen()

    def _has_room(self, log_dir: LogDir | None) -> bool:
        try:
            return log_dir is None or not log_dir.online or log_dir.space().usable_bytes >= ROOM_BYTES
        except OSError:
            return False
