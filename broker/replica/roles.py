"""The role of a replica in its partition, leader or follower, and its next role according to the metadata.

Source: kafka.cluster.Partition.makeLeader and makeFollower.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from broker.replica.isr import NEVER_MS, Follower, Isr
from coordinator.cluster.topics import topic
from protocol.errors import ErrorCode, KafkaError

NO_EPOCH: Final = -1
"""The leader epoch of a client that doesn't know it: the check is skipped (KIP-320)."""


class LeaderMoved(KafkaError):
    """The request is for another leader, or another epoch of this leader; the answer has the current ones (KIP-951)."""

    def __init__(self, code: ErrorCode, message: str, leader_id: int, leader_epoch: int) -> None:
        super().__init__(code, message)
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class Following(NamedTuple):
    """Another broker leads, or no broker does. The epochs in the log come with the leader's records."""

    leader_id: int = topic.NO_LEADER
    epoch: int = NO_EPOCH
    partition_epoch: int = NO_EPOCH


class Leading:
    """This broker leads: it alone assigns offsets and epochs to records, and tracks its followers' progress."""

    __slots__ = ("epoch", "epoch_start", "followers", "isr", "leader_id", "partition_epoch")

    def __init__(
        self,
        leader_id: int,
        epoch: int,
        epoch_start: int,
        isr: Isr,
        followers: dict[int, Follower],
        partition_epoch: int = 0,
    ) -> None:
        self.leader_id = leader_id
        """The id of this broker."""
        self.epoch = epoch
        self.epoch_start = epoch_start
        """The log end offset when the epoch began: the offset of the epoch's first record."""
        self.isr = isr
        self.followers = followers
        """The replicas on other brokers, by broker id."""
        self.partition_epoch = partition_epoch

    def __repr__(self) -> str:
        return f"Leading(epoch {self.epoch} from {self.epoch_start}, {self.isr}, {[*self.followers.values()]})"

    def with_isr(self, isr: Isr, partition_epoch: int | None = None) -> Leading:
        """Returns the role with another ISR, which is proposed, or committed at that partition epoch."""
        if partition_epoch is None:
            partition_epoch = self.partition_epoch
        return Leading(self.leader_id, self.epoch, self.epoch_start, isr, self.followers, partition_epoch)

    @property
    def is_alone(self) -> bool:
        """True if this is the only replica: an append commits."""
        return not self.followers

    def min_isr(self, configured: int) -> int:
        """Returns min.insync.replicas, or the number of replicas if that is lower (KIP-966)."""
        return min(configured, len(self.followers) + 1)


Role: TypeAlias = "Leading | Following"

UNASSIGNED: Final = Following()
"""The role of a replica before the metadata has assigned one."""


def next_role(
    before: Role, assigned: topic.PartitionRegistration, broker_id: int, log_end_offset: int, now_ms: int
) -> Role:
    """Returns the role that the metadata assigns to this broker's replica. A leader keeps the progress of its
    followers."""
    if assigned.leader != broker_id:
        return Following(assigned.leader, assigned.leader_epoch, assigned.partition_epoch)
    others = [replica_id for replica_id in assigned.replicas if replica_id != broker_id]
    isr = Isr(frozenset(assigned.isr))
    epoch_start, former = log_end_offset, {}
    if isinstance(before, Leading):
        former = before.followers
        if before.epoch == assigned.leader_epoch:
            if before.partition_epoch == assigned.partition_epoch:
                isr = before.isr  # the answer came before the metadata: proposals since then may still be committed
            followers = {replica_id: former.get(replica_id) or Follower(replica_id) for replica_id in others}
            return Leading(broker_id, before.epoch, before.epoch_start, isr, followers, assigned.partition_epoch)
    followers = {
        replica_id: follower_in_new_epoch(
            former.get(replica_id), replica_id, replica_id in isr.committed, log_end_offset, now_ms
        )
        for replica_id in others
    }
    return Leading(broker_id, assigned.leader_epoch, epoch_start, isr, followers, assigned.partition_epoch)


def follower_in_new_epoch(
    follower: Follower | None, replica_id: int, in_sync: bool, log_end_offset: int, now_ms: int
) -> Follower:
    """Returns a follower at the start of a new epoch: an in-sync follower has replica.lag.time.max.ms to fetch."""
    if follower is None:
        return Follower(replica_id, caught_up_ms=now_ms if in_sync else NEVER_MS)
    return follower.in_new_epoch(log_end_offset, in_sync=in_sync, now_ms=now_ms)


def led_alone(broker_id: int, epoch: int, log_end_offset: int) -> Leading:
    """Returns the role of a partition's only replica."""
    return Leading(broker_id, epoch, log_end_offset, Isr(frozenset((broker_id,))), {})
