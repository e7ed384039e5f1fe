"""The consumers' bytes in JoinGroup's metadata and SyncGroup's assignment: two bytes of version, then a message.

The broker decodes them only for group descriptions, OffsetDelete, and groups that change protocol.
Source: org.apache.kafka.clients.consumer.internals.ConsumerProtocol.
"""

from __future__ import annotations

import struct as struct_module
from typing import Final, TypeVar

from protocol.codec import MALFORMED, bounded_decoder, decode, encode
from protocol.errors import ProtocolError
from protocol.schema import IMPLICIT, identity, struct, versioned, wire
from protocol.types import Buffer, int32

T = TypeVar("T")

PROTOCOL_TYPE: Final = "consumer"
"""The protocol type of groups that use this format."""

MAX_ITEMS: Final = 256 * 1024
"""Maximum number of topics and partitions of a subscription or an assignment: the limit of a request
(broker.dispatch)."""

NO_API_KEY: Final = -1
_VERSION = struct_module.Struct(">h")


@versioned(NO_API_KEY, versions="0-3")
class ConsumerProtocolSubscription:
    """A member's subscription in a rebalance: its subscribed topics and owned partitions."""

    topics: list[str] = wire()
    user_data: bytes | None = wire(nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = wire(versions="1+", default=IMPLICIT)  # KIP-429
    generation_id: int32 = wire(versions="2+", default=-1)  # KIP-792
    rack_id: str | None = wire(versions="3+", nullable="3+", default=None)  # KIP-881


@struct
class TopicPartition:
    topic: str = wire()
    partitions: list[int32] = wire()


@versioned(NO_API_KEY, versions="0-3")
class ConsumerProtocolAssignment:
    """A member's assignment from a rebalance."""

    assigned_partitions: list[TopicPartition] = wire()
    user_data: bytes | None = wire(nullable="0+", default=None)


def read(cls: type[T], data: Buffer) -> T:
    """Returns the subscription or assignment in `data`. Raises ProtocolError for malformed bytes.

    Reads an unknown later version as the newest known version, because the format only grows at its end.
    """
    version = version_of(data)
    if len(data) <= MAX_ITEMS:  # there can't be more items than bytes
        return decode(cls, version, data, _VERSION.size)[0]
    try:
        value, _ = bounded_decoder(cls, version, MAX_ITEMS)(data, _VERSION.size, len(data))
    except MALFORMED as error:
        raise ProtocolError(f"{cls.__name__} v{version}: {error}", offset=_VERSION.size) from error
    return value  # type: ignore[no-any-return]


def write(value: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int) -> bytes:
    """Returns the bytes of a subscription or assignment, version first."""
    return _VERSION.pack(version) + encode(value, version)


def version_of(data: Buffer) -> int:
    """Returns the version of a subscription or assignment, or the newest known version if it is later. Raises
    ProtocolError without a version."""
    if len(data) < _VERSION.size:
        raise ProtocolError(f"consumer protocol: {len(data)} bytes are too few for a version", offset=0)
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise ProtocolError(f"consumer protocol: version {version}", offset=0)
    return min(version, identity(ConsumerProtocolAssignment).versions.last)
