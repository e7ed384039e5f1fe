"""The records of the coordinators' logs, Apache Kafka's own.

A key is two bytes of record type and a message; a value is two bytes of version and a message, or null for a deletion.
Source: org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde, TransactionLog.
"""

from __future__ import annotations

import struct
from functools import cache
from importlib import import_module
from typing import Final, NamedTuple

from protocol.codec import decode, encode
from protocol.errors import ProtocolError
from protocol.schema import Message, identity
from protocol.types import Buffer

_PREFIX: Final = struct.Struct(">h")
KEY_VERSION: Final = 0
"""The only version of key messages."""

CONSUMER_OFFSETS: Final = {
    0: "offsets.LegacyOffsetCommit",
    1: "offsets.OffsetCommit",
    2: "classic_group.GroupMetadata",
    3: "consumer_group.ConsumerGroupMetadata",
    4: "consumer_group.ConsumerGroupPartitionMetadata",
    5: "consumer_group.ConsumerGroupMemberMetadata",
    6: "consumer_group.ConsumerGroupTargetAssignmentMetadata",
    7: "consumer_group.ConsumerGroupTargetAssignmentMember",
    8: "consumer_group.ConsumerGroupCurrentMemberAssignment",
    10: "share_group.ShareGroupMemberMetadata",
    11: "share_group.ShareGroupMetadata",
    12: "share_group.ShareGroupTargetAssignmentMetadata",
    13: "share_group.ShareGroupTargetAssignmentMember",
    14: "share_group.ShareGroupCurrentMemberAssignment",
    15: "share_group.ShareGroupStatePartitionMetadata",
    16: "consumer_group.ConsumerGroupRegularExpression",
    17: "streams_group.StreamsGroupMetadata",
    19: "streams_group.StreamsGroupMemberMetadata",
    20: "streams_group.StreamsGroupTargetAssignmentMetadata",
    21: "streams_group.StreamsGroupTargetAssignmentMember",
    22: "streams_group.StreamsGroupCurrentMemberAssignment",
    23: "streams_group.StreamsGroupTopology",
}
"""`__consumer_offsets`: record type → module and class name without the suffix Key or Value."""

TRANSACTION_STATE: Final = {0: "transaction.TransactionLog"}
"""`__transaction_state`: record type → module and class name without the suffix Key or Value."""

SHARE_GROUP_STATE: Final = {0: "share_state.ShareSnapshot", 1: "share_state.ShareUpdate"}
"""`__share_group_state`: record type → module and class name without the suffix Key or Value."""


class Decoded(NamedTuple):
    """A record's key and value. The value None deletes the key."""

    key: Message
    value: Message | None


@cache
def record_classes(path: str) -> tuple[type, type]:
    """Returns the key and value class of a table's "module.Name", imported at first use."""
    module, name = path.split(".")
    loaded = import_module(f"{__name__}.{module}")
    return getattr(loaded, f"{name}Key"), getattr(loaded, f"{name}Value")


def encode_key(key: object) -> bytes:
    """Returns a record's key."""
    return encode(key, KEY_VERSION, _PREFIX.pack(identity(type(key)).key))


def encode_value(value: object, version: int) -> bytes:
    """Returns a record's value."""
    return encode(value, version, _PREFIX.pack(version))


def decode_record(table: dict[int, str], key: Buffer, value: Buffer | None) -> Decoded | None:
    """Decodes a record by the table of its log. Returns None for a record type of a later Kafka.

    Raises ProtocolError for malformed bytes.
    """
    record_type = _prefix(key, "a coordinator record's key")
    if record_type not in table:
        return None
    key_class, value_class = record_classes(table[record_type])
    return Decoded(
        decode(key_class, KEY_VERSION, key, _PREFIX.size)[0],
        None if value is None else _decode_value(value_class, value),
    )


def _decode_value(cls: type[object], value: Buffer) -> object:
    version = _prefix(value, cls.__name__)
    if version not in identity(cls).versions:
        raise ProtocolError(f"{cls.__name__} has versions {identity(cls).versions}, not {version}", offset=0)
    return decode(cls, version, value, _PREFIX.size)[0]


def _prefix(data: Buffer, what: str) -> int:
    if len(data) < _PREFIX.size:
        raise ProtocolError(f"{what}: {len(data)} bytes are too few for its version", offset=0)
    number: int = _PREFIX.unpack_from(data)[0]
    return number
