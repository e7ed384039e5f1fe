"""The replica that a consumer reads from: any replica if the consumer supports that, preferably a replica in its rack.

Source: KIP-392; ReplicaManager.findPreferredReadReplica, RackAwareReplicaSelector, ReplicaView.comparator.
"""

from __future__ import annotations

from typing import NamedTuple

from broker.replica.partition import Partition
from coordinator.cluster.image import Image
from coordinator.replication.isr import Follower
from coordinator.replication.roles import Leading
from protocol.errors import ErrorCode


class RackAwareSelector(NamedTuple):
    """Selects a replica for a consumer in a rack, among brokers with the consumer's listener."""

    image: Image
    listener: str
    rack: str

    def select(self, partition: Partition, offset: int) -> int | None:
        """Returns the follower to read from. Returns None if this broker doesn't lead, is itself in the consumer's
        rack, or no follower in that rack is in sync and has the offset.
        """
        role = partition.role
        if not isinstance(role, Leading) or self._is_near(role.leader_id):
            return None
        near = [
            follower
            for follower in role.followers.values()
            if follower.replica_id in role.isr.committed
            and follower.log_start_offset <= offset <= follower.log_end_offset
            and self._is_near(follower.replica_id)
        ]
        return max(near, key=progress).replica_id if near else None

    def _is_near(self, broker_id: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        is_there = broker is not None and not broker.fenced and broker.rack == self.rack
        return is_there and broker is not None and broker.endpoint(self.listener) is not None


def progress(follower: Follower) -> tuple[int, int, int]:
    """Returns the sort key of followers in one rack: the follower with the most records is preferred, then the one that
    caught up last.
    """
    return follower.log_end_offset, follower.caught_up_ms, follower.replica_id


def check_readable(partition: Partition, current_leader_epoch: int) -> None:
    """Raises FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH. Raises NOT_LEADER_OR_FOLLOWER, so that the consumer asks the
    leader, if the replica is gone or its log is being truncated.
    """
    partition.check_epoch(current_leader_epoch)
    if partition.gone or partition.truncation is not None:
        raise partition.moved(ErrorCode.NOT_LEADER_OR_FOLLOWER)
