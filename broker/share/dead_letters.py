"""The dead-letter queue: records that a share group gives up, written to a topic of the group's choice.

A record that was rejected, or delivered as often as may be, is ARCHIVING until its letter is in the log, and ARCHIVED
then. After a crash in between it is written again: a letter may come twice. A letter tells where the record is, and why
it was given up, in headers `__dlq.errors.*`; if the group wants that, it has the record's key and value as well.

Which topics may be queues is for their owners to say: a topic must allow it by errors.deadletterqueue.group.enable, and
its name have the prefix that the cluster asks for. A queue that may not be written to holds nobody up: its letters go
to the broker's log alone. Source: Kafka's ShareGroupDLQStateManager, ShareGroupDLQValidator (KIP-1191).
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.coordinators.environment import Environment
from broker.logging import get_logger
from broker.replica.partition import Partition
from broker.replica.replica import READ_UNCOMMITTED
from coordinator.group.config import GroupConfig
from coordinator.share.key import ShareKey
from protocol.errors import ErrorCode, KafkaError, error_code
from protocol.records import batch
from protocol.records.building import build
from protocol.records.record import Record, read_records

if TYPE_CHECKING:
    from coordinator.share_partition.run import Run

ATTEMPTS: Final = 5
FIRST_RETRY_S: Final = 1.0
LAST_RETRY_S: Final = 30.0
"""Pauses double from the first to the last."""

FEATURE: Final = "share.version"
FIRST_LEVEL: Final = 2
"""The level of share.version that has dead-letter queues."""

READ_BYTES: Final = 1 << 20
DEFAULT_COUNT: Final = -1
CREATE_TIMEOUT_MS: Final = 30_000
INTERNAL: Final = "__"
HEADER: Final = "__dlq.errors."
OF_A_QUEUE: Final = {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
"""What a queue that is made here is configured with."""

REJECTED: Final = "Offset rejected by client."
EXHAUSTED: Final = "Offset delivery count exceeded the threshold."

log = get_logger("broker.share")


class Letter(NamedTuple):
    """Records first to last, given up after so many deliveries, for this reason."""

    first: int
    last: int
    delivery_count: int
    reason: str


def letters_of(runs: Iterable[Run], rejected: Container[int], limit: int) -> list[Letter]:
    """The letters of records that were given up. Why is not stored: after a restart it is told by the count."""
    letters: list[Letter] = []
    for run in runs:
        if run.delivery_count < limit:
            letters.append(Letter(run.first, run.last, run.delivery_count, REJECTED))
            continue
        for is_rejected, offsets in groupby(range(run.first, run.last + 1), rejected.__contains__):
            first, *rest = offsets
            reason = REJECTED if is_rejected else EXHAUSTED
            letters.append(Letter(first, rest[-1] if rest else first, run.delivery_count, reason))
    return letters


class Copy(NamedTuple):
    """What is copied of a record."""

    key: bytes | None = None
    value: bytes | None = None


NOTHING: Final = Copy()


class DeadLetters:
    """Writes letters, of all groups."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def are_wanted(self, config: GroupConfig) -> bool:
        """Whether a group has a queue, and the cluster's features let it."""
        is_enabled = self._environment.image.features.get(FEATURE, 0) >= FIRST_LEVEL
        return is_enabled and bool(config.errors_deadletterqueue_topic_name)

    async def write(self, key: ShareKey, source: Partition, letters: Sequence[Letter], config: GroupConfig) -> None:
        """Returns once the letters are in the log, or it is clear that they cannot get there."""
        if not self.are_wanted(config):
            return
        pause_s = FIRST_RETRY_S
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._attempt(key, source, letters, config)
                return
            except KafkaError as error:
                if not error.code.retriable or attempt == ATTEMPTS:
                    ranges = [(letter.first, letter.last) for letter in letters]
                    log.error(
                        "dead letters not written", group=key.group_id, partition=str(source.name),
                        offsets=str(ranges), reason=str(error),
                    )  # fmt: skip
                    return
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LAST_RETRY_S)

    async def _attempt(self, key: ShareKey, source: Partition, letters: Sequence[Letter], config: GroupConfig) -> None:
        target = await self._target(config.errors_deadletterqueue_topic_name, source.name.partition)
        copies = copied(source, letters) if config.errors_deadletterqueue_copy_record_enable else {}
        now_ms = self._environment.clock.now_ms()
        records = [
            letter_record(key, source, offset, letter, copies.get(offset, NOTHING), now_ms)
            for letter in letters
            for offset in range(letter.first, letter.last + 1)
        ]
        for built in batches_of(records, target.config.max_message_bytes):
            appended = target.append(memoryview(built), now_ms, for_all=True)
            await target.committed(appended.last_offset + 1, self._environment.config.request_timeout_ms)

    async def _target(self, topic: str, index: int) -> Partition:
        """The partition of the queue for one of the source's, in a topic that is made if need be and may be. Raises
        KafkaError."""
        is_there = self._environment.image.topic(topic) is not None
        self._check(topic, is_there)
        if not is_there:
            await self._create(topic)
        await self._environment.topics.made((topic,))
        partitions = self._environment.replicas.topic(topic)
        return self._environment.replicas.leader(topic, index % max(len(partitions), 1))

    def _check(self, topic: str, is_there: bool) -> None:
        """Raises INVALID_TOPIC_EXCEPTION, INVALID_CONFIG of a topic that may not be a queue."""
        config = self._environment.config
        if topic.startswith(INTERNAL):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic}: a dead-letter queue is no internal topic")
        if is_there:
            configured = config.log_config(self._environment.image.topic_configs(topic))
            if not configured.errors_deadletterqueue_group_enable:
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG, f"{topic} does not allow it: errors.deadletterqueue.group.enable is false"
                )
        prefix = config.errors_deadletterqueue_topic_name_prefix
        if not topic.startswith(prefix):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic}: a dead-letter queue begins with {prefix}")
        if not is_there and not config.errors_deadletterqueue_auto_create_topics_enable:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{topic} is not there, and is not to be made")

    async def _create(self, topic: str) -> None:
        """Raises KafkaError."""
        from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

        configs = [CreatableTopicConfig(name=name, value=value) for name, value in OF_A_QUEUE.items()]
        wanted = CreatableTopic(
            name=topic,
            num_partitions=DEFAULT_COUNT,
            replication_factor=DEFAULT_COUNT,
            assignments=[],
            configs=configs,
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=CREATE_TIMEOUT_MS)
        response = await self._environment.topics.create(request)
        code = response.topics[0].error_code
        if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise KafkaError(error_code(code), response.topics[0].error_message)


def letter_record(key: ShareKey, source: Partition, offset: int, letter: Letter, copy: Copy, now_ms: int) -> Record:
    told = {
        "topic": source.name.topic,
        "partition": str(source.name.partition),
        "offset": str(offset),
        "group": key.group_id,
        "delivery.count": str(letter.delivery_count),
        "message": letter.reason,
    }
    headers: list[tuple[str, bytes | None]] = [(HEADER + name, value.encode()) for name, value in told.items()]
    return Record(0, now_ms, copy.key, copy.value, headers)


def batches_of(records: Sequence[Record], max_bytes: int) -> Iterator[bytearray]:
    """The records in batches that the queue takes; one that is too large for it goes without its copy."""
    built = build(records)
    if len(built) <= max_bytes:
        yield built
    elif len(records) > 1:
        half = len(records) // 2
        yield from batches_of(records[:half], max_bytes)
        yield from batches_of(records[half:], max_bytes)
    else:
        yield build([records[0]._replace(key=None, value=None)])


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
        view = source.read(source.snapshot(READ_UNCOMMITTED), offset, READ_BYTES, True)
        if not view:
            return
        for position, header in batch.iter_batches(view):
            offset = header.next_offset
            if header.is_control or header.last_offset < left[0]:
                continue
            yield from (record for record in read_records(view, position, header) if record.offset in wanted)
        left = [each for each in left if each >= offset]
