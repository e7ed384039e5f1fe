"""The dead letters of a share group (KIP-1191): reads them from the queue, and sends chosen ones back to their topic.

A redrive is one transaction: it writes the records to their partitions and, for each, a note to its letter's partition
of the queue. A letter with a note was redriven, so that none is redriven twice. The transactional id is the group's, so
that of two redrives at the same time the first fails as a whole.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from cli.times import show_time
from commands.client.cluster_client import ClusterClient
from commands.errors import CommandError, misuse
from commands.printing import Row
from commands.records.fetching import FetchedRecords, PartitionReader
from commands.records.input import InputRecord
from commands.records.positions import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Offsets,
    Position,
    PositionKind,
    bounds,
    resolve,
)
from commands.records.producer import ProduceOptions, RecordProducer
from commands.state.configs import ConfigOwner, ResourceKind, describe_configs
from protocol.records.record import Record
from protocol.types import TopicPartition

QUEUE_OPTION: Final = "errors.deadletterqueue.topic.name"

ERRORS: Final = "__dlq.errors."
"""The headers of a letter (KIP-1191)."""
REDRIVEN: Final = "__dlq.redriven."
"""The headers of a redriven record, and of the note in the queue."""

NEWEST: Final = 10_000
"""Records of each partition of the queue that are read if no position is given: some seconds."""

MOST_LETTERS: Final = 1000
MOST_BYTES: Final = 64 * 1024 * 1024
"""Limits of a redrive, which is one transaction, and in memory."""

OFFSET_DIGITS: Final = 19
PARTITION_DIGITS: Final = 9
INTERNAL: Final = "__"
FROM_TOPIC: Final = "topic"
FROM_LETTER: Final = "letter"


class DeadLetter(NamedTuple):
    """A letter of the queue."""

    queue: TopicPartition
    offset: int
    source: TopicPartition
    source_offset: int
    group: str
    deliveries: int
    reason: str
    timestamp: int
    key: bytes | None
    value: bytes | None
    redriven_ms: int | None = None
    """The time of its redrive; None if it was not redriven."""

    @property
    def name(self) -> str:
        """The name of the letter on the command line."""
        return f"{self.queue.partition}:{self.offset}"


class LetterPlan(NamedTuple):
    """The record to send for a letter, or the reason why there is none."""

    letter: DeadLetter
    record: InputRecord | None
    taken_from: str = ""
    """FROM_TOPIC if the topic still has the record, FROM_LETTER if only the letter has its key and value."""
    error: str = ""


async def queue_of(cluster: ClusterClient, group: str) -> str:
    """Returns the group's queue. Raises CommandError if it has none."""
    configs = await describe_configs(cluster, ConfigOwner(ResourceKind.GROUP, group))
    queue = next((config.value for config in configs if config.name == QUEUE_OPTION), None)
    if not queue:
        raise CommandError(
            f"group {group} has no dead-letter queue: `odradek config set group {group} {QUEUE_OPTION}=TOPIC` sets it"
        )
    return queue


def letter_of(place: TopicPartition, record: Record) -> DeadLetter | None:
    """Returns the letter of a record; None if the record isn't one. Anybody may write to a queue."""
    headers = _texts(record, ERRORS)
    topic, group = headers.get("topic", ""), headers.get("group", "")
    partition = _number(headers.get("partition", ""), PARTITION_DIGITS)
    offset = _number(headers.get("offset", ""), OFFSET_DIGITS)
    if not topic or not group or partition is None or offset is None:
        return None
    return DeadLetter(
        place,
        record.offset,
        TopicPartition(topic, partition),
        offset,
        group,
        _number(headers.get("delivery.count", ""), PARTITION_DIGITS) or 0,
        headers.get("message", ""),
        record.timestamp,
        record.key,
        record.value,
    )


def noted_offset(record: Record, group: str) -> int | None:
    """Returns the offset of the letter that a note is about; None if the record isn't a note of the group."""
    headers = _texts(record, REDRIVEN)
    return _number(headers.get("offset", ""), OFFSET_DIGITS) if headers.get("group") == group else None


def _texts(record: Record, prefix: str) -> dict[str, str]:
    """Returns the headers that begin with a prefix as text, without the prefix."""
    return {
        name.removeprefix(prefix): (value or b"").decode(errors="replace")
        for name, value in record.headers
        if name.startswith(prefix)
    }


def _number(text: str, most_digits: int) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= most_digits else None


async def dead_letters(
    cluster: ClusterClient, group: str, queue: str, position: Position | None = None, *, count: int | None = None
) -> list[DeadLetter]:
    """Returns the group's letters in a queue from a position on, by default those among the NEWEST records of each
    partition; the newest first, at most `count`."""
    topic = await cluster.topic(queue)
    places = [TopicPartition(queue, partition.partition_index) for partition in topic.partitions]
    chosen = position or Position(PositionKind.BEFORE_END, NEWEST)
    starts, errors = await resolve(cluster, dict.fromkeys(places, chosen), READ_COMMITTED)
    if errors:
        raise CommandError("; ".join(f"{place}: {error}" for place, error in sorted(errors.items())))
    letters: dict[tuple[TopicPartition, int], DeadLetter] = {}
    async for place, record in read_until_end(cluster, starts, READ_COMMITTED):
        noted = noted_offset(record, group)
        if noted is not None and (place, noted) in letters:
            letters[place, noted] = letters[place, noted]._replace(redriven_ms=record.timestamp)
        elif (letter := letter_of(place, record)) is not None and letter.group == group:
            letters[place, record.offset] = letter
    newest = sorted(letters.values(), key=lambda letter: (-letter.timestamp, letter.queue, -letter.offset))
    return newest[:count]


async def read_until_end(
    cluster: ClusterClient, starts: Offsets, isolation: int
) -> AsyncIterator[tuple[TopicPartition, Record]]:
    """Yields the records of partitions up to their present end, each partition in order. Raises CommandError if no
    leader answers for as long as a request may take."""
    limits = await bounds(cluster, starts, isolation)
    ends = limits.ends
    reader = PartitionReader(cluster, isolation=isolation)
    reader.positions |= {place: at for place, at in starts.items() if at < ends.get(place, at)}
    moved_ms = cluster.clock.monotonic_ms()
    try:
        while reader.positions:
            async for fetched in reader.poll():
                moved_ms = cluster.clock.monotonic_ms()
                for record, _ in fetched.records:
                    if record.offset < ends[fetched.place]:
                        yield fetched.place, record
            for place in [place for place, at in reader.positions.items() if at >= ends[place]]:
                del reader.positions[place]
            if cluster.clock.monotonic_ms() - moved_ms > cluster.timeout_ms:
                waiting = ", ".join(map(str, sorted(reader.positions)))
                raise CommandError(f"{waiting}: no records came within {cluster.timeout_ms} ms")
    finally:
        await reader.close()


# Redrive.


async def plan_redrive(cluster: ClusterClient, letters: Sequence[DeadLetter]) -> list[LetterPlan]:
    """Returns the record of each letter: the topic's, with its headers, or else the letter's copy of key and value."""
    if len(letters) > MOST_LETTERS:
        raise misuse(f"{len(letters)} letters: a redrive is one transaction of at most {MOST_LETTERS}")
    wanted: dict[TopicPartition, set[int]] = {}
    for letter in letters:
        wanted.setdefault(letter.source, set()).add(letter.source_offset)
    partitions = await _partition_counts(cluster, {place.topic for place in wanted})
    existing = {place: offsets for place, offsets in wanted.items() if place.partition < partitions.get(place.topic, 0)}
    found: dict[tuple[TopicPartition, int], Record] = {}
    for place, offsets in sorted(existing.items()):
        found |= {(place, record.offset): record for record in await _records_at(cluster, place, offsets)}
    plans = [planned(letter, found, has_partition=letter.source in existing) for letter in letters]
    size = sum(len(plan.record.value or b"") + len(plan.record.key or b"") for plan in plans if plan.record is not None)
    if size > MOST_BYTES:
        raise misuse(f"these records have {size} bytes: a redrive may have {MOST_BYTES}; choose fewer letters")
    return plans


async def _partition_counts(cluster: ClusterClient, topics: Collection[str]) -> dict[str, int]:
    answer = await cluster.metadata(sorted(topics))
    return {topic.name or "": len(topic.partitions) for topic in answer.topics if not topic.error_code}


async def _records_at(cluster: ClusterClient, place: TopicPartition, offsets: Collection[int]) -> list[Record]:
    """Returns the records at offsets of a partition that are still in its log. Raises CommandError."""
    limits = await bounds(cluster, [place])
    if place in limits.errors:
        raise CommandError(f"{place}: {limits.errors[place]}")
    left = sorted(offset for offset in offsets if limits.starts[place] <= offset < limits.ends[place])
    records: list[Record] = []
    while left:
        answer = await _answer(cluster, place, left[0])
        records += (record for record, _ in answer.records if record.offset in offsets)
        left = [offset for offset in left if offset >= answer.next_offset]
    return records


async def _answer(cluster: ClusterClient, place: TopicPartition, offset: int) -> FetchedRecords:
    """Returns the leader's first answer with records from an offset on. Raises CommandError."""
    reader = PartitionReader(cluster, isolation=READ_UNCOMMITTED)
    reader.positions[place] = offset
    deadline_ms = cluster.clock.monotonic_ms() + cluster.timeout_ms
    try:
        while cluster.clock.monotonic_ms() <= deadline_ms:
            async for fetched in reader.poll():
                if fetched.next_offset > offset:
                    return fetched
    finally:
        await reader.close()
    raise CommandError(f"{place}: no records from offset {offset} on came within {cluster.timeout_ms} ms")


def planned(
    letter: DeadLetter, found: Mapping[tuple[TopicPartition, int], Record], *, has_partition: bool
) -> LetterPlan:
    """Returns the record to send for a letter; `found` has the records that topics still have."""
    if letter.redriven_ms is not None:
        return LetterPlan(letter, None, error="it was redriven already")
    if letter.source.topic.startswith(INTERNAL):
        return LetterPlan(letter, None, error=f"{letter.source.topic} is an internal topic")
    if not has_partition:
        return LetterPlan(letter, None, error=f"there is no partition {letter.source} any longer")
    record = found.get((letter.source, letter.source_offset))
    if record is not None:
        return LetterPlan(letter, marked(letter, record.key, record.value, record.headers), FROM_TOPIC)
    if letter.key is not None or letter.value is not None:
        return LetterPlan(letter, marked(letter, letter.key, letter.value, ()), FROM_LETTER)
    return LetterPlan(letter, None, error=f"{letter.source} no longer has the record, and the letter has no copy")


def marked(
    letter: DeadLetter, key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes | None]]
) -> InputRecord:
    """Returns the record to send: with its headers, and the position of its letter. A record that was redriven before
    has its old position replaced."""
    kept = [(name, content) for name, content in headers if not name.startswith(REDRIVEN)]
    before = next((content for name, content in headers if name == f"{REDRIVEN}count"), None)
    count = (_number((before or b"").decode(errors="replace"), PARTITION_DIGITS) or 0) + 1
    own = {
        "topic": letter.queue.topic,
        "partition": str(letter.queue.partition),
        "offset": str(letter.offset),
        "group": letter.group,
        "count": str(count),
    }
    marks = [(REDRIVEN + name, text.encode()) for name, text in own.items()]
    return InputRecord(key, value, (*kept, *marks), letter.source.partition)


def note_of(letter: DeadLetter) -> InputRecord:
    """Returns the note in the queue that a letter was redriven."""
    own = {"offset": str(letter.offset), "group": letter.group}
    headers = tuple((REDRIVEN + name, text.encode()) for name, text in own.items())
    return InputRecord(None, None, headers, letter.queue.partition)


async def redrive(cluster: ClusterClient, plans: Sequence[LetterPlan]) -> None:
    """Sends the records of all plans, which are of one group, in one transaction. Raises CommandError if a plan has an
    error, or a letter was redriven meanwhile; then nothing is sent."""
    if problems := [f"{plan.letter.name}: {plan.error}" for plan in plans if plan.record is None]:
        raise CommandError("; ".join(problems))
    if not plans:
        raise misuse("no letter is chosen")
    group = plans[0].letter.group
    producer = RecordProducer(cluster, ProduceOptions(transactional_id=f"odradek-redrive-{group}"))
    await producer.begin()  # an earlier redrive is decided from here on, and its notes can be read
    await _check_notes(cluster, [plan.letter for plan in plans], group)
    is_committed = False
    try:
        by_topic: dict[str, list[InputRecord]] = {}
        for plan in plans:
            if plan.record is not None:
                by_topic.setdefault(plan.letter.source.topic, []).append(plan.record)
        for topic, records in by_topic.items():
            await producer.send(topic, records)
        await producer.send(plans[0].letter.queue.topic, [note_of(plan.letter) for plan in plans])
        await producer.end(commit=True)
        is_committed = True
    finally:
        if not is_committed:
            await producer.end(commit=False)


async def _check_notes(cluster: ClusterClient, letters: Sequence[DeadLetter], group: str) -> None:
    """Raises CommandError if one of the letters has a note, or notes may be hidden behind an open transaction."""
    starts: Offsets = {}
    for letter in letters:
        starts[letter.queue] = min(letter.offset, starts.get(letter.queue, letter.offset))
    committed = await bounds(cluster, starts, READ_COMMITTED)
    written = await bounds(cluster, starts)
    for place in starts:
        if place in committed.errors or place in written.errors:
            raise CommandError(f"{place}: {committed.errors.get(place) or written.errors.get(place)}")
        if committed.ends[place] < written.ends[place]:
            raise CommandError(f"{place} has an open transaction, which may be a redrive: try again later")
    chosen = {(letter.queue, letter.offset): letter for letter in letters}
    async for place, record in read_until_end(cluster, starts, READ_COMMITTED):
        noted = noted_offset(record, group)
        if noted is not None and (place, noted) in chosen:
            raise CommandError(f"{chosen[place, noted].name}: it was redriven already")


def letter_rows(letters: Iterable[DeadLetter]) -> list[Row]:
    """Returns a row for each letter."""
    return [
        {
            "letter": letter.name,
            "topic": letter.source.topic,
            "partition": letter.source.partition,
            "offset": letter.source_offset,
            "deliveries": letter.deliveries,
            "reason": letter.reason,
            "time": show_time(letter.timestamp),
            "redriven": None if letter.redriven_ms is None else show_time(letter.redriven_ms),
        }
        for letter in letters
    ]


def plan_rows(plans: Iterable[LetterPlan], result: str) -> list[Row]:
    """Returns a row for each letter of a redrive, with the result, or the error of its plan."""
    return [
        {
            "letter": plan.letter.name,
            "topic": plan.letter.source.topic,
            "partition": plan.letter.source.partition,
            "offset": plan.letter.source_offset,
            "reason": plan.letter.reason,
            **({"error": plan.error} if plan.error else {"record_from": plan.taken_from, "result": result}),
        }
        for plan in plans
    ]


def chosen_letters(letters: Sequence[DeadLetter], names: Sequence[str]) -> list[DeadLetter]:
    """Returns the letters with these names, in the order of the queue. Raises CommandError for an unknown one."""
    by_name = {letter.name: letter for letter in letters}
    if unknown := [name for name in names if name not in by_name]:
        raise misuse(f"letter {unknown[0][:40]}: the group has no such dead letter among those that were read")
    return sorted({by_name[name] for name in names}, key=lambda letter: (letter.queue, letter.offset))
