"""Views of a broker: records, groups and requests, as the control server shows them (docs/control.md)."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from odradek.testing.control import JsonObject

__tracebackhide__ = True


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Record:
    """A record in a partition's log."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    """The sequence number of an idempotent producer; -1 means none."""
    is_transactional: bool = False
    is_control: bool = False
    """True for a transaction marker, which consumers don't see."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None
    partitions: tuple[Partition, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """The committed offset of a group in a partition, and the number of records after it."""

    topic: str
    partition: int
    offset: int
    end_offset: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """A group: classic, consumer or share."""

    group: str
    type: str
    state: str
    protocol: str | None
    members: tuple[Member, ...]
    offsets: tuple[GroupOffset, ...]

    def lag(self, topic: str | None = None) -> int | None:
        """Returns the number of records that the group has not committed; None if it has committed nothing there."""
        lags = [entry.lag or 0 for entry in self.offsets if topic in (None, entry.topic)]
        return sum(lags) if lags else None


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request that the broker has recorded."""

    number: int
    time_ms: int
    api: str
    version: int
    client_id: str | None
    principal: str
    listener: str
    peer: str
    partitions: tuple[Partition, ...] = ()
    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    fault: str | None = None
    """The id of the fault that acted on it, if any."""
    answer: str = "sent"
    """waiting, sent, none (acks=0), dropped or closed."""
    took_ms: float | None = None
    body: JsonObject | None = field(default=None, repr=False)
    """Its fields, if they were requested."""


def record_of(topic: str, entry: JsonObject) -> Record:
    """Returns a record of an answer."""
    return Record(
        topic,
        entry["partition"],
        entry["offset"],
        entry["timestamp_ms"],
        _bytes(entry["key"]),
        _bytes(entry["value"]),
        tuple((name, _bytes(value)) for name, value in entry["headers"]),
        entry["leader_epoch"],
        entry["producer_id"],
        entry["producer_epoch"],
        entry["sequence"],
        entry["transactional"],
        entry["control"],
    )


def group_of(answer: JsonObject) -> Group:
    """Returns the group of an answer."""
    members = tuple(
        Member(
            entry["member_id"],
            entry["client_id"],
            entry["host"],
            entry.get("instance_id"),
            _partitions(entry["partitions"]),
        )
        for entry in answer["members"]
    )
    offsets = tuple(
        GroupOffset(entry["topic"], entry["partition"], entry["offset"], entry["end_offset"], entry["lag"])
        for entry in answer["offsets"]
    )
    return Group(answer["group"], answer["type"], answer["state"], answer.get("protocol"), members, offsets)


def request_of(entry: JsonObject) -> RecordedRequest:
    """Returns a recorded request of an answer."""
    return RecordedRequest(
        entry["number"],
        entry["time_ms"],
        entry["api"],
        entry["version"],
        entry["client_id"],
        entry["principal"],
        entry["listener"],
        entry["peer"],
        _partitions(entry["partitions"]),
        tuple(entry["groups"]),
        tuple(entry["transactional_ids"]),
        entry["fault"],
        entry["answer"],
        entry.get("took_ms"),
        entry.get("body"),
    )


def _partitions(entries: list[JsonObject]) -> tuple[Partition, ...]:
    return tuple(Partition(entry["topic"], entry["partition"]) for entry in entries)


def _bytes(value: Any) -> bytes | None:
    """Returns bytes, which are a text in JSON if they are UTF-8, else an object."""
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else b64decode(value["base64"])
