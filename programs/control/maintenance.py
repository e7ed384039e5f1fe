"""Runs retention, compaction and flushes at once, without waiting for their intervals."""

from __future__ import annotations

from functools import partial

from broker.disks.cleaner import Cleaner
from broker.requests.broker import Broker
from broker.workers import Workers
from programs.control.http import RequestError
from protocol.errors import KafkaError
from storage.log import Log


class Maintenance:
    """Maintains logs as the background jobs do."""

    def __init__(self, broker: Broker, cleaner: Cleaner, workers: Workers) -> None:
        self._broker = broker
        self._cleaner = cleaner
        self._workers = workers

    def logs_of(self, topic: str | None) -> list[Log]:
        """Returns the logs of a topic on this broker; None selects all topics. Raises RequestError."""
        if topic is not None and self._broker.image.topic(topic) is None:
            raise RequestError(404, f"there is no topic {topic}")
        return [log for log in self._broker.logs if topic in (None, log.topic_partition.topic)]

    async def apply_retention(self, topic: str | None) -> list[dict[str, object]]:
        """Deletes expired segments. Returns the partitions that have lost some."""
        shortened: list[dict[str, object]] = []
        for log in self.logs_of(topic):
            now_ms = self._broker.clock.now_ms()
            try:
                await self._workers.call(partial(log.look_at_old_segments, now_ms))
                expired = [] if log.is_at_work else log.apply_retention(now_ms)
            except KafkaError as error:
                raise failed(log, error) from None
            if expired:
                name = log.topic_partition
                row = {"topic": name.topic, "partition": name.partition, "start_offset": log.log_start_offset}
                shortened.append(row)
        return shortened

    async def delete_files(self) -> None:
        """Deletes the renamed files whose delay is over."""
        await self._workers.call(partial(self._broker.logs.delete_expired, self._broker.clock.now_ms()))

    async def compact(self, topic: str | None) -> list[dict[str, object]]:
        """Cleans compacted logs up to their ends. Returns the logs that were dirty or had expired tombstones."""
        cleaned: list[dict[str, object]] = []
        for log in self.logs_of(topic):
            if not log.config.compact:
                continue
            before_bytes = log.size_bytes
            try:
                log.roll(self._broker.clock.now_ms())
                was_dirty = await self._cleaner.clean_now(log)
            except KafkaError as error:
                raise failed(log, error) from None
            if was_dirty or log.size_bytes < before_bytes:
                name = log.topic_partition
                sizes = {"size_bytes_before": before_bytes, "size_bytes": log.size_bytes}
                cleaned.append({"topic": name.topic, "partition": name.partition, **sizes})
        return cleaned

    async def flush(self) -> int:
        """Flushes all logs to the device, and writes the checkpoints. Returns the number of logs."""
        logs = self.logs_of(None)
        for log in logs:
            try:
                await self._workers.call(partial(log.flush, self._broker.clock.now_ms()))
            except KafkaError as error:
                raise failed(log, error) from None
        await self._workers.call(self._broker.logs.write_checkpoints)
        await self._workers.call(self._broker.logs.write_high_watermarks)
        return len(logs)


def failed(log: Log, error: KafkaError) -> RequestError:
    """Returns the error for a log whose maintenance failed."""
    return RequestError(409, f"{log.topic_partition}: {error}")
