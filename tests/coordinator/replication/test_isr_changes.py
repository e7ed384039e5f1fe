"""Tests ISR changes on their way to the controller, by cases: the requests, and the meaning of their answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.cluster.topics.topic import PartitionRegistration
from coordinator.replication.isr import Follower, Isr
from coordinator.replication.isr_changes import (
    CommittedIsr,
    IsrChange,
    IsrChanges,
    Verdict,
    decided,
    is_pending,
    is_worth_a_retry,
    proposed_change,
)
from coordinator.replication.roles import Following, Leading, next_role
from protocol.codec import decode, encode
from protocol.errors import ErrorCode
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from protocol.types import TopicPartition

LEADER, A, B = 1, 2, 3
LEADER_EPOCH, PARTITION_EPOCH, BROKER_EPOCH = 4, 9, 77
T, U = (bytes(15) + bytes((number,)) for number in (1, 2))
COMMITTED = frozenset((LEADER, A))


def role(isr: Isr) -> Leading:
    followers = {A: Follower(A, 5, broker_epoch=70), B: Follower(B)}
    return Leading(LEADER, LEADER_EPOCH, 0, isr, followers, PARTITION_EPOCH)


def change(isr: Isr, name: str = "t", index: int = 0, topic_id: bytes = T) -> IsrChange:
    return proposed_change(TopicPartition(name, index), topic_id, role(isr), isr, BROKER_EPOCH)


EXPANSION = Isr(COMMITTED).expand((B,))
SHRINK = Isr(COMMITTED).shrink((A,))


def everything(_: IsrChange) -> bool:
    return True


def request_of(changes: IsrChanges, pending: Callable[[IsrChange], bool] = everything) -> AlterPartitionRequest:
    request = changes.next_request(BROKER_EPOCH, pending)
    assert request is not None
    return request


def answer(*codes: tuple[bytes, int, ErrorCode]) -> AlterPartitionResponse:
    return AlterPartitionResponse(
        topics=[
            ResponseTopicData(
                topic_id=topic_id,
                partitions=[
                    ResponsePartitionData(
                        partition_index=index,
                        error_code=code,
                        leader_epoch=LEADER_EPOCH,
                        isr=[1],
                        partition_epoch=10,
                        leader_id=0,
                    )
                ],
            )
            for topic_id, index, code in codes
        ],
        error_code=0,
    )


@pytest.mark.parametrize("version", [2, 3])
def test_a_request_has_the_proposed_isr_with_the_epochs_of_its_brokers(version: int) -> None:
    changes = IsrChanges(LEADER)
    changes.add(change(EXPANSION))
    request = decode(AlterPartitionRequest, version, memoryview(encode(request_of(changes), version)))[0]
    assert (request.broker_id, request.broker_epoch, request.topics[0].topic_id) == (LEADER, BROKER_EPOCH, T)
    (partition,) = request.topics[0].partitions
    assert (partition.leader_epoch, partition.partition_epoch) == (LEADER_EPOCH, PARTITION_EPOCH)
    assert replicas_of(partition) == ([LEADER, A, B] if version == 2 else [(LEADER, BROKER_EPOCH), (A, 70), (B, -1)])


def replicas_of(partition: PartitionData) -> list[object]:
    with_epochs = [(one.broker_id, one.broker_epoch) for one in partition.new_isr_with_epochs]
    return [*with_epochs] or [*partition.new_isr]


def test_all_changes_go_together_by_topic() -> None:
    changes = IsrChanges(LEADER)
    for one in (change(SHRINK, "t", 0), change(SHRINK, "u", 0, U), change(SHRINK, "t", 1)):
        assert changes.add(one)
    topics = request_of(changes).topics
    assert [(topic.topic_id, [one.partition_index for one in topic.partitions]) for topic in topics] == [
        (T, [0, 1]), (U, [0]),
    ]  # fmt: skip


def test_a_partition_has_one_change_until_it_is_answered() -> None:
    changes = IsrChanges(LEADER)
    assert changes.add(change(SHRINK))
    assert not changes.add(change(EXPANSION))
    request_of(changes)
    assert not changes.add(change(EXPANSION))
    assert changes.answered(answer((T, 0, ErrorCode.INELIGIBLE_REPLICA)))
    assert changes.add(change(EXPANSION))


def test_a_change_that_nobody_waits_for_is_not_sent_again() -> None:
    changes = IsrChanges(LEADER)
    changes.add(change(SHRINK))
    request_of(changes)
    changes.failed()
    assert request_of(changes).topics
    changes.failed()
    assert changes.next_request(BROKER_EPOCH, lambda _: False) is None
    assert changes.add(change(EXPANSION))


def test_a_partition_that_is_not_answered_is_asked_for_again() -> None:
    changes = IsrChanges(LEADER)
    for index in (0, 1):
        changes.add(change(SHRINK, "t", index))
    request_of(changes)
    ((answered, verdict),) = changes.answered(answer((T, 1, ErrorCode.NONE), (U, 0, ErrorCode.NONE)))
    assert (answered.name.partition, verdict) == (1, CommittedIsr(LEADER_EPOCH, 10, frozenset((1,))))
    assert [one.partition_index for one in request_of(changes).topics[0].partitions] == [0]


@pytest.mark.parametrize(
    ("verdict", "isr", "retried"),
    [
        pytest.param(CommittedIsr(LEADER_EPOCH, 10, frozenset((1,))), Isr(frozenset((1,))), False, id="committed"),
        pytest.param(CommittedIsr(LEADER_EPOCH, 9, COMMITTED), Isr(COMMITTED), False, id="as it was"),
        pytest.param(CommittedIsr(LEADER_EPOCH + 1, 10, COMMITTED), SHRINK, False, id="of another leader"),
        pytest.param(CommittedIsr(LEADER_EPOCH, 8, COMMITTED), SHRINK, False, id="of an older partition epoch"),
        pytest.param(ErrorCode.INELIGIBLE_REPLICA, Isr(COMMITTED), False, id="not made: a replica may not be in"),
        pytest.param(ErrorCode.OPERATION_NOT_ATTEMPTED, Isr(COMMITTED), False, id="not made: another one failed"),
        pytest.param(ErrorCode.INVALID_UPDATE_VERSION, SHRINK, False, id="the metadata will say"),
        pytest.param(ErrorCode.FENCED_LEADER_EPOCH, SHRINK, False, id="another leads"),
        pytest.param(ErrorCode.UNKNOWN_TOPIC_ID, SHRINK, False, id="it is deleted"),
        pytest.param(ErrorCode.NEW_LEADER_ELECTED, SHRINK, False, id="a reassignment is over"),
        pytest.param(ErrorCode.UNKNOWN_SERVER_ERROR, SHRINK, True, id="it says nothing"),
    ],
)
def test_what_an_answer_means(verdict: Verdict, isr: Isr, retried: bool) -> None:
    after = decided(role(SHRINK), change(SHRINK), verdict)
    assert (after.isr, is_worth_a_retry(verdict)) == (isr, retried)
    assert after.partition_epoch == (10 if isr == Isr(frozenset((1,))) else PARTITION_EPOCH)


def test_a_change_is_pending_until_something_has_overtaken_it() -> None:
    pending = role(SHRINK)
    assert is_pending(pending, change(SHRINK))
    assert not is_pending(pending, change(EXPANSION))
    assert not is_pending(role(Isr(COMMITTED)), change(SHRINK))
    assert not is_pending(pending.with_isr(SHRINK, 10), change(SHRINK))
    assert not is_pending(Following(A, LEADER_EPOCH, PARTITION_EPOCH), change(SHRINK))


@pytest.mark.parametrize(("partition_epoch", "isr"), [(PARTITION_EPOCH, SHRINK), (10, Isr(COMMITTED))])
def test_metadata_that_the_leader_knows_takes_nothing_back(partition_epoch: int, isr: Isr) -> None:
    assigned = PartitionRegistration((LEADER, A, B), tuple(COMMITTED), LEADER, LEADER_EPOCH, partition_epoch)
    after = next_role(role(SHRINK), assigned, LEADER, 20, 0)
    assert isinstance(after, Leading)
    assert after.isr == isr
