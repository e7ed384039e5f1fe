"""Answers for partitions that don't exist, which a broker gives to requests about the offsets of a group, beside its
coordinator's answers to the others."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from copy import copy
from typing import Final, TypeVar

from broker.dispatch.call import Call
from broker.dispatch.rejection import rejected
from coordinator.cluster.topics.topic import Topic
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_commit import OffsetCommitRequestTopic, OffsetCommitResponseTopic
from protocol.messages.offset_delete import OffsetDeleteRequestTopic, OffsetDeleteResponseTopic
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequestTopic, TxnOffsetCommitResponseTopic
from protocol.types import NO_UUID

UNKNOWN_ID: Final = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
UNKNOWN_PARTITION: Final = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

Q = TypeVar("Q")
T = TypeVar("T", OffsetCommitRequestTopic, TxnOffsetCommitRequestTopic, OffsetDeleteRequestTopic)
A = TypeVar("A", OffsetCommitResponseTopic, TxnOffsetCommitResponseTopic, OffsetDeleteResponseTopic)


def take_absent(call: Call[Q], topics: list[T], answer: type[A], *, by_id: bool = False) -> tuple[list[T], list[A]]:
    """Returns the topics with their existing partitions, names and ids, and the answers for the other partitions."""
    existing: list[T] = []
    absent: list[A] = []
    for topic in topics:
        image = topic_of(call, topic, by_id=by_id)
        if image is None:
            absent.append(rejected(answer, call.version, UNKNOWN_ID if by_id else UNKNOWN_PARTITION, topic))
            continue
        missing = [partition for partition in topic.partitions if partition.partition_index not in image.partitions]
        if missing:
            part = copy(topic)
            part.partitions = missing
            absent.append(rejected(answer, call.version, UNKNOWN_PARTITION, part))
            topic.partitions = [p for p in topic.partitions if p.partition_index in image.partitions]
        if topic.partitions:
            existing.append(topic)
    return existing, absent


def topic_of(call: Call[Q], topic: T, *, by_id: bool) -> Topic | None:
    """Returns the topic that a request names, None for an unknown one. Sets its name and its id in the request."""
    if isinstance(topic, OffsetDeleteRequestTopic):
        return call.host.image.topic(topic.name)
    image = call.topic_by_id(topic.topic_id) if by_id else call.host.image.topic(topic.name)
    if image is not None:
        topic.name, topic.topic_id = image.name, image.topic_id
    return image


def merged(absent: Iterable[A], answered: list[A]) -> list[A]:
    """Merges two lists of answers. Returns the answers for absent partitions first, and a topic that is in both lists
    once; the coordinator's answer unchanged if no partition is absent. Source: the builders of OffsetCommitResponse,
    TxnOffsetCommitResponse and OffsetDeleteResponse."""
    topics: dict[Hashable, A] = {}
    for topic in absent:
        add(topics, topic)
    if not topics:
        return answered
    for topic in answered:
        add(topics, topic)
    return list(topics.values())


def add(topics: dict[Hashable, A], topic: A) -> None:
    first = topics.setdefault((topic.name, getattr(topic, "topic_id", NO_UUID)), topic)
    if first is not topic:
        first.partitions += topic.partitions
