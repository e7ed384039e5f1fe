"""The quorum whose log the metadata is: its names, and the control records of a quorum of one (KIP-595, KIP-853)."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.topics.names import METADATA_TOPIC
from protocol.records.building import build
from protocol.records.control import (
    ChangeVoter,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    QuorumRecord,
    Voter,
    VoterEndpoint,
    VotersRecord,
    quorum_record,
)
from protocol.types import Uuid

FOLDER = f"{METADATA_TOPIC}-0"
TOPIC_ID: Uuid = bytes(15) + b"\x01"
"""The metadata topic's id in every cluster (org.apache.kafka.common.Uuid.METADATA_TOPIC_ID)."""

KRAFT_VERSION = 1
"""Voters are in the log (KIP-853): what `kafka-storage format --standalone` makes."""


def sole_voter(node_id: int, directory_id: Uuid, endpoints: Sequence[Endpoint]) -> VotersRecord:
    """The voters of a quorum of this node alone, whose controller listens at these endpoints."""
    voter = Voter(
        voter_id=node_id,
        voter_directory_id=directory_id,
        endpoints=[VoterEndpoint(name=one.name, host=one.host, port=one.port) for one in endpoints],
        k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=KRAFT_VERSION),
    )
    return VotersRecord(version=0, voters=[voter])


def opening_records(
    node_id: int, voters: VotersRecord, in_log: VotersRecord | None, *, is_empty: bool, is_reachable: bool
) -> list[QuorumRecord]:
    """Returns the records that begin an epoch of a sole voter.

    `in_log` are the voters as the log, or in an empty one its bootstrap snapshot, has them: None where the
    configuration has them (kraft.version 0). The log gets them with its first epoch, and again where the voter is
    reached elsewhere than it says; one that nobody reaches leaves them as they are.
    """
    self_only = [ChangeVoter(voter_id=node_id)]
    change = LeaderChangeMessage(version=0, leader_id=node_id, voters=self_only, granting_voters=self_only)
    if in_log is None:
        return [change]
    if is_empty:
        return [change, KRaftVersionRecord(version=0, k_raft_version=KRAFT_VERSION), voters]
    return [change, voters] if is_reachable and voters != in_log else [change]


def encode_quorum(records: Sequence[QuorumRecord], now_ms: int) -> bytearray:
    """One control batch of all of the records."""
    return build([quorum_record(record, now_ms) for record in records], control=True)
