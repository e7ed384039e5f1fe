"""The dead-letter queue: records that a share group can't deliver are written to the group's queue topic.

A record that was rejected, or has reached the delivery limit, is ARCHIVING until its letter is in the log, then
ARCHIVED. After a crash in between, the letter is written again, so it may appear twice. A letter has the record's
position and the reason in headers `__dlq.errors.*`; an option of the group adds the record's key and value.

A topic can be a queue if its owner sets errors.deadletterqueue.group.enable, and its name has the prefix that the
cluster requires. If the queue can't be written, delivery continues, and the letters are only in the broker's log.

Source: Kafka's ShareGroupDLQStateManager, ShareGroupDLQValidator (KIP-1191).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.clock import pause
from broker.logging import get_logger
from broker.replica.partition import Partition
from broker.replica.replica import READ_UNCOMMITTED
from broker.replica.topics import OwnTopic
from broker.shards.appending import append_at_leader, partition_of
from broker.shards.environment import Environment
from coordinator.group.config import GroupConfig
from coordinator.share.key import ShareKey
from protocol.backoff import Backoff
from protocol.errors import ErrorCode, KafkaError
from protocol.records import batch
from protocol.records.building import build
from protocol.records.record import Record, read_records

if TYPE_CHECKING:
    from coordinator.share_partition.run import Run

ATTEMPTS: Final = 5
BACKOFF: Final = Backoff(initial_ms=1_000, max_ms=30_000)

FEATURE: Final = "share.version"
FIRST_LEVEL: Final = 2
"""The level of share.version from which dead-letter queues exist."""

READ_BYTES: Final = 1 << 20
INTERNAL: Final = "__"
HEADER: Final = "__dlq.errors."
QUEUE_CONFIGS: Final = {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
"""The configs of a queue that the broker creates."""

REJECTED: Final = "Offset rejected by client."
EXHAUSTED: Final = "Offset delivery count exceeded the threshold."

logger = get_logger(__name__)


class Letter(NamedTuple):
    """The letter of the records from offset `first` to `last`, with their delivery count and the reason."""

    first: int
    last: int
    delivery_count: int
    reason: str


def letters_of(runs: Iterable[Run], rejected: Container[int], limit: int) -> list[Letter]:
    """Returns the letters of undeliverable records. Their reason isn't stored: after a restart it is derived from the
    delivery count.
    """
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


class RecordCopy(NamedTuple):
    """The fields of a record that its letter copies."""

    key: bytes | None = None
    value: bytes | None = None


NO_COPY: Final = RecordCopy()


class DeadLetters:
    """Writes the letters of all groups."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def are_enabled(self, config: GroupConfig) -> bool:
        """True if the group has a queue, and the cluster's share.version allows queues."""
        is_enabled = self._environment.image.features.get(FEATURE, 0) >= FIRST_LEVEL
        return is_enabled and bool(config.errors_deadletterqueue_topic_name)

    async def write(self, key: ShareKey, source: Partition, letters: Sequence[Letter], config: GroupConfig) -> None:
        """Writes the letters, and returns once they are committed or have failed for good."""
        if not self.are_enabled(config):
            return
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._attempt(key, source, letters, config)
                return
            except KafkaError as error:
                if not error.code.retriable or attempt == ATTEMPTS:
                    ranges = [(letter.first, letter.last) for letter in letters]
                    logger.error(
                        "dead letters not written", group=key.group_id, partition=str(source.name),
                        offsets=str(ranges), reason=str(error),
                    )  # fmt: skip
                    return
            await pause(self._environment.clock, BACKOFF.delay_ms(attempt))

    async def _attempt(self, key: ShareKey, source: Partition, letters: Sequence[Letter], config: GroupConfig) -> None:
        queue = OwnTopic(config.errors_deadletterqueue_topic_name, configs=QUEUE_CONFIGS)
        self._check(queue.name)
        target = await partition_of(self._environment, queue, source.name.partition)
        copies = copied(source, letters) if config.errors_deadletterqueue_copy_record_enable else {}
        now_ms = self._environment.clock.now_ms()
        records = [
            letter_record(key, source, offset, letter, copies.get(offset, NO_COPY), now_ms)
            for letter in letters
            for offset in range(letter.first, letter.last + 1)
        ]
        for encoded in batches_of(records, self._max_bytes(target.topic)):
            await append_at_leader(self._environment, target, encoded, now_ms)

    def _max_bytes(self, topic: str) -> int:
        """Returns the largest batch that a queue accepts."""
        environment = self._environment
        return environment.config.log_config(environment.image.topic_configs(topic)).max_message_bytes

    def _check(self, topic: str) -> None:
        """Raises INVALID_TOPIC_EXCEPTION or INVALID_CONFIG for a topic that may not be a queue."""
        config = self._environment.config
        exists = self._environment.image.topic(topic) is not None
        if topic.startswith(INTERNAL):
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic}: a dead-letter queue can't be an internal topic"
            )
        if exists:
            configured = config.log_config(self._environment.image.topic_configs(topic))
            if not configured.errors_deadletterqueue_group_enable:
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG,
                    f"{topic} can't be a dead-letter queue: errors.deadletterqueue.group.enable is false",
                )
        prefix = config.errors_deadletterqueue_topic_name_prefix
        if not topic.startswith(prefix):
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic}: the name of a dead-letter queue must begin with {prefix}"
            )
        if not exists and not config.errors_deadletterqueue_auto_create_topics_enable:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"{topic} does not exist, and errors.deadletterqueue.auto.create.topics.enable is false",
            )


def letter_record(
    key: ShareKey, source: Partition, offset: int, letter: Letter, copy: RecordCopy, now_ms: int
) -> Record:
    """Returns the letter of one record."""
    fields = {
        "topic": source.name.topic,
        "partition": str(source.name.partition),
        "offset": str(offset),
        "group": key.group_id,
        "delivery.count": str(letter.delivery_count),
        "message": letter.reason,
    }
    headers: list[tuple[str, bytes | None]] = [(HEADER + name, value.encode()) for name, value in fields.items()]
    return Record(0, now_ms, copy.key, copy.value, headers)


def batches_of(records: Sequence[Record], max_bytes: int) -> Iterator[bytearray]:
    """Yields the records in batches that the queue accepts. If a record is too large, its copy of key and value is left
    out.
    """
    encoded = build(records)
    if len(encoded) <= max_bytes:
        yield encoded
    elif len(records) > 1:
        half = len(records) // 2
        yield from batches_of(records[:half], max_bytes)
        yield from batches_of(records[half:], max_bytes)
    else:
        yield build([records[0]._replace(key=None, value=None)])


def copied(source: Partition, letters: Iterable[Letter]) -> dict[int, RecordCopy]:
    """Returns keys and values by offset; leaves out records that are no longer in the log."""
    offsets = {offset for letter in letters for offset in range(letter.first, letter.last + 1)}
    return {record.offset: RecordCopy(record.key, record.value) for record in _read(source, offsets)}


def _read(source: Partition, offsets: set[int]) -> Iterator[Record]:
    """Yields the committed records at these offsets that are still in the log."""
    left = sorted(offsets)
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
            yield from (record for record in read_records(view, position, header) if record.offset in offsets)
        left = [later for later in left if later >= offset]
