"""Control records: transaction markers, and KRaft's records about its own log.

A control batch has the CONTROL attribute; its records' keys are `version i16 · type i16`, and consumers never see the
records. Source: KIP-98 (markers), KIP-595 (leader change), KIP-630 (snapshots), KIP-853 (voters);
org.apache.kafka.common.record.ControlRecordType, EndTransactionMarker, ControlRecordUtils.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from protocol.codec import decode, encode
from protocol.errors import ErrorCode, KafkaError
from protocol.records.building import build
from protocol.records.record import Record
from protocol.schema import identity, versioned, wire
from protocol.schema import struct as part
from protocol.types import NO_UUID, int16, int32, int64, uint16, uuid

_KEY = struct.Struct(">hh")
_END_TXN_MARKER = struct.Struct(">hi")
_KEY_VERSION = 0
_MARKER_VERSION = 0
_VALUE_VERSION = 0  # the version of each record below that Kafka 4.3 writes


class ControlType(IntEnum):
    """The type of a control record. Readers skip unknown types."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTxnMarker(NamedTuple):
    """The end of a producer's transaction in a partition, with the epoch of the transaction coordinator."""

    kind: ControlType
    coordinator_epoch: int

    @property
    def is_commit(self) -> bool:
        return self.kind is ControlType.COMMIT


@part
class ChangeVoter:
    """A voter in a leader change record."""

    voter_id: int32 = wire()
    voter_directory_id: uuid = wire(versions="1+", default=NO_UUID)  # KIP-853


@versioned(ControlType.LEADER_CHANGE, versions="0-1", flexible="0+")
class LeaderChangeMessage:
    """The first record of a leader epoch: the leader, the voters, and the voters that granted their vote."""

    version: int16 = wire()
    leader_id: int32 = wire()
    voters: list[ChangeVoter] = wire()
    granting_voters: list[ChangeVoter] = wire()


@versioned(ControlType.SNAPSHOT_HEADER, versions="0", flexible="0+")
class SnapshotHeaderRecord:
    """The first record of a snapshot, with the append time of the last record that the snapshot includes."""

    version: int16 = wire()
    last_contained_log_timestamp: int64 = wire()


@versioned(ControlType.SNAPSHOT_FOOTER, versions="0", flexible="0+")
class SnapshotFooterRecord:
    """The last record of a snapshot. A snapshot without it is incomplete."""

    version: int16 = wire()


@versioned(ControlType.KRAFT_VERSION, versions="0", flexible="0+")
class KRaftVersionRecord:
    """The quorum's kraft.version: with 0 the voters are in the configuration, with 1 in the log."""

    version: int16 = wire()
    k_raft_version: int16 = wire()


@part
class VoterEndpoint:
    """A voter's endpoint, with its listener name."""

    name: str = wire()
    host: str = wire()
    port: uint16 = wire()


@part
class KRaftVersionFeature:
    """The range of kraft.version that a voter supports."""

    min_supported_version: int16 = wire()
    max_supported_version: int16 = wire()


@part
class Voter:
    """A voter of the quorum, by node id and directory id."""

    voter_id: int32 = wire()
    voter_directory_id: uuid = wire(default=NO_UUID)
    endpoints: list[VoterEndpoint] = wire()
    k_raft_version_feature: KRaftVersionFeature = wire()


@versioned(ControlType.KRAFT_VOTERS, versions="0", flexible="0+")
class VotersRecord:
    """The whole set of voters, written at each change."""

    version: int16 = wire()
    voters: list[Voter] = wire()


QuorumRecord: TypeAlias = (
    LeaderChangeMessage | SnapshotHeaderRecord | SnapshotFooterRecord | KRaftVersionRecord | VotersRecord
)
_QUORUM_RECORDS: dict[int, type[QuorumRecord]] = {
    identity(cls).key: cls
    for cls in (LeaderChangeMessage, SnapshotHeaderRecord, SnapshotFooterRecord, KRaftVersionRecord, VotersRecord)
}


def encode_key(kind: ControlType) -> bytes:
    """Returns the key of a control record."""
    return _KEY.pack(_KEY_VERSION, kind)


def decode_key(key: bytes | None) -> ControlType | None:
    """Returns the record's type; None for a type of a later Kafka. Raises KafkaError(CORRUPT_MESSAGE)."""
    if key is None or len(key) < _KEY.size:
        raise _corrupt(
            f"a control record's key is {0 if key is None else len(key)} bytes long; {_KEY.size} are required"
        )
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise _corrupt(f"a control record's key has version {version}")
    return ControlType(kind) if kind in _TYPES else None


_TYPES = frozenset(map(int, ControlType))


def decode_marker(record: Record) -> EndTxnMarker | None:
    """Decodes a transaction marker. Returns None for any other control record. Raises KafkaError(CORRUPT_MESSAGE)."""
    kind = decode_key(record.key)
    if kind is not ControlType.ABORT and kind is not ControlType.COMMIT:
        return None
    value = record.value or b""
    if len(value) < _END_TXN_MARKER.size:
        raise _corrupt(f"a transaction marker of {len(value)} bytes; {_END_TXN_MARKER.size} are required")
    version, coordinator_epoch = _END_TXN_MARKER.unpack_from(value)
    if version < 0:
        raise _corrupt(f"a transaction marker has version {version}")
    return EndTxnMarker(kind, coordinator_epoch)


def decode_quorum_record(record: Record) -> QuorumRecord | None:
    """Decodes a control record of KRaft. Returns None for a marker or an unknown type.

    Raises KafkaError(CORRUPT_MESSAGE) for a malformed key, ProtocolError for a malformed value.
    """
    kind = decode_key(record.key)
    if kind is None or kind not in _QUORUM_RECORDS:
        return None
    value, _ = decode(_QUORUM_RECORDS[kind], _VALUE_VERSION, record.value or b"")
    return value


def quorum_record(value: QuorumRecord, now_ms: int) -> Record:
    """Returns a control record of KRaft. `build(records, control=True, …)` makes a batch of such records."""
    return Record(0, now_ms, encode_key(ControlType(identity(type(value)).key)), encode(value, _VALUE_VERSION))


def end_txn_batch(marker: EndTxnMarker, producer_id: int, producer_epoch: int, now_ms: int) -> bytearray:
    """Returns the batch that ends a producer's transaction in a partition: one record, no sequence number."""
    value = _END_TXN_MARKER.pack(_MARKER_VERSION, marker.coordinator_epoch)
    return build(
        [Record(0, now_ms, encode_key(marker.kind), value)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
