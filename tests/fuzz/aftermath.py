"""Requests about the final state of a world, to compare two worlds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.share_group_describe import ShareGroupDescribeRequest
from protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from tests.fuzz.twins import Twins
from tests.group_requests import offset_fetch

TOPIC_RESOURCE = 2
EARLIEST, LATEST = -2, -1
PARTITIONS = 4


def questions(twins: Twins) -> Iterator[tuple[Sequence[Any], int]]:
    """Yields requests for both brokers, with their versions."""
    vocabulary = twins.vocabularies[0]
    groups = [group.name for group in vocabulary.groups]
    topics = [*vocabulary.topics, *(f"{vocabulary.prefix}-{number}" for number in range(6))]
    for request, version in (
        (MetadataRequest(topics=None), 12),
        (DescribeConfigsRequest(resources=[
            DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None)
            for name in topics
        ]), 4),
        (ListGroupsRequest(), 5),
        (DescribeGroupsRequest(groups=groups), 6),
        (ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=False), 1),
        (ShareGroupDescribeRequest(group_ids=groups, include_authorized_operations=False), 1),
        (StreamsGroupDescribeRequest(group_ids=groups, include_authorized_operations=False), 1),
        (ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 2),
        (DescribeTransactionsRequest(transactional_ids=[one.name for one in vocabulary.transactionals]), 0),
        (DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[0, 1]) for name in topics]), 0),
        *((ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=[
            ListOffsetsTopic(name=name, partitions=[
                ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in range(PARTITIONS)
            ]) for name in topics
        ]), 7) for timestamp in (EARLIEST, LATEST) for isolation in (0, 1)),
        *((offset_fetch(name), 8) for name in groups),
        *((DescribeShareGroupOffsetsRequest(groups=[
            DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None)
        ]), 1) for name in groups),
    ):  # fmt: skip
        yield (request, request), version
