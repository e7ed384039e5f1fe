"""DescribeShareGroupRecords (19000): describes the records of share groups in flight, and why each is not delivered.

An API of Odradek's own, which Apache Kafka has no counterpart of. It is answered by the leader of a partition, because
only the leader knows the members that have records, their locks and the delays. It changes nothing: a share partition
that isn't loaded stays so. A page has at most MAX_RANGES ranges; the next page begins where it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from broker.dispatch.api import SHARE_GROUPS, Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.rules import each, in_order, of_group, whole
from broker.handlers.share_fetch import isolation
from broker.request.authorisation import DESCRIBE_GROUP, DESCRIBE_TOPIC
from broker.share.acknowledging import code_of, message_of
from broker.share.sessions import PartitionId, ShareSession
from coordinator.share_partition.description import LogAndMembers, describe
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_share_group_records import (
    DescribeShareGroupRecordsRequest,
    DescribeShareGroupRecordsRequestTopic,
    DescribeShareGroupRecordsResponse,
    DescribeShareGroupRecordsResponsePartition,
    DescribeShareGroupRecordsResponseTopic,
)
from protocol.types import NO_UUID, Uuid

MAX_RANGES: Final = 1000
"""Maximum number of ranges of one partition in an answer. They take some milliseconds, in one turn."""

MAX_RANGES_TOGETHER: Final = 10_000
"""Maximum number of ranges of an answer, about a megabyte as objects; more partitions are answered without ranges. A
thread encodes an answer with more than a thousand."""


class Asked(NamedTuple):
    """A topic of the request, with the first offset to describe of each partition."""

    name: str
    topic_id: Uuid
    first_offsets: dict[int, int]


class Page:
    """The answer to one request, with the number of ranges that it may still have."""

    def __init__(self, call: Call[DescribeShareGroupRecordsRequest], sessions: Sequence[ShareSession]) -> None:
        self._call = call
        self._groups = call.broker.share_groups
        self._group_id = call.request.group_id
        self._isolation = isolation(self._groups.config(self._group_id).share_isolation_level)
        self._sessions = sessions
        self._left = MAX_RANGES_TOGETHER

    def partition(self, named: PartitionId, first_offset: int) -> DescribeShareGroupRecordsResponsePartition:
        """Returns a partition with its ranges, or with its error."""
        answer = DescribeShareGroupRecordsResponsePartition(partition_index=named.partition, ranges=[])
        try:
            partition = self._groups.partition(named)
        except KafkaError as error:
            answer.error_code, answer.error_message = code_of(error), message_of(error)
            return answer
        log = partition.snapshot(self._isolation)
        answer.leader_epoch = partition.leader_epoch
        answer.log_start_offset = log.log_start_offset
        answer.high_watermark, answer.last_stable_offset = log.high_watermark, log.last_stable_offset
        answer.session_count = sum(named in session.partitions for session in self._sessions)
        hosted = self._groups.find(self._group_id, named)
        if hosted is None or not hosted.machine.is_active:
            return answer
        machine = hosted.machine
        answer.is_active = True
        answer.start_offset = machine.start_offset
        answer.end_offset = machine.start_offset - 1 if machine.is_drained else machine.end_offset
        answer.waiting_count = len(hosted.queue)
        around = LogAndMembers(log.high_watermark, log.end, answer.session_count, answer.waiting_count)
        most = min(self._call.request.max_ranges, MAX_RANGES, self._left)
        answer.ranges, answer.next_offset = describe(machine, around, first_offset, most)
        self._left -= len(answer.ranges)
        self._call.announce(len(answer.ranges))
        return answer


async def describe_share_group_records(
    call: Call[DescribeShareGroupRecordsRequest],
) -> DescribeShareGroupRecordsResponse:
    request, groups, turns = call.request, call.broker.share_groups, call.turns()
    if request.max_ranges < 1:
        message = f"max_ranges {request.max_ranges}: expected 1 or more"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    page = Page(call, groups.sessions.of_group(request.group_id))
    topics: list[DescribeShareGroupRecordsResponseTopic] = []
    for name, topic_id, first_offsets in asked_topics(call):
        call.count(len(first_offsets))
        partitions: list[DescribeShareGroupRecordsResponsePartition] = []
        for index, first_offset in first_offsets.items():
            await turns.next()
            partitions.append(page.partition(PartitionId(topic_id, index), first_offset))
        topics.append(DescribeShareGroupRecordsResponseTopic(topic_name=name, topic_id=topic_id, partitions=partitions))
    config = groups.config(request.group_id)
    return DescribeShareGroupRecordsResponse(
        error_code=ErrorCode.NONE,
        now_ms=call.now_ms,
        max_delivery_count=config.share_delivery_count_limit,
        max_in_flight_records=config.share_partition_max_record_locks,
        lock_duration_ms=config.share_record_lock_duration_ms,
        isolation_level=isolation(config.share_isolation_level),
        is_ordered_by_key=config.odradek_share_order_by_key,
        topics=topics,
    )


def asked_topics(call: Call[DescribeShareGroupRecordsRequest]) -> list[Asked]:
    """Returns the topics of the request, each once. A topic that doesn't exist has no id."""
    asked: dict[str, Asked] = {}
    for requested in call.request.topics:
        topic = call.broker.image.topic(requested.topic_name)
        entry = Asked(requested.topic_name, NO_UUID if topic is None else topic.topic_id, {})
        asked.setdefault(entry.name, entry).first_offsets.update(
            (partition.partition_index, partition.first_offset) for partition in requested.partitions
        )
    return list(asked.values())


def name_of(_: object, topic: DescribeShareGroupRecordsRequestTopic) -> str:
    return topic.topic_name


API = Api(
    DescribeShareGroupRecordsRequest,
    DescribeShareGroupRecordsResponse,
    describe_share_group_records,
    authorize=in_order(whole(DESCRIBE_GROUP, of_group), each(DESCRIBE_TOPIC, name_of=name_of, beside_error=False)),
    protocol=SHARE_GROUPS,
    entries=(
        Entries("topics", "topics", Entries("partitions", "partitions", key="partition_index"), key="topic_name"),
    ),
    explains=True,
)
