"""The quorum whose log the metadata is: its names, and the control records of a quorum of one (KIP-595, KIP-853)."""

from __future__ import annotations

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


def sole_voter(node_id: int, directory_id: Uuid, endpoint: Endpoint) -> VotersRecord:
    """The voters of a quorum of this node alone."""
    voter = Voter(
        voter_id=node_id,
        voter_directory_id=directory_id,
        endpoints=[VoterEndpoint(name=endpoint.name, host=endpoint.host, port=endpoint.port)],
        k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=KRAFT_VERSION),
    )
    return VotersRecord(version=0, voters=[voter])


def leader_change(node_id: int, voters: VotersRecord | None) -> list[QuorumRecord]:
    """Returns the records that begin an epoch of a sole voter; in an empty log it also says who the voters are."""
    self_only = [ChangeVoter(voter_id=node_id)]
    change = LeaderChangeMessage(version=0, leader_id=node_id, voters=self_only, granting_voters=self_only)
    if voters is None:
        return [change]
    return [change, KRaftVersionRecord(version=0, k_raft_version=KRAFT_VERSION), voters]


def encode_quorum(records: list[QuorumRecord], now_ms: int) -> bytearray:
    """One control batch of all of the records."""
    return build([quorum_record(record, now_ms) for record in records], control=True)
