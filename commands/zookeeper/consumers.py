"""Consumers that coordinate through ZooKeeper (Kafka 0.8 to 1.1): their registrations and subscriptions. Pure.

Source: kafka.consumer.ZookeeperConsumerConnector, TopicCount, TopicFilter.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

import re2

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics that a pattern never matches (exclude.internal.topics): the internal topics of those Kafka versions."""

STATIC, WHITE_LIST = "static", "white_list"


MAX_THREADS: Final = 10_000
"""Maximum number of threads of a consumer for a topic: far more than real consumers have, and few enough to name
each."""


class OldMember(NamedTuple):
    """A consumer's registration: its number of threads for each topic, or for the topics that a pattern matches."""

    consumer_id: str
    pattern: str
    """static, white_list or black_list."""
    subscription: Mapping[str, int]

    def threads(self, topics: Collection[str]) -> dict[str, list[str]]:
        """Returns the ids of its threads by topic. Raises ValueError for a pattern that only Java supports."""
        streams = self.subscription if self.pattern == STATIC else self._matched(topics)
        return {
            topic: [f"{self.consumer_id}-{number}" for number in range(count)]
            for topic, count in streams.items()
            if topic in topics
        }

    def _matched(self, topics: Collection[str]) -> dict[str, int]:
        streams: dict[str, int] = {}
        for raw, count in self.subscription.items():
            expression = raw.strip().replace(",", "|").replace(" ", "").strip("\"'")
            try:
                pattern = re2.compile(expression)
            except re2.error as error:
                raise ValueError(f"consumer {self.consumer_id}: pattern {raw!r}: {error}") from None
            for topic in topics:
                matches = pattern.fullmatch(topic) is not None
                if topic not in INTERNAL_TOPICS and matches is (self.pattern == WHITE_LIST):
                    streams[topic] = count
        return streams

    def watched(self, group: str) -> list[str]:
        """Returns the paths whose changes make the consumer rebalance: the group's members, the brokers, and its
        topics."""
        topics = [f"/brokers/topics/{topic}" for topic in sorted(self.subscription)]
        return [f"/consumers/{group}/ids", "/brokers/ids", *(topics if self.pattern == STATIC else ["/brokers/topics"])]

    def registration(self, timestamp_ms: int) -> bytes:
        """Returns the content of its znode in /consumers/G/ids."""
        value = {
            "version": 1,
            "subscription": dict(self.subscription),
            "pattern": self.pattern,
            "timestamp": str(timestamp_ms),
        }
        return json.dumps(value, separators=(",", ":")).encode()


def member(consumer_id: str, data: bytes) -> OldMember:
    """Returns the consumer of a znode in /consumers/G/ids. Raises ValueError."""
    try:
        value = json.loads(data)
    except RecursionError as error:
        raise ValueError("is not a valid registration: nested too deeply") from error
    subscription = value.get("subscription") if isinstance(value, dict) else None
    if not isinstance(subscription, dict) or not all(type(count) is int for count in subscription.values()):
        raise ValueError("has no subscription")
    if any(count > MAX_THREADS for count in subscription.values()):
        raise ValueError(f"has more threads than {MAX_THREADS}")
    return OldMember(consumer_id, str(value.get("pattern", STATIC)), subscription)


def threads_by_topic(members: Iterable[OldMember], topics: Collection[str]) -> dict[str, list[str]]:
    """Returns the threads of a group that read each topic, sorted by name. Raises ValueError like OldMember.threads."""
    threads: dict[str, list[str]] = {}
    for consumer in members:
        for topic, names in consumer.threads(topics).items():
            threads.setdefault(topic, []).extend(names)
    return {topic: sorted(names) for topic, names in threads.items()}


def consumer_of(thread: str) -> str:
    """Returns the consumer of a thread."""
    return thread.rpartition("-")[0]
