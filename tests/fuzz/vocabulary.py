"""The vocabulary of requests: the names, ids, epochs and batches of one broker's world, in an order that doesn't depend
on ids.

Two brokers with the same world have vocabularies of the same shape. Draws by position give the same request for both,
each with that broker's own ids.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Final
from zlib import crc32

from protocol.types import NO_UUID

INTERNAL: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")
STRANGE_TOPICS: Final = ("nowhere", "", "not a name!", ".", "..", "n" * 249, "n" * 250, "two.words", "two_words")
METADATA_TOPIC_ID: Final = bytes(15) + b"\x01"
STRANGE_IDS: Final = (NO_UUID, METADATA_TOPIC_ID, b"\xff" * 16, bytes(range(16)))
NAMES_NOTHING: Final = ("", ".", "..", "not a name!")
FIRST_STRANGE_PRODUCER: Final = 1 << 40
STRANGE_NAMES: Final = ("", "absent", "\x00", "é" * 8, "x" * 300, "__internal")


@dataclass
class Member:
    """A member of a group, as its requests describe it."""

    member_id: str
    epoch: int
    instance_id: str | None = None


@dataclass
class Group:
    """A group, and its members that the world has created."""

    name: str
    members: list[Member] = field(default_factory=list)


@dataclass
class Transactional:
    """A transactional id and its producer."""

    name: str
    producer_id: int
    epoch: int


NOBODY: Final = Member("", -1)


@dataclass
class Vocabulary:
    """All names that requests can use."""

    topics: list[str]
    topic_ids: dict[str, bytes]
    groups: list[Group]
    transactionals: list[Transactional]
    batches: list[bytes] = field(default_factory=list)
    sessions: list[int] = field(default_factory=lambda: [0])
    prefix: str = "new"
    """The prefix of the topics and groups that requests create."""

    internal: tuple[str, ...] = INTERNAL

    def own(self, name: str) -> str:
        """Returns an invented name with the world's prefix, of the same length if it is long; a name of nothing stays
        unchanged."""
        if name in NAMES_NOTHING:
            return name
        return self.prefix + name[: max(1, len(name) - len(self.prefix))]

    def own_producer(self, producer_id: int) -> int:
        """Returns an invented producer id that no other world uses, far from those that brokers allocate; a negative id
        stays unchanged."""
        return (
            producer_id
            if producer_id < 0
            else FIRST_STRANGE_PRODUCER + (crc32(self.prefix.encode()) << 8) + (producer_id & 0xFF)
        )


@dataclass(frozen=True)
class Focus:
    """The topic and the group that one request is mostly about, so that its fields fit together."""

    topic: str
    group: Group
    member: Member
    transactional: Transactional
    wildness: float
    """The probability that a field gets a senseless value."""

    @classmethod
    def draw(cls, rng: random.Random, vocabulary: Vocabulary, wildness: float | None = None) -> Focus:
        group = rng.choice(vocabulary.groups)
        position = rng.randrange(1 << 16)
        member = group.members[position % len(group.members)] if group.members else NOBODY
        wild = rng.choice((0.0, 0.02, 0.1, 0.4)) if wildness is None else wildness
        return cls(rng.choice(vocabulary.topics), group, member, rng.choice(vocabulary.transactionals), wild)

    def on(self, topic: str) -> Focus:
        return replace(self, topic=topic)
