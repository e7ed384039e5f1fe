"""Hashes the metadata of subscribed topics, so that a group's record shows when it has changed.

A topic's hash covers its id, name, partition count and the racks of its replicas; a group's hash covers its topics'
hashes. A group compares the hash of its last assignment: only a different hash needs a new assignment. Source:
KIP-1101; Kafka's Utils.computeTopicHash and computeGroupHash, 64-bit XXH3. Apache Kafka and this broker read these
hashes from each other's records.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from coordinator.cluster.changes import Change, PartitionChanged, PartitionCreated, TopicCreated, TopicDeleted
from coordinator.cluster.topics.topic import Topic
from protocol.lazy import lazy

if TYPE_CHECKING:
    import xxhash
else:  # with the first group that has topics
    xxhash = lazy("xxhash")

MAGIC: Final = b"\0"
NO_TOPICS: Final = 0
"""The hash of a group without topics, or whose topics don't exist."""

_INT = struct.Struct("<i")
_HASH = struct.Struct("<q")
_SIGN = 1 << 63


class TopicTable(Protocol):
    """Looks up a topic by its name."""

    def topic(self, name: str) -> Topic | None: ...


RackOf = Callable[[int], str | None]
"""Returns the rack of a broker, by its id."""


class TopicWatch:
    """The hashes of topics, computed once until a topic changes, and two numbers by which a group detects that it is
    outdated.

    All shards of a broker share one; `note` gets each change of the image.
    """

    def __init__(
        self, topics: TopicTable, rack_of: RackOf = lambda _broker_id: None, version: Callable[[], int] = lambda: 0
    ) -> None:
        self.changes = 0
        """The number of changes of topics."""
        self.newest_topic_at = version()
        """The version of the metadata that has the newest topic."""
        self._topics = topics
        self._rack_of = rack_of
        self._version = version
        self._hashes: dict[str, int] = {}

    @property
    def version(self) -> int:
        """The metadata's present version: the offset of its last record."""
        return self._version()

    def note(self, change: Change) -> None:
        """Updates the hashes after a committed change of the image."""
        if isinstance(change, TopicCreated):
            self.newest_topic_at = self._version()
        elif isinstance(change, PartitionChanged):
            if change.before.replicas == change.after.replicas:  # leaders and in-sync replicas are not in the hash
                return
        elif not isinstance(change, TopicDeleted | PartitionCreated):
            return
        self._hashes.pop(change.topic.name, None)
        self.changes += 1

    def group_hash(self, topic_names: Iterable[str]) -> int:
        """Returns the hash of a group that subscribes to these names; names without a topic don't count."""
        hashes = [known_hash for name in sorted(topic_names) if (known_hash := self._hash_of(name)) is not None]
        return _xxh3(b"".join(map(_HASH.pack, hashes))) if hashes else NO_TOPICS

    def _hash_of(self, name: str) -> int | None:
        hashed = self._hashes.get(name)
        if hashed is None:
            topic = self._topics.topic(name)
            if topic is None:
                return None
            hashed = self._hashes[name] = topic_hash(topic, self._rack_of)
        return hashed


def topic_hash(topic: Topic, rack_of: RackOf) -> int:
    """Returns a topic's hash, a signed 64-bit number."""
    high, low = struct.unpack(">qq", topic.topic_id)
    parts = [MAGIC, _HASH.pack(high), _HASH.pack(low), _text(topic.name), _INT.pack(len(topic.partitions))]
    for index in range(len(topic.partitions)):
        parts.append(_INT.pack(index))
        partition = topic.partitions.get(index)
        racks = sorted(rack for replica in (partition.replicas if partition else ()) if (rack := rack_of(replica)))
        for rack in racks:
            parts += (_INT.pack(len(rack)), _text(rack))
    return _xxh3(b"".join(parts))


def _text(text: str) -> bytes:
    """Returns text as hash4j feeds it to a hash: UTF-16, then the number of code units."""
    units = text.encode("utf-16-le")
    return units + _INT.pack(len(units) // 2)


def _xxh3(data: bytes) -> int:
    unsigned = xxhash.xxh3_64_intdigest(data)
    return unsigned - 2 * _SIGN if unsigned & _SIGN else unsigned
