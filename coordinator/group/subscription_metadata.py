"""The metadata of subscribed topics, hashed, so that a group's record tells when it has changed.

A topic's hash covers its id, name, partition count and the racks of its replicas; a group's covers its topics' hashes.
A group compares the hash it was last assigned with: only when it differs is there something to assign anew.
Source: KIP-1101; Kafka's Utils.computeTopicHash and computeGroupHash, whose XXH3 of 64 bits Apache Kafka finds in our
records and we in its.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from coordinator.cluster.changes import Change, PartitionChanged, PartitionCreated, TopicCreated, TopicDeleted
from coordinator.cluster.topics.topic import Topic

MAGIC: Final = b"\0"
NO_TOPICS: Final = 0
"""The hash of a group whose topics don't exist, or that has none."""

_INT = struct.Struct("<i")
_HASH = struct.Struct("<q")
_SIGN = 1 << 63


class TopicTable(Protocol):
    """Where a topic is found by its name."""

    def topic(self, name: str) -> Topic | None: ...


RackOf = Callable[[int], str | None]
"""The rack of a broker, by its id."""


class TopicWatch:
    """Hashes of topics, computed once until the topic changes, and two marks by which a group knows that it is behind.

    One serves all shards of a broker; `note` takes each change of the image.
    """

    def __init__(
        self,
        topics: TopicTable,
        rack_of: RackOf = lambda _broker_id: None,
        version: Callable[[], int] = lambda: 0,
    ) -> None:
        self.changes = 0
        """How many changes of topics there have been."""
        self.newest_topic_at = version()
        """The version of the metadata that has the newest topic."""
        self._topics = topics
        self._rack_of = rack_of
        self._version = version
        self._hashes: dict[str, int] = {}

    @property
    def version(self) -> int:
        """The metadata's version now: the offset of its last record."""
        return self._version()

    def note(self, change: Change) -> None:
        """Committed records have changed the image."""
        if isinstance(change, TopicCreated):
            self.newest_topic_at = self._version()
        elif isinstance(change, PartitionChanged):
            if change.before.replicas == change.after.replicas:  # leaders and in-sync replicas are in no hash
                return
        elif not isinstance(change, TopicDeleted | PartitionCreated):
            return
        self._hashes.pop(change.topic.name, None)
        self.changes += 1

    def group_hash(self, topic_names: Iterable[str]) -> int:
        """The hash of a group that subscribes to these names; those that name no topic don't count."""
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
    """A topic's hash, a signed number of 64 bits."""
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
    """Text as hash4j feeds it to a hash: UTF-16, then how many units that is."""
    units = text.encode("utf-16-le")
    return units + _INT.pack(len(units) // 2)


def _xxh3(data: bytes) -> int:
    import xxhash

    unsigned = xxhash.xxh3_64_intdigest(data)
    return unsigned - 2 * _SIGN if unsigned & _SIGN else unsigned
