"""The followers of a partition that is led here: how far they are, who joins the in-sync replicas and who leaves.

Source: kafka.cluster.Partition.updateFollowerFetchState, maybeExpandIsr and maybeShrinkIsr.
"""

from __future__ import annotations

from typing import NamedTuple

from broker.replica.isr import NO_BROKER_EPOCH, may_join, out_of_sync
from broker.replica.partition import Partition
from broker.replica.roles import NO_EPOCH, Leading
from protocol.errors import ErrorCode


class FollowerFetch(NamedTuple):
    """One partition of a follower's Fetch, as of when it came."""

    broker_id: int
    broker_epoch: int
    """-1 where the request is too old to say (KIP-903)."""
    offset: int
    """The follower has everything below."""
    log_start_offset: int
    received_ms: int


def check_follower(partition: Partition, broker_id: int, current_leader_epoch: int) -> Leading:
    """Returns the leader's role for a broker with one of the other replicas.

    Raises NOT_LEADER_OR_FOLLOWER where this broker does not lead. Who has no replica may know of an assignment that has
    yet to come here, and tries again: UNKNOWN_LEADER_EPOCH, or NOT_LEADER_OR_FOLLOWER where it did not say its epoch.
    """
    role = partition.role
    if not isinstance(role, Leading):
        raise partition.moved(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if broker_id not in role.followers:
        knows_more = current_leader_epoch != NO_EPOCH
        raise partition.moved(ErrorCode.UNKNOWN_LEADER_EPOCH if knows_more else ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return role


def follower_fetched(partition: Partition, fetch: FollowerFetch, current_leader_epoch: int = NO_EPOCH) -> None:
    """Notes how far a follower is, which may join the ISR by that, and commit records. Raises as `check_follower` does,
    and NOT_LEADER_OR_FOLLOWER to a broker that has registered anew since (KIP-903)."""
    role = check_follower(partition, fetch.broker_id, current_leader_epoch)
    says_epoch = fetch.broker_epoch != NO_BROKER_EPOCH
    if says_epoch and fetch.broker_epoch < partition.rules.broker_epoch(fetch.broker_id):
        raise partition.moved(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    before = role.followers[fetch.broker_id]
    follower = before.fetched(
        fetch.offset, fetch.log_start_offset, partition.log_end_offset, fetch.received_ms, fetch.broker_epoch
    )
    role.followers[fetch.broker_id] = follower
    if may_join(follower, role.isr, partition.high_watermark, role.epoch_start, partition.rules):
        partition.propose(partition, role.isr.expand((fetch.broker_id,)))
    if follower.log_end_offset != before.log_end_offset or partition.high_watermark < partition.log_end_offset:
        partition.advance(fetch.received_ms)  # another one that held it may have been fenced, or be late, by now
    if follower.log_start_offset != before.log_start_offset:
        for waiter in tuple(partition.append_waiters):  # a deletion may be carried out by now
            waiter.wake()


def shrink_isr(partition: Partition, now_ms: int) -> None:
    """Proposes an ISR without the replicas that have been behind for replica.lag.time.max.ms. Commits what only waited
    for one that was about to join, and is behind for as long: if it is dead, no fetch of its comes that would look."""
    role = partition.role
    if isinstance(role, Leading) and not role.is_alone:
        end = partition.log_end_offset
        late = out_of_sync(role.isr, role.followers.values(), end, partition.rules, now_ms)
        if late:
            partition.propose(partition, role.isr.shrink(late))
        elif partition.high_watermark < end:
            partition.advance(now_ms)
