"""Moves replicas to other log directories: copies a log batch by batch while clients are served, then swaps the logs
(KIP-113).
"""

from __future__ import annotations

import asyncio
import os
from typing import Final

from broker.clock import Clock, next_turn, pause
from broker.disks.work import DiskWork
from broker.logging import get_logger
from broker.metadata.node import Node
from broker.replica.partition import Partition
from broker.replica.throttle import ReplicationThrottle
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.logs import Logs

THROTTLED_MS: Final = 100
"""Pause of a move that exceeds its throttle, before it checks again."""

logger = get_logger(__name__)


class Moves:
    """The moves in progress, one task per replica. A step copies about a megabyte; clients are served between steps."""

    def __init__(
        self, logs: Logs, node: Node, clock: Clock, disk_work: DiskWork, throttle: ReplicationThrottle
    ) -> None:
        self._logs = logs
        self._node = node
        self._clock = clock
        self._disk_work = disk_work
        self.throttle = throttle
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}

    def directory(self, path: str) -> str:
        """Returns the path of a log directory as log.dirs spells it. Raises KafkaError: LOG_DIR_NOT_FOUND."""
        if not os.path.isabs(path) or os.path.abspath(path) not in self._logs.dirs:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not in log.dirs: {', '.join(self._logs.dirs)}")
        return os.path.abspath(path)

    def begin(self, partition: Partition, path: str) -> None:
        """Starts to move a replica to the log directory `path`; stops its move if the replica is already there. Raises
        KafkaError: REPLICA_NOT_AVAILABLE, which clients retry, while the log is being truncated.
        """
        if partition.truncation is not None:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"{partition.name} is being truncated")
        future = self._logs.future(partition.name)
        if future is not None and future.log_dir == path:
            return
        self._cancel(partition.name)
        if partition.log.log_dir != path:
            self._logs.create_future(partition.name, path, self._clock.now_ms())
            self._tasks[partition.name] = asyncio.create_task(self._move(partition))

    def resume(self, partition: Partition) -> None:
        """Continues a move that was interrupted when the broker stopped."""
        if self._logs.future(partition.name) is not None:
            self._tasks[partition.name] = asyncio.create_task(self._move(partition))

    def forget(self, name: TopicPartition) -> None:
        """Ends the move of a deleted partition."""
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()

    def stop(self) -> None:
        """Interrupts all moves; the next start resumes them."""
        for task in self._tasks.values():
            task.cancel()

    def _cancel(self, name: TopicPartition) -> None:
        self.forget(name)
        self._logs.cancel_future(name, self._clock.now_ms())

    async def _copy(self, partition: Partition) -> None:
        while True:
            while partition.truncation is not None:
                await partition.truncation.over()
            future = self._logs.future(partition.name)
            assert future is not None
            before_bytes = future.size_bytes
            if self._logs.copy_to_future(partition.name, self._clock.now_ms()):
                return
            self.throttle.record(future.size_bytes - before_bytes)
            while self.throttle.is_exceeded:
                await pause(self._clock, THROTTLED_MS)
            await next_turn()  # clients have their turn

    async def _move(self, partition: Partition) -> None:
        name = partition.name
        try:
            await self._copy(partition)
            future = self._logs.future(name)
            assert future is not None
            await self._disk_work.flushed(future)  # the log that it replaces will be deleted
            await self._disk_work.checkpointed(future.log_dir)
            await self._copy(partition)
            partition.move_to(self._logs.swap_future(name, self._clock.now_ms()))
            await self._node.moved(name, partition.log_dir)
            logger.info("replica moved", partition=str(name), log_dir=partition.log_dir)
        except KafkaError as error:
            logger.error("replica was not moved", partition=str(name), reason=str(error))
        finally:
            self._tasks.pop(name, None)
