"""The arguments and results of assignors: a group's members and topics, and each member's partitions.

Source: Kafka's GroupSpec, MemberSubscription and GroupAssignment (KIP-848).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from protocol.types import Uuid

Assignment = Mapping[Uuid, frozenset[int]]
"""Partitions by topic id. Never changed in place; a topic without partitions is missing."""

NOTHING: Assignment = {}

Owners = Mapping[Uuid, Mapping[int, str]]
"""The member of each partition in the present target assignment."""


class MemberSpec(NamedTuple):
    """A member as assignors see it."""

    topics: Collection[Uuid]
    """Subscribed topics that exist; membership tests must be cheap."""
    assigned: Assignment = NOTHING
    """The present target assignment, which assignors change as little as possible."""
    instance_id: str | None = None
    rack_id: str | None = None


class GroupSpec(NamedTuple):
    """A group as assignors see it."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[Uuid, int]
    """The number of partitions of every subscribed topic."""
    homogeneous: bool
    """True if all members subscribe to the same topics."""
    owners: Owners


Assignor = Callable[[GroupSpec], Mapping[str, Assignment]]
"""Returns the assignment of each member; a missing member gets nothing."""
