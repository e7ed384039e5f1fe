"""The controllers' quorum, as its leader describes it (KIP-642, KIP-836)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from commands.client.cluster_client import ClusterClient
from commands.errors import raise_if
from protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    PartitionData,
    ReplicaState,
    TopicData,
)
from protocol.types import NO_UUID, Uuid

METADATA_TOPIC: Final = "__cluster_metadata"
NOBODY: Final = -1


class QuorumReplica(NamedTuple):
    """A controller that votes, or a node that follows; times are in milliseconds since the epoch, -1 if unknown."""

    node: int
    is_voter: bool
    log_end: int
    fetched_ms: int
    caught_up_ms: int
    directory: Uuid = NO_UUID
    """The id of its log directory; zero for a voter of the configuration, or if the cluster doesn't return it."""


class QuorumDescription(NamedTuple):
    """The leader of the controllers, and the progress of the other replicas."""

    leader: int
    epoch: int
    high_watermark: int
    replicas: tuple[QuorumReplica, ...]
    listeners: Mapping[int, Sequence[Listener]] = MappingProxyType({})
    """The listeners of the controllers whose addresses the cluster returns."""

    @property
    def voters(self) -> list[QuorumReplica]:
        return [replica for replica in self.replicas if replica.is_voter]

    @property
    def observers(self) -> list[QuorumReplica]:
        return [replica for replica in self.replicas if not replica.is_voter]


async def describe_quorum(cluster: ClusterClient) -> QuorumDescription:
    """Returns the quorum. Raises CommandError, or UnsupportedVersion if the cluster uses ZooKeeper."""
    request = DescribeQuorumRequest(
        topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData(partition_index=0)])]
    )
    answer = await cluster.any(request, DescribeQuorumResponse)
    raise_if("the quorum", answer.error_code, answer.error_message)
    partition = answer.topics[0].partitions[0]
    raise_if("the quorum", partition.error_code, partition.error_message)
    return QuorumDescription(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        (
            *(_replica(replica, is_voter=True) for replica in partition.current_voters),
            *(_replica(replica, is_voter=False) for replica in partition.observers),
        ),
        {node.node_id: node.listeners for node in answer.nodes},
    )


def _replica(state: ReplicaState, *, is_voter: bool) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        is_voter,
        state.log_end_offset,
        state.last_fetch_timestamp,
        state.last_caught_up_timestamp,
        state.replica_directory_id,
    )
