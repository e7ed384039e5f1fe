"""Requests that Apache Kafka never answers, though nothing is wrong with them, or an error would say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

RESOURCES: Final = frozenset({2, 4, 8, 16, 32})


def is_silent_over(request: Any) -> bool:
    rule = SILENT_OVER.get(type(request).__name__)
    return rule is not None and rule(request)


def names_partitions(request: Any) -> bool:
    """Of a share group, or all that it has: one that is not there, or not any more, keeps the answer from coming."""
    return any(group.topics is None or any(topic.partitions for topic in group.topics) for group in request.groups)


def has_a_doubled_strategy(request: Any) -> bool:
    """It counts as two members', and may be chosen though others cannot follow it."""
    names = [one.name for one in request.protocols]
    return len(names) > len(set(names))


def has_a_doubled_marker(request: Any) -> bool:
    """Two of one marker in one partition."""
    return any(len(named) > len(set(named)) for named in map(partitions_of, request.markers))


def partitions_of(marker: Any) -> list[tuple[str, int]]:
    return [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]


def has_no_records(request: Any) -> bool:
    return any(part.records is None for topic in request.topic_data for part in topic.partition_data)


def has_a_doubled_resource(request: Any) -> bool:
    """Types that there are not are one."""
    named = [(one.resource_type * (one.resource_type in RESOURCES), one.resource_name) for one in request.resources]
    return len(named) > len(set(named))


def has_no_transactions(request: Any) -> bool:
    """Since version 4 it answers behind the last of them."""
    return not request.transactions and not request.v3_and_below_topics


SILENT_OVER: Final[Mapping[str, Callable[[Any], bool]]] = {
    "AddPartitionsToTxnRequest": has_no_transactions,
    "AlterConfigsRequest": has_a_doubled_resource,
    "DescribeShareGroupOffsetsRequest": names_partitions,
    "JoinGroupRequest": has_a_doubled_strategy,
    "ProduceRequest": has_no_records,
    "WriteTxnMarkersRequest": has_a_doubled_marker,
}
