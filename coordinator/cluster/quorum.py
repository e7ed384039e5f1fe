"""The names of the metadata quorum, and the control records of a quorum of one (KIP-595, KIP-853)."""

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
"""kraft.version 1: voters are in the log (KIP-853), as `kafka-storage format --standalone` formats it."""


def sole_voter(node_id: int, directory_id: Uuid, endpoints: Sequence[Endpoint]) -> VotersRecord:
    """Returns the voters of a quorum of this node alone, whose controller listens at these endpoints."""
    voter = Voter(
        voter_id=node_id,
        voter_directory_id=directory_id,
        endpoints=[VoterEndpoint(name=endpoint.name, host=endpoint.host, port=endpoint.port) for endpoint in endpoints],
        k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=KRAFT_VERSION),
    )
    return VotersRecord(version=0, voters=[voter])


def opening_records(
    node_id: int, voters: VotersRecord | None, in_log: VotersRecord | None, *, is_empty: bool
) -> list[QuorumRecord]:
    """Returns the records that begin an epoch of the only voter.

    `in_log` has the voters in the log, or in the bootstrap snapshot of an empty log; None if the configuration has the
    voters (kraft.version 0). `voters` are written with the log's first epoch, and again if they differ from those in
    the log; None leaves them as they are, because other nodes can't reach this voter.
    """
    self_only = [ChangeVoter(voter_id=node_id)]
    change = LeaderChangeMessage(version=0, leader_id=node_id, voters=self_only, granting_voters=self_only)
    if in_log is None or voters is None:
        return [change]
    if is_empty:
        return [change, KRaftVersionRecord(version=0, k_raft_version=KRAFT_VERSION), voters]
    return [change] if voters == in_log else [change, voters]


def encode_quorum(records: Sequence[QuorumRecord], now_ms: int) -> bytearray:
    """Returns one control batch with all records."""
    return build([quorum_record(record, now_ms) for record in records], control=True)
