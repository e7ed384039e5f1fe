"""The role of a replica in its partition, and its next role according to the metadata.

A leader decides from its followers' progress what is committed, and which ISR to propose. Offsets, rules and the time
are arguments: nothing is remembered here that the log has.

    role.fetched(fetch, …)        records a follower's progress → the ISR to propose
    role.late(…)                  → the ISR without late followers, to propose
    role.committed_offset(…)      → the offset up to which records are committed
    next_role(role, assigned, …)  → the role that the metadata assigns

Source: kafka.cluster.Partition.makeLeader, makeFollower, updateFollowerFetchState, maybeExpandIsr, maybeShrinkIsr and
maybeIncrementLeaderHW.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from coordinator.cluster.topics import topic
from coordinator.replication.isr import NEVER_MS, NO_BROKER_EPOCH, NO_OFFSET, Follower, Isr, IsrRules
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
    """Another broker leads, or no broker leads. The epochs in the log come with the leader's records."""

    leader_id: int = topic.NO_LEADER
    epoch: int = NO_EPOCH
    partition_epoch: int = NO_EPOCH


class FollowerFetch:
    """The part of a follower's Fetch for one partition, and its time of receipt. It is a value, never changed."""

    __slots__ = ("broker_epoch", "broker_id", "log_start_offset", "offset", "received_ms")

    def __init__(self, broker_id: int, broker_epoch: int, offset: int, log_start_offset: int, received_ms: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        """-1 if the request's version has no broker epoch (KIP-903)."""
        self.offset = offset
        """The follower has every record below this offset."""
        self.log_start_offset = log_start_offset
        self.received_ms = received_ms


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

    def unknown_follower(self, current_leader_epoch: int) -> ErrorCode:
        """Returns the error for a broker without another replica. It may know of an assignment that this broker doesn't
        know yet, so it is a retriable error: UNKNOWN_LEADER_EPOCH, or NOT_LEADER_OR_FOLLOWER if it didn't send its
        leader epoch.
        """
        knows_more = current_leader_epoch != NO_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH if knows_more else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def fetched(self, fetch: FollowerFetch, log_end_offset: int, high_watermark: int, rules: IsrRules) -> Isr | None:
        """Records the progress of a follower. Returns the ISR to propose if the follower may join it."""
        follower = self.followers[fetch.broker_id].fetched(
            fetch.offset, fetch.log_start_offset, log_end_offset, fetch.received_ms, fetch.broker_epoch
        )
        self.followers[fetch.broker_id] = follower
        return self.isr.expand((fetch.broker_id,)) if self.may_join(follower, high_watermark, rules) else None

    def keeps_up(self, broker_id: int, log_end_offset: int, log_start_offset: int, broker_epoch: int) -> bool:
        """True if a fetch from the log's end changes nothing but the follower's time: the follower is in sync, and had
        all records at its last fetch too."""
        before = self.followers.get(broker_id)
        return (
            before is not None
            and before.log_end_offset == log_end_offset
            and before.leader_end_offset == log_end_offset
            and before.log_start_offset == log_start_offset
            and before.broker_epoch == broker_epoch
            and broker_id in self.isr.committed
        )

    def may_join(self, follower: Follower, high_watermark: int, rules: IsrRules) -> bool:
        """True if the follower may join the ISR: it has all committed records, and all records of earlier epochs."""
        return (
            follower.replica_id not in self.isr.committed
            and self.isr.is_settled
            and follower.log_end_offset >= max(high_watermark, self.epoch_start)
            and rules.may_be_in_sync(follower)
        )

    def late(self, log_end_offset: int, rules: IsrRules, now_ms: int) -> Isr | None:
        """Returns the ISR to propose: without the replicas that have been behind for longer than
        replica.lag.time.max.ms; None if there are none."""
        if not self.isr.is_settled:
            return None
        max_lag_ms = rules.max_lag_ms()
        late = [
            follower.replica_id
            for follower in self.followers.values()
            if follower.replica_id in self.isr.committed
            and not follower.is_caught_up(log_end_offset, now_ms, max_lag_ms)
        ]
        return self.isr.shrink(late) if late else None

    def committed_offset(self, log_end_offset: int, min_insync_replicas: int, rules: IsrRules, now_ms: int) -> int:
        """Returns the offset below which all counted replicas have every record; NO_OFFSET if fewer are in sync than
        min.insync.replicas requires, because nothing more may be committed then.

        A caught-up follower that may join the ISR counts already; otherwise the high watermark would always run ahead
        of it (KAFKA-8722). A follower that may not join doesn't count (KAFKA-15021).
        """
        isr = self.isr
        if len(isr.committed) < self.min_isr(min_insync_replicas):
            return NO_OFFSET
        offset = log_end_offset
        for follower in self.followers.values():
            if follower.log_end_offset < offset and (
                follower.replica_id in isr.maximal
                or (
                    follower.is_caught_up(log_end_offset, now_ms, rules.max_lag_ms()) and rules.may_be_in_sync(follower)
                )
            ):
                offset = follower.log_end_offset
        return offset

    def low_watermark(self, log_start_offset: int, rules: IsrRules) -> int:
        """Returns the lowest log start offset of the leader and of the followers whose brokers are alive; -1 if one of
        these has not fetched yet."""
        return min(
            [
                log_start_offset,
                *[
                    follower.log_start_offset
                    for follower in self.followers.values()
                    if rules.broker_epoch(follower.replica_id) != NO_BROKER_EPOCH
                ],
            ]
        )


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
    former: dict[int, Follower] = {}
    if isinstance(before, Leading):
        former = before.followers
        if before.epoch == assigned.leader_epoch:
            if before.partition_epoch == assigned.partition_epoch:
                isr = before.isr  # the answer came before the metadata: proposals since then may still be committed
            followers = {replica_id: former.get(replica_id) or Follower(replica_id) for replica_id in others}
            return Leading(broker_id, before.epoch, before.epoch_start, isr, followers, assigned.partition_epoch)
    followers = {}
    for replica_id in others:
        follower, in_sync = former.get(replica_id), replica_id in isr.committed
        followers[replica_id] = (  # an in-sync follower has replica.lag.time.max.ms to fetch
            Follower(replica_id, caught_up_ms=now_ms if in_sync else NEVER_MS)
            if follower is None
            else follower.in_new_epoch(log_end_offset, in_sync=in_sync, now_ms=now_ms)
        )
    return Leading(broker_id, assigned.leader_epoch, log_end_offset, isr, followers, assigned.partition_epoch)
