"""The partitions of share sessions whose topics the member is no longer authorized to read (READ on the topic)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from broker.dispatch.call import Call
from broker.request.authorisation import READ_TOPIC, inside
from broker.share.sessions import PartitionId
from protocol.errors import ErrorCode, KafkaError

OF_SESSION: Final = inside("for each topic of the session", READ_TOPIC)
"""The rule of the topics, which include the session's topics that the request doesn't name."""

V = TypeVar("V")
Q = TypeVar("Q")


async def unreadable(call: Call[Q], partition_ids: Iterable[PartitionId]) -> dict[PartitionId, KafkaError]:
    """Returns the partitions whose topics the client may not read, with the error of each. An unknown id gets a
    different error elsewhere."""
    if call.host.authorizer is None:
        return {}
    image = call.broker.image
    named = list(partition_ids)  # a session may change between the turns
    topics = await call.turns().map(lambda partition_id: image.topic_by_id(partition_id.topic_id), named)
    readable = await call.permitted(READ_TOPIC, (topic.name for topic in topics if topic is not None))
    error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return {
        partition_id: error
        for partition_id, topic in zip(named, topics, strict=True)
        if topic is not None and topic.name not in readable
    }


async def take_unreadable(call: Call[Q], acknowledgements: dict[PartitionId, V]) -> dict[PartitionId, KafkaError]:
    """Removes the acknowledgements of topics that the client may not read, and returns their errors."""
    denied = await unreadable(call, acknowledgements)
    for partition_id in denied:
        del acknowledgements[partition_id]
    return denied
