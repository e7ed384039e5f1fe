"""Tests a partition in its roles: which appends are allowed, what commits records, and which waiters are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.replica.partition import Partition
from broker.replica.replica import READ_UNCOMMITTED
from broker.request.sleeper import Sleeper
from coordinator.cluster.topics import topic
from coordinator.replication.isr import NO_BROKER_EPOCH, Follower, Isr, IsrRules
from coordinator.replication.roles import FollowerFetch, Following, LeaderMoved, Leading, next_role
from protocol.errors import ErrorCode, KafkaError
from protocol.records.building import build
from protocol.records.record import Record
from protocol.types import TopicPartition
from storage.config import LogConfig
from storage.disk import OsDisk
from storage.log import Log
from storage.producers.entry import Origin
from tests.broker.following import FOLLOWER, LEADER, acknowledge, follow, led, led_alone

NAME = TopicPartition("t", 0)


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    log = Log.open(str(tmp_path / "t-0"), NAME, LogConfig(), disk=OsDisk(), now_ms=0)
    return led(NAME, log)


def append(partition: Partition, *, for_all: bool = True) -> int:
    records = memoryview(build([Record(timestamp=0, value=b"v")]))
    return partition.append(records, 0, for_all=for_all).base_offset


class CommitCallback:
    """Records the error codes with which it is called."""

    def __init__(self) -> None:
        self.codes: list[ErrorCode] = []

    def __call__(self, error: KafkaError | None) -> None:
        self.codes.append(ErrorCode.NONE if error is None else error.code)


def assigned(*isr: int, leader: int = LEADER, epoch: int = 0, partition_epoch: int = 0) -> topic.PartitionRegistration:
    return topic.PartitionRegistration((LEADER, FOLLOWER), isr, leader, epoch, partition_epoch)


def assign(partition: Partition, assignment: topic.PartitionRegistration) -> None:
    partition.become(next_role(partition.role, assignment, LEADER, partition.log_end_offset, 0), 0)


def test_the_only_replica_commits_what_it_appends(partition: Partition) -> None:
    callback = CommitCallback()
    append(partition)
    partition.when_committed(1, callback)
    assert (partition.high_watermark, callback.codes) == (1, [ErrorCode.NONE])


async def test_what_a_follower_lacks_is_not_committed(partition: Partition) -> None:
    follow(partition)
    callback, consumer, replica = CommitCallback(), Sleeper(1), Sleeper(1)
    partition.waiters[consumer] = None
    partition.append_waiters[replica] = None
    append(partition)
    partition.when_committed(1, callback)
    assert (partition.high_watermark, partition.last_stable_offset, callback.codes) == (0, 0, [])
    assert (consumer.woken.done(), replica.woken.done()) == (False, True)
    assert not partition.read(partition.snapshot(READ_UNCOMMITTED), 0, 1000, True)
    acknowledge(partition, 1)
    assert (partition.high_watermark, callback.codes, consumer.woken.done()) == (1, [ErrorCode.NONE], True)
    assert partition.read(partition.snapshot(READ_UNCOMMITTED), 0, 1000, True)


def test_commits_are_told_in_the_order_of_their_offsets(partition: Partition) -> None:
    follow(partition)
    heard: list[int] = []
    for _ in range(3):
        append(partition)
    for offset in (3, 1, 2):
        partition.when_committed(offset, lambda _, offset=offset: heard.append(offset))  # type: ignore[misc]
    acknowledge(partition, 2)
    assert heard == [1, 2]
    acknowledge(partition, 3)
    assert heard == [1, 2, 3]


def test_the_high_watermark_does_not_go_back(partition: Partition) -> None:
    follow(partition)
    append(partition)
    acknowledge(partition, 1)
    acknowledge(partition, 0)
    assert partition.high_watermark == 1


def test_too_few_in_sync_refuse_what_is_for_all_and_commit_nothing(partition: Partition) -> None:
    partition.configure(LogConfig(min_insync_replicas=2))
    follow(partition, in_sync=False)
    with pytest.raises(KafkaError) as refused:
        append(partition)
    assert (refused.value.code, partition.log_end_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS, 0)
    append(partition, for_all=False)
    assert (partition.log_end_offset, partition.high_watermark) == (1, 0)


def test_a_single_replica_is_enough_whatever_is_configured(partition: Partition) -> None:
    partition.configure(LogConfig(min_insync_replicas=2))
    append(partition)
    assert partition.commit_error(1, partition.tenure) is ErrorCode.NONE


def test_who_is_in_sync_no_more_when_it_is_committed_was_not_enough(partition: Partition) -> None:
    partition.configure(LogConfig(min_insync_replicas=2))
    follow(partition)
    append(partition)
    assert partition.commit_error(1, partition.tenure) is None
    acknowledge(partition, 1)
    assign(partition, assigned(LEADER, partition_epoch=1))
    assert partition.commit_error(1, partition.tenure) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_a_follower_appends_nothing_and_names_the_leader(partition: Partition) -> None:
    partition.become(Following(FOLLOWER, 4, 1), 0)
    for origin in (Origin.CLIENT, Origin.COORDINATOR):
        with pytest.raises(LeaderMoved) as refused:
            partition.append(memoryview(build([Record(timestamp=0, value=b"v")])), 0, origin)
        moved = refused.value
        assert (moved.code, moved.leader_id, moved.leader_epoch) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, FOLLOWER, 4)


def test_only_a_leader_notes_an_epoch_at_its_logs_end(partition: Partition) -> None:
    append(partition)
    partition.become(Following(FOLLOWER, 4, 1), 0)
    assert partition.last_leader_epoch == 0
    assign(partition, assigned(LEADER, epoch=5, partition_epoch=2))
    assert partition.last_leader_epoch == 5
    assert partition.end_of_epoch(0).end_offset == 1


def test_who_waits_for_a_commit_is_failed_with_the_leadership(partition: Partition) -> None:
    follow(partition)
    append(partition)
    callback, tenure = CommitCallback(), partition.tenure
    partition.when_committed(1, callback)
    partition.become(Following(FOLLOWER, 4, 1), 0)
    assert callback.codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    partition.become(led_alone(LEADER, 5, 1), 0)
    assign(partition, assigned(LEADER, epoch=5, partition_epoch=2))
    assert partition.commit_error(1, tenure) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_who_waits_for_a_commit_goes_on_with_the_same_leader(partition: Partition) -> None:
    follow(partition)
    append(partition)
    callback = CommitCallback()
    partition.when_committed(1, callback)
    assign(partition, assigned(LEADER, FOLLOWER, epoch=1, partition_epoch=1))
    assert callback.codes == []
    acknowledge(partition, 1)
    assert callback.codes == [ErrorCode.NONE]


def test_a_role_that_is_older_is_not_taken_over(partition: Partition) -> None:
    assign(partition, assigned(LEADER, epoch=3, partition_epoch=7))
    partition.become(Following(FOLLOWER, 2, 6), 0)
    assert (partition.leads, partition.leader_epoch) == (True, 3)


def test_what_is_gone_tells_why(partition: Partition) -> None:
    follow(partition)
    append(partition)
    callback = CommitCallback()
    partition.when_committed(1, callback)
    partition.retire(ErrorCode.KAFKA_STORAGE_ERROR)
    assert callback.codes == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert partition.commit_error(1, 0) is ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (5, ErrorCode.NONE),
        (-1, ErrorCode.NONE),
    ],
)
def test_the_epoch_that_a_client_thinks_of_is_checked(partition: Partition, epoch: int, code: ErrorCode) -> None:
    assign(partition, assigned(LEADER, epoch=5))
    if code is ErrorCode.NONE:
        partition.check_leads(epoch)
        return
    with pytest.raises(LeaderMoved) as refused:
        partition.check_leads(epoch)
    assert (refused.value.code, refused.value.leader_epoch) == (code, 5)


def test_a_new_leader_is_behind_until_it_knows_what_was_committed_before_it(partition: Partition) -> None:
    follow(partition)
    append(partition)
    assign(partition, assigned(LEADER, FOLLOWER, epoch=1, partition_epoch=1))
    assert partition.is_behind
    acknowledge(partition, 1)
    assert not partition.is_behind


def test_the_same_epoch_keeps_what_is_known_of_followers(partition: Partition) -> None:
    assign(partition, assigned(LEADER, FOLLOWER))
    append(partition)
    acknowledge(partition, 1)
    assign(partition, assigned(LEADER, partition_epoch=1))
    role = partition.role
    assert isinstance(role, Leading)
    assert (role.isr, role.followers[FOLLOWER].log_end_offset, role.epoch_start) == (Isr(frozenset({LEADER})), 1, 0)


def test_the_next_fetch_moves_a_high_watermark_that_a_fenced_follower_has_held(partition: Partition) -> None:
    late, alive = FOLLOWER + 1, {FOLLOWER, FOLLOWER + 1}
    partition.rules = IsrRules(lambda follower: follower.replica_id in alive, lambda: 1_000)
    follow(partition)
    role = partition.role
    assert isinstance(role, Leading)
    followers = {**role.followers, late: Follower(late)}
    partition.become(Leading(LEADER, role.epoch, role.epoch_start, role.isr, followers, role.partition_epoch), 0)
    partition.fetched(FollowerFetch(late, NO_BROKER_EPOCH, 0, 0, 0))  # it has all, and may join
    append(partition)
    acknowledge(partition, 1)
    assert partition.high_watermark == 0
    alive.remove(late)
    acknowledge(partition, 1)
    assert partition.high_watermark == 1


def test_what_waited_for_a_replica_about_to_join_is_committed_once_that_is_behind_too_long(
    partition: Partition,
) -> None:
    partition.rules = IsrRules(lambda _: True, lambda: 100, lambda _: NO_BROKER_EPOCH)
    follow(partition, in_sync=False)
    acknowledge(partition, 0)
    callback = CommitCallback()
    append(partition)
    partition.when_committed(1, callback)
    partition.shrink_isr(100)
    assert (partition.high_watermark, callback.codes) == (0, [])
    partition.shrink_isr(101)
    assert (partition.high_watermark, callback.codes) == (1, [ErrorCode.NONE])
