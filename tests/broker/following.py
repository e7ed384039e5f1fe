"""A partition with a second, in-sync replica, which acknowledges records when a test calls `acknowledge`."""

from __future__ import annotations

from broker.replica.partition import Partition
from coordinator.replication.isr import NO_BROKER_EPOCH, Follower, Isr
from coordinator.replication.roles import FollowerFetch, Leading
from protocol.types import TopicPartition
from storage.log import Log

LEADER, FOLLOWER = 1, 2
NO_LOG_START = 0


def led_alone(broker_id: int, epoch: int, log_end_offset: int) -> Leading:
    """Returns the role of a partition's only replica."""
    return Leading(broker_id, epoch, log_end_offset, Isr(frozenset((broker_id,))), {})


def led(name: TopicPartition, log: Log) -> Partition:
    """Returns a partition that this broker leads, with the only replica."""
    partition = Partition(name, bytes(16), log)
    partition.become(led_alone(LEADER, 0, log.log_end_offset), 0)
    return partition


def follow(partition: Partition, *, in_sync: bool = True) -> None:
    """Makes another broker a follower that has all committed records."""
    role = partition.role
    assert isinstance(role, Leading)
    isr = Isr(frozenset((role.leader_id, FOLLOWER) if in_sync else (role.leader_id,)))
    followers = {FOLLOWER: Follower(FOLLOWER, partition.high_watermark)}
    partition.become(Leading(role.leader_id, role.epoch, role.epoch_start, isr, followers, role.partition_epoch), 0)


def acknowledge(partition: Partition, offset: int) -> None:
    """Makes the follower have all records below the offset."""
    partition.fetched(FollowerFetch(FOLLOWER, NO_BROKER_EPOCH, offset, NO_LOG_START, 0))
