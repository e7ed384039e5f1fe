"""The records of a share group from the start offsets on, and why each is not delivered.

Odradek's brokers answer by an API of their own. Other clusters' APIs return only the stored states: records that a
member holds now look like records that were not delivered yet.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from cli.times import show_time
from client.errors import UnsupportedVersion
from commands.client.cluster_client import ClusterClient, outcome
from commands.errors import CommandError, explain
from commands.printing import Row, error_of
from commands.records.positions import Bounds, bounds
from commands.shares.offsets import DELIVERY_STATES, share_rows, stored_states
from protocol.errors import ErrorCode
from protocol.messages.describe_share_group_records import (
    NOT_IN_FLIGHT,
    DeliveryReason,
    DescribeShareGroupRecordsRequest,
    DescribeShareGroupRecordsRequestPartition,
    DescribeShareGroupRecordsRequestTopic,
    DescribeShareGroupRecordsResponse,
    DescribeShareGroupRecordsResponsePartition,
    RecordRange,
)
from protocol.messages.metadata import MetadataResponseTopic
from protocol.messages.read_share_group_state import StateBatch
from protocol.types import TopicPartition

R = TypeVar("R")

STATES: Final = {**DELIVERY_STATES, -1: "delayed", NOT_IN_FLIGHT: "new"}

WHY: Final[Mapping[DeliveryReason, str]] = {
    DeliveryReason.OFFERED: "a fetch waits and gets it at once",
    DeliveryReason.DONE: "it is done",
    DeliveryReason.HELD: "a member has it, until its lock ends or it acknowledges the record",
    DeliveryReason.CHANGING: "the change of its state is being written",
    DeliveryReason.BACKOFF: "it was released, and the pause before its next delivery is not over",
    DeliveryReason.SCHEDULED: "its delivery time has not come",
    DeliveryReason.KEY_HELD: "it waits for a record with the same key",
    DeliveryReason.BURYING: "its dead letter is being written",
    DeliveryReason.WINDOW_FULL: "the group has as many records in flight as share.partition.max.record.locks allows",
    DeliveryReason.OPEN_TRANSACTION: "the group reads committed records only, and an earlier transaction is open",
    DeliveryReason.UNREAD: "it was not read since the share partition was loaded",
    DeliveryReason.NO_MEMBER: "no member fetches from the partition",
    DeliveryReason.NOT_FETCHED: "the members have other records, and the next fetch gets it",
    DeliveryReason.ABSENT: "the log does not have it any longer",
}

NOT_LIVE: Final = "no member fetches from the partition; this is the stored state"
STORED: Final = "stored state: Kafka's APIs don't return what members hold now"
UNKNOWN: Final = "not delivered yet, or held by a member: Kafka's APIs don't say"

NO_API: Final = (
    "the cluster's brokers are not Odradek's: Kafka's APIs return the stored states, but not the records that members "
    "hold now, their locks, or why a record waits"
)


class ShareRange(NamedTuple):
    """Consecutive records of a share partition with the same state."""

    first: int
    last: int
    state: str
    """A value of STATES."""
    deliveries: int
    why: str
    reason: str = ""
    """The name of the DeliveryReason; empty if it is unknown."""
    member: str = ""
    until_ms: int | None = None
    """The end of the lock or the delay, by the broker's clock."""
    left_ms: int | None = None
    """The time until then, when the broker answered."""
    waits_for: int | None = None
    """The offset of a record with the same key."""


class SharePartitionRecords(NamedTuple):
    """A share partition with its records from the start offset on."""

    place: TopicPartition
    start: int | None
    end: int | None
    """The offset after the last record."""
    ranges: Sequence[ShareRange] = ()
    next_offset: int | None = None
    """The offset after the ranges, if there are more."""
    is_live: bool = False
    """True if the leader answered, with what members hold now."""
    sessions: int = 0
    waiting: int = 0
    error: str = ""

    @property
    def is_dark(self) -> bool:
        """True if the leader has no records in flight, because no member fetches from the partition."""
        return not self.is_live and not self.error


class ShareGroupRecords(NamedTuple):
    """The records of a share group."""

    partitions: Sequence[SharePartitionRecords]
    options: DescribeShareGroupRecordsResponse | None
    """An answer, for the group's options; None if no broker has the API."""

    @property
    def has_api(self) -> bool:
        return self.options is not None


async def group_records(
    cluster: ClusterClient,
    group: str,
    *,
    most: int = 1000,
    only: TopicPartition | None = None,
    first_offset: int = -1,
) -> ShareGroupRecords:
    """Returns up to `most` ranges of each share partition, or of one, from an offset on."""
    rows = [row for row in await share_rows(cluster, group) if only in (None, _place(row))]
    starts = {_place(row): start if isinstance(start := row["start"], int) else None for row in rows}
    errors = {_place(row): str(row["error"]) for row in rows if row.get("error")}
    if only is not None and only not in starts:
        raise CommandError(f"{only}: group {group} has no state of this partition")
    if not starts:
        return ShareGroupRecords((), await _options(cluster, group))
    topics = await cluster.topics(sorted({place.topic for place in starts}))
    asked = dict.fromkeys(starts, first_offset)
    answers = await _ask_leaders(cluster, group, topics, asked, most)
    read: dict[TopicPartition, SharePartitionRecords] = {}
    options = None
    for answer in answers:
        if isinstance(answer, DescribeShareGroupRecordsResponse):
            options = options or answer
            read |= {place: _live(place, described, answer) for place, described in _partitions(answer)}
        elif answer.asked is not None:
            failed = SharePartitionRecords(answer.asked[0], None, None, error=answer.error)
            read |= {place: failed._replace(place=place, start=starts[place]) for place in answer.asked}
    dark = {place: start for place, start in starts.items() if place not in read or read[place].is_dark}
    stored = await _stored(cluster, group, dark, errors, read)
    return ShareGroupRecords([(read | stored)[place] for place in sorted(starts)], options)


async def all_group_records(cluster: ClusterClient, group: str) -> ShareGroupRecords:
    """Returns all ranges of all share partitions, page by page."""
    records = await group_records(cluster, group)
    partitions: list[SharePartitionRecords] = []
    for partition in records.partitions:
        ranges, page = list(partition.ranges), partition
        while page.next_offset is not None:
            following = await group_records(cluster, group, only=page.place, first_offset=page.next_offset)
            (page,) = following.partitions
            ranges += page.ranges
        partitions.append(partition._replace(ranges=ranges, next_offset=None, error=partition.error or page.error))
    return records._replace(partitions=partitions)


def _place(row: Row) -> TopicPartition:
    return TopicPartition(str(row["topic"]), int(str(row["partition"])))


class _NoAnswer(NamedTuple):
    """A leader that didn't answer; `asked` is None if it doesn't have the API."""

    asked: Sequence[TopicPartition] | None
    error: str = ""


async def _options(cluster: ClusterClient, group: str) -> DescribeShareGroupRecordsResponse | None:
    """Asks any broker for the group's options; None if it doesn't have the API."""
    request = DescribeShareGroupRecordsRequest(group_id=group, topics=[])
    answer = await outcome(_if_served(cluster.any(request, DescribeShareGroupRecordsResponse)))
    return answer if isinstance(answer, DescribeShareGroupRecordsResponse) and not answer.error_code else None


async def _if_served(awaitable: Awaitable[R]) -> R | None:
    """Returns an answer; None if the broker doesn't have the API."""
    try:
        return await awaitable
    except UnsupportedVersion:
        return None


async def _ask_leaders(
    cluster: ClusterClient,
    group: str,
    topics: Sequence[MetadataResponseTopic],
    first_offsets: Mapping[TopicPartition, int],
    most: int,
) -> list[DescribeShareGroupRecordsResponse | _NoAnswer]:
    """Asks the leader of each partition."""
    by_leader: dict[int, list[TopicPartition]] = {}
    for topic in topics:
        for partition in topic.partitions:
            place = TopicPartition(topic.name or "", partition.partition_index)
            if place in first_offsets:
                by_leader.setdefault(partition.leader_id, []).append(place)
    lost = by_leader.pop(-1, [])

    async def ask(leader: int, places: list[TopicPartition]) -> DescribeShareGroupRecordsResponse | _NoAnswer:
        request = _request(group, {place: first_offsets[place] for place in places}, most)
        answer = await outcome(_if_served(cluster.node(leader, request, DescribeShareGroupRecordsResponse)))
        if answer is None:
            return _NoAnswer(None)
        if isinstance(answer, CommandError):
            return _NoAnswer(places, answer.message)
        if answer.error_code:
            return _NoAnswer(places, explain(answer.error_code, answer.error_message))
        return answer

    answers = await cluster.together(ask(leader, places) for leader, places in by_leader.items())
    return [*answers, _NoAnswer(lost, explain(ErrorCode.LEADER_NOT_AVAILABLE))] if lost else answers


def _request(group: str, first_offsets: Mapping[TopicPartition, int], most: int) -> DescribeShareGroupRecordsRequest:
    topics: dict[str, list[DescribeShareGroupRecordsRequestPartition]] = {}
    for (topic, index), first in first_offsets.items():
        entry = DescribeShareGroupRecordsRequestPartition(partition_index=index, first_offset=first)
        topics.setdefault(topic, []).append(entry)
    return DescribeShareGroupRecordsRequest(
        group_id=group,
        max_ranges=most,
        topics=[
            DescribeShareGroupRecordsRequestTopic(topic_name=name, partitions=entries)
            for name, entries in topics.items()
        ],
    )


def _partitions(
    answer: DescribeShareGroupRecordsResponse,
) -> Iterator[tuple[TopicPartition, DescribeShareGroupRecordsResponsePartition]]:
    for topic in answer.topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.topic_name, partition.partition_index), partition


def _live(
    place: TopicPartition,
    described: DescribeShareGroupRecordsResponsePartition,
    answer: DescribeShareGroupRecordsResponse,
) -> SharePartitionRecords:
    if described.error_code:
        error = explain(described.error_code, described.error_message)
        return SharePartitionRecords(place, None, None, error=error)
    return SharePartitionRecords(
        place,
        described.start_offset,
        described.high_watermark,
        [_live_range(entry, answer.now_ms) for entry in described.ranges],
        described.next_offset if described.next_offset >= 0 else None,
        described.is_active,
        described.session_count,
        described.waiting_count,
    )


def _live_range(described: RecordRange, now_ms: int) -> ShareRange:
    try:
        reason = DeliveryReason(described.reason)
        why, name = WHY[reason], reason.name
    except ValueError:  # of a newer broker
        why, name = f"reason {described.reason}", ""
    if described.waits_for >= 0:
        why = f"it waits for offset {described.waits_for}, which has the same key"
    has_time = described.until_ms >= 0
    return ShareRange(
        described.first_offset,
        described.last_offset,
        STATES.get(described.delivery_state, str(described.delivery_state)),
        described.delivery_count,
        why,
        name,
        described.member_id or "",
        described.until_ms if has_time else None,
        max(described.until_ms - now_ms, 0) if has_time else None,
        described.waits_for if described.waits_for >= 0 else None,
    )


async def _stored(
    cluster: ClusterClient,
    group: str,
    starts: Mapping[TopicPartition, int | None],
    errors: Mapping[TopicPartition, str],
    served: Collection[TopicPartition],
) -> dict[TopicPartition, SharePartitionRecords]:
    """Returns the stored states of share partitions. Records after them were not delivered, as far as is known; the
    leaders of `served` say that no member has any."""
    if not starts:
        return {}
    limits = await bounds(cluster, starts)
    states = await stored_states(cluster, group, starts)
    return {
        place: _of_states(place, start, states.get(place, []), limits, errors.get(place, ""), has_api=place in served)
        for place, start in starts.items()
    }


def _of_states(
    place: TopicPartition,
    start: int | None,
    states: list[StateBatch] | CommandError,
    limits: Bounds,
    error: str,
    *,
    has_api: bool,
) -> SharePartitionRecords:
    error = error or limits.errors.get(place, "")
    end = limits.ends.get(place)
    if isinstance(states, CommandError):
        error = error or states.message
        states = []
    if start is None or end is None:
        return SharePartitionRecords(place, start, end, error=error)
    ranges: list[ShareRange] = []
    at = start
    stored, rest, reason = (NOT_LIVE, WHY[DeliveryReason.NO_MEMBER], "NO_MEMBER") if has_api else (STORED, UNKNOWN, "")

    def add_new(last: int) -> None:
        if last >= at and not error:
            ranges.append(ShareRange(at, last, STATES[NOT_IN_FLIGHT], 0, rest, reason))

    for batch in sorted(states, key=lambda batch: batch.first_offset):
        first = max(batch.first_offset, at)
        if batch.last_offset < first:
            continue
        add_new(first - 1)
        state = STATES.get(batch.delivery_state, str(batch.delivery_state))
        ranges.append(ShareRange(first, batch.last_offset, state, batch.delivery_count, stored))
        at = batch.last_offset + 1
    add_new(end - 1)
    return SharePartitionRecords(place, start, end, ranges, error=error)


def record_rows(records: ShareGroupRecords) -> list[Row]:
    """Returns a row for each range, and for each partition with an error."""
    rows: list[Row] = []
    for partition in records.partitions:
        head = {"topic": partition.place.topic, "partition": partition.place.partition}
        for entry in partition.ranges:
            until = {} if entry.until_ms is None else {"until": show_time(entry.until_ms)}
            waits = {} if entry.waits_for is None else {"waits_for": entry.waits_for}
            member = {"member": entry.member} if entry.member else {}
            rows.append(
                {
                    **head, "first": entry.first, "last": entry.last, "state": entry.state,
                    "deliveries": entry.deliveries, **member, **until, **waits, "why": entry.why,
                }
            )  # fmt: skip
        if partition.error:
            rows.append({**head, **error_of(partition.error)})
    return rows
