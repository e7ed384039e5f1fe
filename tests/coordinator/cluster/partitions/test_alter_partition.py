"""Tests AlterPartition: the in-sync replicas that a leader may have, and the error that rejects each other request."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from coordinator.cluster.image import Image
from coordinator.cluster.partitions.alter_partition import alter_partition
from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.topics.topic import RECOVERED, RECOVERING
from protocol.errors import ErrorCode, KafkaError, error_code
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from protocol.metadata_records.nodes import RegisterBrokerRecord
from protocol.metadata_records.topics import PartitionChangeRecord
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import NODE, TOPIC_ID, partition_change

SECOND, THIRD, FENCED, STOPPING, UNREGISTERED = 2, 3, 4, 5, 6
REPLICAS = (NODE, SECOND, THIRD)
EPOCH = 99
"""The broker epoch of the other brokers."""

LEADER_EPOCH, PARTITION_EPOCH = 5, 8


def broker(broker_id: int, *, fenced: bool = False, stopping: bool = False) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=bytes(16),
        broker_epoch=EPOCH,
        end_points=[],
        features=[],
        rack=None,
        fenced=fenced,
        in_controlled_shutdown=stopping,
        log_dirs=[b"directory-%06d" % broker_id],
    )


def cluster(**state: object) -> Image:
    """Returns a topic "orders" on three brokers, led by the first; `state` replaces fields of its partition."""
    partition: dict[str, object] = {
        "replicas": REPLICAS,
        "isr": (NODE, SECOND),
        "leader": NODE,
        "leader_epoch": LEADER_EPOCH,
        "partition_epoch": PARTITION_EPOCH,
        **state,
    }
    others = [broker(SECOND), broker(THIRD), broker(FENCED, fenced=True), broker(STOPPING, stopping=True)]
    return given.image(*others, *given.topic("orders", 1, TOPIC_ID, **partition))


def proposal(isr: Sequence[int], **fields: object) -> PartitionData:
    """Returns the leader's proposal, in the layout of version 3 and without broker epochs; `fields` replaces its
    fields."""
    proposed = PartitionData(
        partition_index=0,
        leader_epoch=LEADER_EPOCH,
        new_isr_with_epochs=[BrokerState(broker_id=broker_id) for broker_id in isr],
        partition_epoch=PARTITION_EPOCH,
    )
    for name, value in fields.items():
        setattr(proposed, name, value)
    return proposed


def alter(
    image: Image, *proposed: PartitionData, topic_id: bytes = TOPIC_ID, sender: int = NODE
) -> tuple[list[MetadataRecord], list[ResponsePartitionData]]:
    """Returns the records and the partitions of the response to a request of one topic."""
    request = AlterPartitionRequest(
        broker_id=sender,
        broker_epoch=image.brokers[sender].epoch,
        topics=[TopicData(topic_id=topic_id, partitions=list(proposed))],
    )
    decided = given.decide(alter_partition, image, request, given.RULES)
    assert decided.answer.error_code == ErrorCode.NONE
    (topic,) = decided.answer.topics
    assert topic.topic_id == topic_id
    return list(decided.records), topic.partitions


def error_of(image: Image, proposed: PartitionData, **asker: int) -> ErrorCode:
    """Returns the error that rejects the proposal; no record may be written."""
    records, (partition,) = alter(image, proposed, **asker)  # type: ignore[arg-type]  # the sender by its name
    assert records == []
    return error_code(partition.error_code)


def test_a_replica_that_has_caught_up_joins() -> None:
    records, (partition,) = alter(cluster(), proposal([NODE, SECOND, THIRD]))
    assert records == [partition_change(isr=[NODE, SECOND, THIRD])]
    assert (partition.error_code, partition.isr) == (ErrorCode.NONE, [NODE, SECOND, THIRD])
    assert (partition.leader_id, partition.leader_epoch) == (NODE, LEADER_EPOCH)
    assert partition.partition_epoch == PARTITION_EPOCH + 1


def test_a_replica_that_lags_leaves_without_a_new_leader_epoch() -> None:
    records, (partition,) = alter(cluster(), proposal([NODE]))
    assert records == [partition_change(isr=[NODE])]
    assert (partition.isr, partition.leader_epoch) == ([NODE], LEADER_EPOCH)


def test_the_present_isr_needs_no_record_and_gets_the_present_state() -> None:
    records, (partition,) = alter(cluster(), proposal([NODE, SECOND]))
    assert records == []
    assert (partition.error_code, partition.isr, partition.partition_epoch) == (
        ErrorCode.NONE,
        [NODE, SECOND],
        PARTITION_EPOCH,
    )


def test_requests_before_version_3_name_replicas_without_broker_epochs() -> None:
    proposed = proposal([], new_isr=[NODE, SECOND, THIRD], new_isr_with_epochs=[])
    records, _ = alter(cluster(), proposed)
    assert records == [partition_change(isr=[NODE, SECOND, THIRD])]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"leader_epoch": LEADER_EPOCH + 1}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": PARTITION_EPOCH + 1}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": LEADER_EPOCH - 1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": PARTITION_EPOCH - 1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"partition_index": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition_index": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_recovery_state": RECOVERING}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": 7}, ErrorCode.INVALID_REQUEST),
        ({"leader_epoch": LEADER_EPOCH + 1, "partition_epoch": -1}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1, "partition_epoch": PARTITION_EPOCH + 1}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1, "partition_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_a_request_that_does_not_fit_the_partition(fields: dict[str, int], code: ErrorCode) -> None:
    assert error_of(cluster(), proposal([NODE], **fields)) is code


@pytest.mark.parametrize(
    "isr",
    [
        pytest.param([], id="empty"),
        pytest.param([SECOND], id="without the leader"),
        pytest.param([NODE, NODE], id="a replica twice"),
        pytest.param([NODE, FENCED], id="a broker that is no replica"),
        pytest.param([NODE, -1], id="a negative id"),
    ],
)
def test_an_isr_that_no_leader_may_have(isr: list[int]) -> None:
    assert error_of(cluster(), proposal(isr)) is ErrorCode.INVALID_REQUEST


def test_only_the_leader_alters_its_partition() -> None:
    assert error_of(cluster(), proposal([NODE]), sender=SECOND) is ErrorCode.INVALID_REQUEST
    stale = proposal([NODE], partition_epoch=PARTITION_EPOCH - 1)
    assert error_of(cluster(), stale, sender=SECOND) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("ineligible", [FENCED, STOPPING, UNREGISTERED])
def test_a_replica_whose_broker_is_not_active_stays_out(ineligible: int) -> None:
    image = cluster(replicas=(NODE, ineligible), isr=(NODE,))
    assert error_of(image, proposal([NODE, ineligible])) is ErrorCode.INELIGIBLE_REPLICA


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (EPOCH, ErrorCode.NONE),
        (-1, ErrorCode.NONE),
        (EPOCH - 1, ErrorCode.INELIGIBLE_REPLICA),
        (EPOCH + 1, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_a_replica_that_fetched_in_another_broker_epoch_stays_out(epoch: int, code: ErrorCode) -> None:
    proposed = proposal(
        [NODE, SECOND],
        new_isr_with_epochs=[BrokerState(broker_id=NODE), BrokerState(broker_id=SECOND, broker_epoch=epoch)],
    )
    _, (partition,) = alter(cluster(isr=(NODE,)), proposed)
    assert partition.error_code == code


def test_an_ineligible_replica_is_told_after_every_other_problem() -> None:
    image = cluster(replicas=(NODE, FENCED), isr=(NODE,))
    stale = proposal([NODE, FENCED], partition_epoch=PARTITION_EPOCH - 1)
    assert error_of(image, stale) is ErrorCode.INVALID_UPDATE_VERSION


def test_a_leader_that_recovers_is_alone_until_it_has_recovered() -> None:
    image = cluster(isr=(NODE,), leader_recovery_state=RECOVERING)
    together = proposal([NODE, SECOND], leader_recovery_state=RECOVERING)
    assert error_of(image, together) is ErrorCode.INVALID_REQUEST
    records, (partition,) = alter(image, proposal([NODE], leader_recovery_state=RECOVERING))
    assert (records, partition.error_code, partition.leader_recovery_state) == ([], ErrorCode.NONE, RECOVERING)
    records, (partition,) = alter(image, proposal([NODE], leader_recovery_state=RECOVERED))
    assert records == [partition_change(leader_recovery_state=RECOVERED)]
    assert (partition.error_code, partition.leader_recovery_state) == (ErrorCode.NONE, RECOVERED)


def test_an_unknown_topic_rejects_each_of_its_partitions() -> None:
    other = bytes(range(16))
    records, partitions = alter(cluster(), proposal([NODE]), proposal([NODE], partition_index=9), topic_id=other)
    assert records == []
    assert [(partition.partition_index, partition.error_code) for partition in partitions] == [
        (0, ErrorCode.UNKNOWN_TOPIC_ID),
        (9, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_a_partition_named_twice_is_changed_once() -> None:
    records, partitions = alter(cluster(), proposal([NODE]), proposal([NODE, SECOND, THIRD]))
    assert records == [partition_change(isr=[NODE])]
    assert [partition.error_code for partition in partitions] == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]


def test_a_rejection_shows_nothing_of_the_partition() -> None:
    _, (partition,) = alter(cluster(), proposal([NODE], leader_epoch=-1))
    assert (partition.leader_id, partition.leader_epoch, partition.isr, partition.partition_epoch) == (0, 0, [], 0)


def test_a_rejected_partition_does_not_hinder_the_next() -> None:
    records, partitions = alter(cluster(), proposal([NODE], leader_epoch=-1), proposal([NODE]))
    assert records == [partition_change(isr=[NODE])]
    assert [partition.error_code for partition in partitions] == [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NONE]


def test_the_isr_that_completes_a_reassignment_removes_the_old_replicas() -> None:
    image = cluster(removing_replicas=(THIRD,), isr=(NODE, SECOND, THIRD))
    records, (partition,) = alter(image, proposal([NODE, SECOND]))
    (record,) = records
    assert isinstance(record, PartitionChangeRecord)
    assert (record.replicas, record.isr, record.removing_replicas) == ([NODE, SECOND], [NODE, SECOND], [])
    assert partition.error_code == ErrorCode.NONE


def test_a_leader_that_is_reassigned_away_learns_of_the_new_one_by_an_error() -> None:
    image = cluster(replicas=(NODE, SECOND), isr=(NODE,), removing_replicas=(NODE,), adding_replicas=(SECOND,))
    records, (partition,) = alter(image, proposal([NODE, SECOND]))
    (record,) = records
    assert isinstance(record, PartitionChangeRecord)
    assert (record.leader, record.replicas, record.isr) == (SECOND, [SECOND], [SECOND])
    assert partition.error_code == ErrorCode.NEW_LEADER_ELECTED


@pytest.mark.parametrize("epoch", [-1, 0, 10_000])
def test_another_process_of_the_broker_is_rejected_as_a_whole(epoch: int) -> None:
    image = cluster()
    request = AlterPartitionRequest(broker_id=NODE, broker_epoch=epoch, topics=[])
    with pytest.raises(KafkaError) as raised:
        given.decide(alter_partition, image, request, given.RULES)
    assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_is_not_registered_is_rejected_as_a_whole() -> None:
    request = AlterPartitionRequest(broker_id=UNREGISTERED, broker_epoch=EPOCH, topics=[])
    with pytest.raises(KafkaError):
        given.decide(alter_partition, cluster(), request, given.RULES)
