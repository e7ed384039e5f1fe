"""Answers that refuse a request, or a part of it, for any API: made of the schemas of its two messages.

An answer repeats the lists of its request, and has an error for each of their entries; or it has one error for all.
Source: `getErrorResponse` of the classes in org.apache.kafka.common.requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Final, NamedTuple

from broker.requests.api import Api
from programs.control.request_view import PARTITION_LISTS, TOPIC_NAMES, partition_number
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.schema import Field, fields_of

ANSWERED: Final[dict[str, tuple[str, ...]]] = {
    "coordinators": ("coordinator_keys",),
    "groups": ("groups", "group_ids"),
    "markers": ("markers",),
    "members": ("members",),
    "partition_responses": ("partition_data",),
    "partitions": PARTITION_LISTS,
    "responses": ("topic_data", "topics", "topic_names", "resources"),
    "results": ("topics", "resources", "groups_names"),
    "results_by_partition": ("partitions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "results_by_transaction": ("transactions",),
    "topic_results": ("topics",),
    "topics": ("topics",),
    "transaction_states": ("transactional_ids",),
}
"""A list in an answer, and the lists of requests that it repeats."""

ERROR_FIELDS: Final = ("error_code", "partition_error_code")
KEY_FIELDS: Final = (*TOPIC_NAMES, "key", "group_id", "transactional_id")
"""The field of an entry that repeats a request's text."""
NUMBER_FIELDS: Final = ("index", "partition", "partition_index")


class Parts(NamedTuple):
    """The lists of a request that is carried out partition by partition."""

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


def refusal(api: Api, request: object, code: ErrorCode) -> object:
    """Returns the response that refuses all of a request."""
    if api.refuse is not None:
        return api.refuse(request, KafkaError(code))
    response = api.response()
    for field in fields_of(api.response):
        if field.name in ERROR_FIELDS:
            setattr(response, field.name, int(code))
        elif (entries := repeated(field, request, code)) is not None:
            setattr(response, field.name, entries)
    return response


def repeated(field: Field, request: object, code: ErrorCode) -> list[object] | None:
    """Returns the entries of a list in an answer, with the error; None of one that repeats no list of the request."""
    struct = None if field.kind.items is None else field.kind.items.struct
    if struct is None:
        return None
    sources = [source for source in ANSWERED.get(field.name, ()) if hasattr(request, source)]
    items = [item for source in sources for item in getattr(request, source) or ()]
    return [entry(struct, item, code) for item in items] if sources else None


def entry(struct: type, item: object, code: ErrorCode) -> object:
    """Returns an entry that repeats an item of a request, with the error."""
    made = struct()
    for field in fields_of(struct):
        if field.name in ERROR_FIELDS:
            setattr(made, field.name, int(code))
        elif (entries := repeated(field, item, code)) is not None:
            setattr(made, field.name, entries)
        elif isinstance(item, str):
            if field.name in KEY_FIELDS:
                setattr(made, field.name, item)
        elif field.name in NUMBER_FIELDS:
            setattr(made, field.name, partition_number(item))
        elif hasattr(item, field.name) and field.kind.items is None:
            setattr(made, field.name, getattr(item, field.name))
    return made


def split(request: object, parts: Parts, is_meant: Callable[[object, int], bool]) -> tuple[object, object]:
    """Returns two requests: one of the partitions that are meant, one of the rest. `is_meant` is asked with a topic's
    entry and a partition's number."""
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
    """True where a request names no partition."""
    return not getattr(request, parts.topics)


def joined(api: Api, response: object, refused: object) -> object:
    """Returns the response with the refused partitions among its own, in place of any that it has of the same name."""
    for field in fields_of(api.response):
        if ANSWERED.get(field.name) and field.kind.items is not None and field.kind.items.struct is not None:
            topics = [*getattr(response, field.name)]
            for topic in getattr(refused, field.name):
                put_topic(topics, topic)
            setattr(response, field.name, topics)
    return response


def put_topic(topics: list[object], topic: object) -> None:
    """Puts a topic's partitions in a list of topics, in place of what it has of them."""
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
    """Returns the fields that say which topic it is."""
    return tuple(getattr(topic, field, None) for field in ("name", "topic", "topic_id"))


def in_other_order(topics: Sequence[object], rank: Callable[[tuple[object, ...], int], int]) -> list[object]:
    """Returns topics, and their partitions, in the order of a rank of (topic, partition)."""
    for topic in topics:
        own, field = identity_of(topic), partitions_field(topic)
        ranked = [(rank(own, partition_number(one)), n, one) for n, one in enumerate(getattr(topic, field))]
        setattr(topic, field, [one for _, _, one in sorted(ranked)])
    return sorted(topics, key=lambda topic: rank(identity_of(topic), -1))
