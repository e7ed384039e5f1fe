"""The followers of a partition that this broker leads: their progress, and changes of the ISR.

Source: kafka.cluster.Partition.updateFollowerFetchState, maybeExpandIsr and maybeShrinkIsr.
"""

from __future__ import annotations

from typing import NamedTuple

from broker.replica.isr import NO_BROKER_EPOCH, may_join, out_of_sync
from broker.replica.partition import Partition
from broker.replica.roles import NO_EPOCH, Leading
from protocol.errors import ErrorCode


class FollowerFetch(NamedTuple):
    """The part of a follower's Fetch for one partition, and its time of receipt."""

    broker_id: int
    broker_epoch: int
    """The follower's broker epoch; -1 if the request's version has none (KIP-903)."""
    offset: int
    """The follower has every record below this offset."""
    log_start_offset: int
    received_ms: int


def check_follower(partition: Partition, broker_id: int, current_leader_epoch: int) -> Leading:
    """Returns the leader's role, for a request of a broker that has another replica.

    Raises NOT_LEADER_OR_FOLLOWER if this broker doesn't lead. A broker without a replica may know of an assignment that
    this broker doesn't know yet, and gets a retriable error: UNKNOWN_LEADER_EPOCH, or NOT_LEADER_OR_FOLLOWER if it
    didn't send its leader epoch.
    """
    role = partition.role
    if not isinstance(role, Leading):
        raise partition.moved(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if broker_id not in role.followers:
        knows_more = current_leader_epoch != NO_EPOCH
        raise partition.moved(ErrorCode.UNKNOWN_LEADER_EPOCH if knows_more else ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return role


def follower_fetched(partition: Partition, fetch: FollowerFetch, current_leader_epoch: int = NO_EPOCH) -> None:
    """Records a follower's progress, by which the follower may join the ISR and records may be committed. Raises the
    errors of `check_follower`, and NOT_LEADER_OR_FOLLOWER if the broker has registered again since (KIP-903).
    """
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
        partition.advance(fetch.received_ms)  # another follower that blocked the commit may be fenced or late by now
    if follower.log_start_offset != before.log_start_offset:
        for waiter in tuple(partition.append_waiters):  # a deletion may be complete now
            waiter.wake()


def shrink_isr(partition: Partition, now_ms: int) -> None:
    """Proposes an ISR without the replicas that have been behind for replica.lag.time.max.ms.

    Commits records that waited only for a follower that was about to join and has been behind for as long: if its
    broker is dead, no fetch arrives that would commit them.
    """
    role = partition.role
    if isinstance(role, Leading) and not role.is_alone:
        end = partition.log_end_offset
        late = out_of_sync(role.isr, role.followers.values(), end, partition.rules, now_ms)
        if late:
            partition.propose(partition, role.isr.shrink(late))
        elif partition.high_watermark < end:
            partition.advance(now_ms)
