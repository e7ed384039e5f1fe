"""The common parts of ConsumerGroupDescribe and ShareGroupDescribe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from coordinator.cluster.topics.topic import Topic
from coordinator.group.state import TopicLookup
from protocol.errors import KafkaError
from protocol.messages import consumer_group_describe, share_group_describe
from protocol.types import Uuid

D = TypeVar("D", consumer_group_describe.DescribedGroup, share_group_describe.DescribedGroup)


def undescribed(described_group: type[D], group_id: str, error: KafkaError) -> D:
    """Returns the answer for a group that can't be described, with the error."""
    return described_group(
        error_code=error.code,
        error_message=error.message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )


def existing_topics(partitions: Mapping[Uuid, Iterable[int]], topics: TopicLookup) -> Iterator[tuple[Topic, list[int]]]:
    """Yields each topic that still exists, with its partitions in order."""
    for topic_id, indexes in partitions.items():
        topic = topics.topic_by_id(topic_id)
        if topic is not None:
            yield topic, sorted(indexes)
