"""The dead-letter queue: records that a share group gives up, written to a topic of the group's choice.

A record that was rejected, or delivered as often as may be, is ARCHIVING until its letter is in the log, and ARCHIVED
then. After a crash in between it is written again: a letter may come twice, but does not get lost. A letter tells where
the record is, and why it was given up, in headers `__dlq.errors.*`; if the group wants that, it has the record's key
and value as well. Source: Kafka's ShareGroupDLQStateManager (KIP-1191).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.logging import get_logger
from broker.replica.partition import READ_UNCOMMITTED, Partition
from coordinator.group.config import GroupConfig
from coordinator.share.records import ShareKey
from protocol.errors import ErrorCode, KafkaError
from protocol.records import batch
from protocol.records.record import Record, read_records

if TYPE_CHECKING:
    from broker.broker import Broker

ATTEMPTS: Final = 5
FIRST_RETRY_S: Final = 0.1
PAUSE_S: Final = 30.0
"""After so many attempts the operator hears of it, and it is tried again after a while: nothing is dropped."""

READ_BYTES: Final = 1 << 20
INTERNAL: Final = "__"
HEADER: Final = "__dlq.errors."

log = get_logger("broker.share")


class Letter(NamedTuple):
    """Records first to last, given up after so many deliveries."""

    first: int
    last: int
    delivery_count: int


class Copy(NamedTuple):
    """What is copied of a record."""

    key: bytes | None = None
    value: bytes | None = None


NOTHING: Final = Copy()


class DeadLetters:
    """Writes letters, of all groups."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def write(self, key: ShareKey, source: Partition, letters: Sequence[Letter], config: GroupConfig) -> None:
        """Returns once the letters are in the log, however long that takes."""
        pause_s, attempt = FIRST_RETRY_S, 1
        while True:
            try:
                await self._attempt(key, source, letters, config)
                return
            except KafkaError as error:
                if attempt % ATTEMPTS == 0:
                    log.error(
                        "dead letters not written", group=key.group_id, partition=str(source.name), reason=str(error)
                    )
            await asyncio.sleep(PAUSE_S if attempt % ATTEMPTS == 0 else pause_s)
            pause_s, attempt = (FIRST_RETRY_S, attempt + 1) if attempt % ATTEMPTS == 0 else (pause_s * 2, attempt + 1)

    async def _attempt(self, key: ShareKey, source: Partition, letters: Sequence[Letter], config: GroupConfig) -> None:
        topic = config.errors_deadletterqueue_topic_name
        if not topic:
            return
        target = await self._target(topic, source.name.partition)
        copies = copied(source, letters) if config.errors_deadletterqueue_copy_record_enable else {}
        now_ms = self._broker.clock.now_ms()
        records = [
            letter_record(key, source, offset, letter, copies.get(offset, NOTHING), config, now_ms)
            for letter in letters
            for offset in range(letter.first, letter.last + 1)
        ]
        target.append(memoryview(batch.build(records)), now_ms)

    async def _target(self, topic: str, index: int) -> Partition:
        """The partition of the queue for one of the source's, in a topic that is made if need be and may be. Raises
        KafkaError."""
        if topic.startswith(INTERNAL):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic}: a dead-letter queue is no internal topic")
        if self._broker.registry.topic(topic) is None:
            if not self._broker.config.auto_create_topics_enable:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic} is not there, and is not to be made")
            for code in (await self._broker.auto_create_topics([topic])).values():
                raise KafkaError(code)
        partitions = self._broker.replicas.topic(topic)
        return self._broker.replicas.partition(topic, index % max(len(partitions), 1))


def letter_record(
    key: ShareKey, source: Partition, offset: int, letter: Letter, copy: Copy, config: GroupConfig, now_ms: int
) -> Record:
    is_exhausted = letter.delivery_count >= config.share_delivery_count_limit
    message = (
        f"The record was delivered {letter.delivery_count} times, which is the group's limit."
        if is_exhausted
        else "The record was rejected by a consumer."
    )
    told = {
        "topic": source.name.topic,
        "partition": str(source.name.partition),
        "offset": str(offset),
        "group": key.group_id,
        "delivery.count": str(letter.delivery_count),
        "message": message,
    }
    headers: list[tuple[str, bytes | None]] = [(HEADER + name, value.encode()) for name, value in told.items()]
    return Record(0, now_ms, copy.key, copy.value, headers)


def copied(source: Partition, letters: Iterable[Letter]) -> dict[int, Copy]:
    """Keys and values by offset; records that are gone from the log are left out."""
    wanted = {offset for letter in letters for offset in range(letter.first, letter.last + 1)}
    return {record.offset: Copy(record.key, record.value) for record in _read(source, wanted)}


def _read(source: Partition, wanted: set[int]) -> Iterator[Record]:
    left = sorted(wanted)
    while left:
        offset = max(left[0], source.log_start_offset)
        if offset >= source.high_watermark:
            return
        view = source.fetch(offset, READ_BYTES, READ_UNCOMMITTED, True).read.parts[0]
        for position, header in batch.iter_batches(view):
            offset = header.next_offset
            if header.is_control or header.last_offset < left[0]:
                continue
            yield from (record for record in read_records(view, position, header) if record.offset in wanted)
        left = [each for each in left if each >= offset]
