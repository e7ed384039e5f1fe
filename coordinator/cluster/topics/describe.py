"""Answers DescribeTopicPartitions: partitions in order, page by page (KIP-966).

Source: Kafka's DescribeTopicPartitionsRequestHandler and KRaftMetadataCache.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable

from coordinator.cluster.image import Image
from coordinator.cluster.topics import names
from coordinator.cluster.topics.topic import NO_LEADER, PartitionRegistration, Topic
from protocol.errors import ErrorCode
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from protocol.types import NO_UUID

MAX_PARTITIONS = 2_000
"""Default of max.request.partition.size.limit: the number of partitions in one response."""


def describe_topic_partitions(
    image: Image,
    request: DescribeTopicPartitionsRequest,
    listener: str,
    may_describe: Callable[[str], bool] = lambda name: True,
    max_partitions: int = MAX_PARTITIONS,
) -> Generator[None, None, DescribeTopicPartitionsResponse]:
    """Returns the named topics, or all, in order of name, from the cursor on. A named topic that the client may not
    describe gets an error. Yields after each topic, so that the caller can do other work.

    For an invalid cursor, each named topic gets INVALID_REQUEST.
    """
    every = not request.topics
    start = request.cursor
    if start is not None and not _is_cursor(start, request):
        refused: list[DescribeTopicPartitionsResponseTopic] = []
        for named in request.topics:
            yield
            refused.append(_topic(named.name, ErrorCode.INVALID_REQUEST))
            refused[-1].is_internal = False  # the names were ignored
        return DescribeTopicPartitionsResponse(topics=refused)
    requested = _asked_for(image, request)
    allowed: list[str] = []
    for name in requested:
        yield
        if may_describe(name):
            allowed.append(name)
    limit = max(min(max_partitions, request.response_partition_limit), 1)
    first_index = {start.topic_name: start.partition_index} if start is not None else {}
    response = yield from _page(image, allowed, listener, first_index, limit, every)
    denied = set(() if every else requested).difference(allowed)
    for name in requested if denied else ():
        yield
        if name in denied:
            response.topics.append(_topic(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    return response


def _is_cursor(cursor: Cursor, request: DescribeTopicPartitionsRequest) -> bool:
    """True if the cursor points to a partition of a requested topic."""
    named = {topic.name for topic in request.topics}
    return cursor.partition_index >= 0 and (not named or cursor.topic_name in named)


def _asked_for(image: Image, request: DescribeTopicPartitionsRequest) -> list[str]:
    names = image.topic_names() if not request.topics else sorted({topic.name for topic in request.topics})
    start = "" if request.cursor is None else request.cursor.topic_name
    return [name for name in names if name >= start]


def _page(
    image: Image, asked: Iterable[str], listener: str, first_index: dict[str, int], limit: int, every: bool
) -> Generator[None, None, DescribeTopicPartitionsResponse]:
    response = DescribeTopicPartitionsResponse(topics=[])
    for name in asked:
        yield
        if limit <= 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topic(name)
        if topic is None:
            if not every:
                response.topics.append(_topic(name, names.absence(name)))
            continue
        first = first_index.get(name, 0)
        end = min(first + limit, len(topic.partitions))
        described = _topic(name, ErrorCode.NONE)
        described.topic_id = topic.topic_id
        described.partitions = [_partition(image, topic, index, listener) for index in range(first, end)]
        response.topics.append(described)
        if end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
        limit -= max(end - first, 0)
    return response


def _topic(name: str, error: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=error, name=name, topic_id=NO_UUID, is_internal=names.is_internal(name), partitions=[]
    )


def _partition(image: Image, topic: Topic, index: int, listener: str) -> DescribeTopicPartitionsResponsePartition:
    partition = topic.partitions[index]
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE,
        partition_index=index,
        leader_id=partition.leader if is_reachable(image, partition.leader, listener) else NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(image, partition, listener),
    )


def is_reachable(image: Image, broker_id: int, listener: str) -> bool:
    """True if the broker is unfenced and has a listener of this name."""
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced and broker.endpoint(listener) is not None


def offline_replicas(image: Image, partition: PartitionRegistration, listener: str) -> list[int]:
    """Returns the replicas whose broker is fenced, not registered or not on this listener, or whose directory is
    offline.
    """
    return [broker_id for broker_id in partition.replicas if _is_offline(image, partition, broker_id, listener)]


def _is_offline(image: Image, partition: PartitionRegistration, broker_id: int, listener: str) -> bool:
    if not is_reachable(image, broker_id, listener):
        return True
    directory = partition.directory_of(broker_id)
    return not image.brokers[broker_id].has_online(directory)
