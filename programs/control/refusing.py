"""Answers that reject a part of a request: the partitions that a fault selects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Final, NamedTuple

from broker.requests.api import Api
from broker.requests.rejection import REPEATED
from programs.control.request_view import partition_number
from protocol.api_key import ApiKey
from protocol.schema import fields_of


class Parts(NamedTuple):
    """The names of the topic and partition lists of a request that is carried out partition by partition."""

    topics: str
    partitions: str


BY_PARTITION: Final[dict[int, Parts]] = {
    ApiKey.PRODUCE: Parts("topic_data", "partition_data"),
    ApiKey.LIST_OFFSETS: Parts("topics", "partitions"),
    ApiKey.OFFSET_COMMIT: Parts("topics", "partitions"),
    ApiKey.TXN_OFFSET_COMMIT: Parts("topics", "partitions"),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Parts("topics", "partitions"),
    ApiKey.DELETE_RECORDS: Parts("topics", "partitions"),
    ApiKey.OFFSET_DELETE: Parts("topics", "partitions"),
    ApiKey.DESCRIBE_PRODUCERS: Parts("topics", "partition_indexes"),
}


def split(request: object, parts: Parts, is_meant: Callable[[object, int], bool]) -> tuple[object, object]:
    """Returns two requests: the first with the selected partitions, the second with the rest. `is_meant` takes a
    topic's entry and a partition's number."""
    meant: list[object] = []
    rest: list[object] = []
    for topic in getattr(request, parts.topics) or ():
        partitions = getattr(topic, parts.partitions)
        chosen = [partition for partition in partitions if is_meant(topic, partition_number(partition))]
        others = [partition for partition in partitions if not is_meant(topic, partition_number(partition))]
        meant += [changed(topic, parts.partitions, chosen)] if chosen else []
        rest += [changed(topic, parts.partitions, others)] if others else []
    return changed(request, parts.topics, meant), changed(request, parts.topics, rest)


def changed(message: object, field: str, value: object) -> object:
    """Returns a copy of a message with another value of a field."""
    other = copy(message)
    setattr(other, field, value)
    return other


def is_empty(request: object, parts: Parts) -> bool:
    """True if a request names no partition."""
    return not getattr(request, parts.topics)


def joined(api: Api, response: object, refused: object) -> object:
    """Returns the response with the rejected partitions, which replace its own of the same name."""
    for field in fields_of(api.response):
        if field.name in REPEATED and field.kind.items is not None and field.kind.items.struct is not None:
            topics = [*getattr(response, field.name)]
            for topic in getattr(refused, field.name):
                put_topic(topics, topic)
            setattr(response, field.name, topics)
    return response


def put_topic(topics: list[object], topic: object) -> None:
    """Puts a topic's partitions into a list of topics; they replace entries of the same partitions."""
    name = partitions_field(topic)
    own = next((other for other in topics if identity_of(other) == identity_of(topic)), None)
    if own is None:
        topics.append(topic)
        return
    replaced = {partition_number(partition) for partition in getattr(topic, name)}
    others = [partition for partition in getattr(own, name) if partition_number(partition) not in replaced]
    setattr(own, name, [*others, *getattr(topic, name)])


def partitions_field(topic: object) -> str:
    """Returns the name of a topic's list of partitions in an answer."""
    return next(name for name in ("partitions", "partition_responses") if hasattr(topic, name))


def identity_of(topic: object) -> tuple[object, ...]:
    """Returns the fields that identify a topic."""
    return tuple(getattr(topic, field, None) for field in ("name", "topic", "topic_id"))


def in_other_order(topics: Sequence[object], rank: Callable[[tuple[object, ...], int], int]) -> list[object]:
    """Returns topics and their partitions, ordered by a rank of (topic, partition)."""
    for topic in topics:
        own, field = identity_of(topic), partitions_field(topic)
        ranked = [(rank(own, partition_number(part)), n, part) for n, part in enumerate(getattr(topic, field))]
        setattr(topic, field, [part for _, _, part in sorted(ranked)])
    return sorted(topics, key=lambda topic: rank(identity_of(topic), -1))
