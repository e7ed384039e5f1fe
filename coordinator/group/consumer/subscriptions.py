"""The subscriptions of a consumer group's members, counted by name and by pattern.

Source: the maps of Kafka's ModernGroup and ConsumerGroup, and its SubscriptionCount.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from coordinator.group.consumer.member import Member


class Subscriptions:
    """Counts without zeros: a topic or pattern is in them only if a member subscribes to it."""

    __slots__ = ("by_name", "by_pattern", "patterns")

    def __init__(self) -> None:
        self.by_name: Counter[str] = Counter()
        """Topic → members that name it."""
        self.by_pattern: Counter[str] = Counter()
        """Topic → resolved patterns that match it."""
        self.patterns: Counter[str] = Counter()
        """Pattern → members that subscribe with it."""

    def copy(self) -> Subscriptions:
        """Returns a copy, to compute the effect of a change."""
        twin = Subscriptions()
        twin.by_name, twin.by_pattern, twin.patterns = (
            Counter(self.by_name),
            Counter(self.by_pattern),
            Counter(self.patterns),
        )
        return twin

    @property
    def topics(self) -> set[str]:
        """Every topic that a member subscribes to, whether it exists or not."""
        return {*self.by_name, *self.by_pattern}

    def __contains__(self, topic: str) -> bool:
        return topic in self.by_name or topic in self.by_pattern

    def replace(self, before: Member | None, after: Member | None) -> None:
        """Updates the counts after a member joined, changed, or left."""
        if before is not None:
            _remove(self.by_name, before.topic_names)
            _remove(self.patterns, _pattern_of(before))
        if after is not None:
            self.by_name.update(after.topic_names)
            self.patterns.update(_pattern_of(after))

    def resolve(self, before: Iterable[str], after: Iterable[str]) -> None:
        """Updates the counts after a pattern's topics changed."""
        _remove(self.by_pattern, before)
        self.by_pattern.update(after)

    def are_alike(self, members: int) -> bool:
        """True if all members subscribe to the same topics; `members` is their number. Members with equal patterns
        subscribe to the same topics."""
        if not self.patterns:
            return all(self.by_name[topic] == members for topic in self.topics)
        return (
            members in self.patterns.values()
            and not self.by_name
            and all(count == 1 for count in self.by_pattern.values())
        )


def _pattern_of(member: Member) -> tuple[str, ...]:
    return () if member.regex is None else (member.regex,)


def _remove(counts: Counter[str], keys: Iterable[str]) -> None:
    for key in keys:
        left = counts[key] - 1
        if left > 0:
            counts[key] = left
        else:
            del counts[key]
