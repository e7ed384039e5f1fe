"""The partitions of share sessions whose topics the member may not read by now (READ on the topic)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from broker.exchange.authorisation import READ_TOPIC
from broker.requests.call import Call
from broker.share.sessions import PartitionId
from protocol.errors import ErrorCode, KafkaError

V = TypeVar("V")
Q = TypeVar("Q")


def unreadable(call: Call[Q], partition_ids: Iterable[PartitionId]) -> dict[PartitionId, KafkaError]:
    """Returns the partitions whose topics the client may not read, with the error of each; an unknown id is another
    matter."""
    if not call.host.authorizes:
        return {}
    image = call.broker.image
    topics = ((partition_id, image.topic_by_id(partition_id.topic_id)) for partition_id in partition_ids)
    return {
        partition_id: KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        for partition_id, topic in topics
        if topic is not None and not call.may(READ_TOPIC, topic.name)
    }


def take_unreadable(call: Call[Q], acknowledgements: dict[PartitionId, V]) -> dict[PartitionId, KafkaError]:
    """Removes the acknowledgements of topics that the client may not read, and returns their errors."""
    denied = unreadable(call, acknowledgements)
    for partition_id in denied:
        del acknowledgements[partition_id]
    return denied
