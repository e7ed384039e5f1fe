"""Requests that Apache Kafka never answers, although they are valid, or an error would be right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

RESOURCES: Final = frozenset({2, 4, 8, 16, 32})


def is_silent_over(request: Any) -> bool:
    rule = SILENT_OVER.get(type(request).__name__)
    return rule is not None and rule(request)


def names_partitions(request: Any) -> bool:
    """Partitions of a share group, or all of them: a partition that doesn't exist, or no longer exists, prevents the
    answer."""
    return any(group.topics is None or any(topic.partitions for topic in group.topics) for group in request.groups)


def has_a_doubled_strategy(request: Any) -> bool:
    """A duplicate strategy counts as the strategy of two members, and may be chosen although other members don't
    support it."""
    names = [one.name for one in request.protocols]
    return len(names) > len(set(names))


def breaks_the_join(request: Any) -> bool:
    """When a classic group has all its members, Kafka reads their topics (ClassicGroup.computeSubscribedTopics)."""
    metadata = [one.metadata for one in request.protocols]
    return has_a_doubled_strategy(request) or (
        request.protocol_type == "consumer" and any(is_unforeseen(bytes(one)) for one in metadata)
    )


def is_unforeseen(metadata: bytes) -> bool:
    """True for a subscription on which Java's decoder raises a RuntimeException: a length that is negative, or larger
    than the rest. A subscription that ends too soon is expected."""
    if len(metadata) < 6:
        return False
    count, position = int.from_bytes(metadata[2:6], signed=True), 6
    if not 0 <= count <= len(metadata) - position:
        return True
    for _ in range(count):
        if len(metadata) - position < 2:
            return False
        length = int.from_bytes(metadata[position : position + 2], signed=True)
        position += 2
        if not 0 <= length <= len(metadata) - position:
            return True
        position += length
    user_data = metadata[position : position + 4]
    return len(user_data) == 4 and int.from_bytes(user_data, signed=True) > len(metadata) - position - 4


def has_a_doubled_marker(request: Any) -> bool:
    """A marker that is twice in one partition."""
    return any(len(named) > len(set(named)) for named in map(partitions_of, request.markers))


def partitions_of(marker: Any) -> list[tuple[str, int]]:
    return [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]


def has_no_records(request: Any) -> bool:
    return any(part.records is None for topic in request.topic_data for part in topic.partition_data)


def has_a_doubled_resource(request: Any) -> bool:
    """All unknown types count as one resource."""
    named = [(one.resource_type * (one.resource_type in RESOURCES), one.resource_name) for one in request.resources]
    return len(named) > len(set(named))


def has_no_transactions(request: Any) -> bool:
    """Since version 4 it answers after the last of them."""
    return not request.transactions and not request.v3_and_below_topics


SILENT_OVER: Final[Mapping[str, Callable[[Any], bool]]] = {
    "AddPartitionsToTxnRequest": has_no_transactions,
    "AlterConfigsRequest": has_a_doubled_resource,
    "DescribeShareGroupOffsetsRequest": names_partitions,
    "JoinGroupRequest": breaks_the_join,
    "ProduceRequest": has_no_records,
    "WriteTxnMarkersRequest": has_a_doubled_marker,
}
