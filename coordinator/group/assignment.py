"""The arguments and results of assignors: a group's members and topics, and who shall own which partitions.

Source: Kafka's GroupSpec, MemberSubscription and GroupAssignment (KIP-848).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from protocol.types import Uuid

Assignment = Mapping[Uuid, frozenset[int]]
"""Partitions by topic id. Never changed in place; a topic without partitions is left out."""

NOTHING: Assignment = {}

Owners = Mapping[Uuid, Mapping[int, str]]
"""The member that has each partition in the present target assignment."""


class MemberSpec(NamedTuple):
    """One member as assignors see it."""

    topics: Collection[Uuid]
    """Subscribed topics that exist; membership tests must be cheap."""
    assigned: Assignment = NOTHING
    """The present target assignment, to stay close to."""
    instance_id: str | None = None
    rack_id: str | None = None


class GroupSpec(NamedTuple):
    """A group as assignors see it."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[Uuid, int]
    """Of every subscribed topic."""
    homogeneous: bool
    """Whether all members subscribe to the same topics."""
    owners: Owners


Assignor = Callable[[GroupSpec], Mapping[str, Assignment]]
"""A member that the result leaves out gets nothing."""


def partition_total(assignment: Assignment) -> int:
    """How many partitions an assignment holds."""
    return sum(map(len, assignment.values()))
