"""The records of `__cluster_metadata`, KRaft's log of the cluster's metadata.

A record's value is framed: frame version, record type and version as unsigned varints, then the message.
Source: KIP-631; org.apache.kafka.server.common.serialization.AbstractApiMessageSerde.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from protocol.codec import decode, encode
from protocol.errors import ProtocolError
from protocol.primitives import read_uvarint, uvarint
from protocol.schema import identity
from protocol.types import Buffer

FRAME_VERSION: Final = 1

RECORDS: Final = {
    0: ("nodes", "RegisterBrokerRecord"),
    1: ("nodes", "UnregisterBrokerRecord"),
    2: ("topics", "TopicRecord"),
    3: ("topics", "PartitionRecord"),
    4: ("settings", "ConfigRecord"),
    5: ("topics", "PartitionChangeRecord"),
    7: ("nodes", "FenceBrokerRecord"),
    8: ("nodes", "UnfenceBrokerRecord"),
    9: ("topics", "RemoveTopicRecord"),
    10: ("security", "DelegationTokenRecord"),
    11: ("security", "UserScramCredentialRecord"),
    12: ("settings", "FeatureLevelRecord"),
    14: ("settings", "ClientQuotaRecord"),
    15: ("settings", "ProducerIdsRecord"),
    17: ("nodes", "BrokerRegistrationChangeRecord"),
    18: ("security", "AccessControlEntryRecord"),
    19: ("security", "RemoveAccessControlEntryRecord"),
    20: ("log", "NoOpRecord"),
    21: ("log", "ZkMigrationStateRecord"),
    22: ("security", "RemoveUserScramCredentialRecord"),
    23: ("log", "BeginTransactionRecord"),
    24: ("log", "EndTransactionRecord"),
    25: ("log", "AbortTransactionRecord"),
    26: ("security", "RemoveDelegationTokenRecord"),
    27: ("nodes", "RegisterControllerRecord"),
    28: ("topics", "ClearElrRecord"),
    29: ("nodes", "UnregisterControllerRecord"),
}
"""Record type → (module in this package, class). Kafka dropped 6, 13 and 16 before any release."""


@cache
def record_class(record_type: int) -> type[object]:
    """Returns the class of a record type, imported at first use. Raises ProtocolError for an unknown type."""
    if record_type not in RECORDS:
        raise ProtocolError(f"{record_type} is not a type of metadata record")
    module, name = RECORDS[record_type]
    record_type_class: type[object] = getattr(import_module(f"{__name__}.{module}"), name)
    return record_type_class


def encode_record(record: object, version: int) -> bytes:
    """Returns the framed value of a metadata record."""
    frame = uvarint(FRAME_VERSION) + uvarint(identity(type(record)).key) + uvarint(version)
    return frame + encode(record, version)


def decode_record(data: Buffer) -> object:
    """Decodes a framed metadata record, one of RECORDS. Raises ProtocolError for an incomplete record or an unknown
    type."""
    try:
        frame_version, position = read_uvarint(data, 0)
        record_type, position = read_uvarint(data, position)
        version, position = read_uvarint(data, position)
    except IndexError:
        raise ProtocolError(f"a metadata record of {len(data)} bytes has no whole frame", offset=0) from None
    if frame_version != FRAME_VERSION:
        raise ProtocolError(f"a metadata record has frame version {frame_version}, not {FRAME_VERSION}", offset=0)
    cls = record_class(record_type)
    if version not in identity(cls).versions:
        raise ProtocolError(f"{cls.__name__} has versions {identity(cls).versions}, not {version}", offset=0)
    record, end = decode(cls, version, data, position)
    if end != len(data):
        raise ProtocolError(f"{len(data) - end} bytes follow a {cls.__name__}", offset=end)
    return record
