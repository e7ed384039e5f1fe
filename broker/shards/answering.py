"""Merges a coordinator's answers with its broker's own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from protocol.messages.offset_commit import OffsetCommitResponseTopic
from protocol.messages.offset_delete import OffsetDeleteResponseTopic
from protocol.messages.txn_offset_commit import TxnOffsetCommitResponseTopic

T = TypeVar("T", OffsetCommitResponseTopic, TxnOffsetCommitResponseTopic, OffsetDeleteResponseTopic)


def merged(absent: Iterable[T], answered: list[T], key: Callable[[T], Hashable]) -> list[T]:
    """Merges answers: absent partitions first, and a topic that is in both lists once; returns the coordinator's answer
    unchanged if no partition is absent. Source: the builders of OffsetCommitResponse, TxnOffsetCommitResponse and
    OffsetDeleteResponse."""
    topics: dict[Hashable, T] = {}
    for topic in absent:
        add(topics, topic, key)
    if not topics:
        return answered
    for topic in answered:
        add(topics, topic, key)
    return list(topics.values())


def add(topics: dict[Hashable, T], topic: T, key: Callable[[T], Hashable]) -> None:
    first = topics.setdefault(key(topic), topic)
    if first is not topic:
        first.partitions += topic.partitions
