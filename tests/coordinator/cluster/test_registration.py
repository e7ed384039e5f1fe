"""What a node writes of itself when it starts and when it stops."""

from __future__ import annotations

import pytest

from coordinator.cluster.features import bootstrap_records
from coordinator.cluster.registration import (
    activation_records,
    directory_records,
    leading_again,
    offline_records,
    shutdown_records,
    unregister_records,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.metadata_records.log import BeginTransactionRecord, EndTransactionRecord
from protocol.metadata_records.nodes import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from protocol.metadata_records.topics import PartitionChangeRecord
from protocol.types import TopicPartition
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import DIRECTORY, NODE, OPTIONS, TOPIC_ID, broker_config


def test_a_new_cluster_gets_its_features_in_a_transaction() -> None:
    made = given.image()
    assert activation_records(made, bootstrap_records(), OPTIONS) == [
        BeginTransactionRecord(name="Bootstrap records"),
        *bootstrap_records(),
        broker_config("", "min.insync.replicas", "1"),
        EndTransactionRecord(),
    ]


def test_a_brokers_epoch_is_the_offset_of_its_registration() -> None:
    made = given.image()
    registered = len(bootstrap_records()) + 1  # after the features comes the controller
    assert made.brokers[NODE].epoch == registered
    assert made.brokers[NODE].active
    assert made.controllers[NODE].endpoints == (OPTIONS.controller_listener,)


def test_a_controlled_shutdown_leaves_partitions_without_leader_but_with_an_eligible_one() -> None:
    made = given.image(*given.topic("orders"))
    epoch = made.brokers[NODE].epoch
    records = shutdown_records(made, NODE)
    assert records == [
        BrokerRegistrationChangeRecord(broker_id=NODE, broker_epoch=epoch, in_controlled_shutdown=1),
        PartitionChangeRecord(
            partition_id=0,
            topic_id=TOPIC_ID,
            isr=[],
            leader=-1,
            eligible_leader_replicas=[NODE],
            last_known_elr=[NODE],
        ),
        BrokerRegistrationChangeRecord(broker_id=NODE, broker_epoch=epoch, fenced=1),
    ]
    for record in records:
        made.apply(record)
    assert shutdown_records(made, NODE) == []


def test_without_eligible_leader_replicas_the_last_in_sync_replica_stays_in_the_set() -> None:
    made = given.image(*given.topic("orders"))
    made.features["eligible.leader.replicas.version"] = 0
    assert PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=-1) in shutdown_records(made, NODE)


def test_a_node_that_is_back_leads_what_it_left() -> None:
    made = given.image(*given.topic("orders"))
    for record in shutdown_records(made, NODE):
        made.apply(record)
    (elected,) = leading_again(made, made.brokers[NODE], clean=True)
    assert elected == PartitionChangeRecord(
        partition_id=0, topic_id=TOPIC_ID, isr=[NODE], leader=NODE, eligible_leader_replicas=[], last_known_elr=[]
    )
    made.apply(elected)
    found = made.partition(TopicPartition("orders", 0))
    assert found is not None
    assert (found.leader, found.leader_epoch, found.isr, found.elr) == (NODE, 2, (NODE,), ())


def test_after_an_unclean_stop_leaders_get_a_new_epoch() -> None:
    made = given.image(*given.topic("orders"))
    assert list(leading_again(made, made.brokers[NODE], clean=True)) == []
    (elected,) = leading_again(made, made.brokers[NODE], clean=False)
    assert elected == PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=NODE)


def test_a_leader_that_was_still_recovering_is_done_when_it_leads_again() -> None:
    made = given.image(*given.topic("orders", leader_recovery_state=1))
    (elected,) = leading_again(made, made.brokers[NODE], clean=False)
    assert elected.leader_recovery_state == 0


def test_another_brokers_partitions_are_left_to_it() -> None:
    made = given.image(*given.topic("orders", replicas=(2,), isr=(2,), leader=-1))
    assert list(leading_again(made, made.brokers[NODE], clean=False)) == []


OTHER = b"directory-two---"


def test_partitions_in_a_directory_that_failed_have_no_leader_until_it_is_back() -> None:
    made = given.image(*given.topic("orders"), given.partition(1, directories=(OTHER,)))
    made.apply(BrokerRegistrationChangeRecord(broker_id=NODE, broker_epoch=0, log_dirs=[DIRECTORY, OTHER]))
    gone, registered = offline_records(made, NODE, [OTHER])
    assert gone == PartitionChangeRecord(
        partition_id=1, topic_id=TOPIC_ID, isr=[], leader=-1, eligible_leader_replicas=[NODE], last_known_elr=[NODE]
    )
    assert isinstance(registered, BrokerRegistrationChangeRecord)
    assert registered.log_dirs == [DIRECTORY]
    for record in (gone, registered):
        made.apply(record)
    assert offline_records(made, NODE, [OTHER]) == []
    assert list(leading_again(made, made.brokers[NODE], clean=True)) == []
    back = made.brokers[NODE]._replace(log_dirs=(DIRECTORY, OTHER))
    assert [one.partition_id for one in leading_again(made, back, clean=True)] == [1]


def test_a_broker_that_starts_without_a_directory_does_not_lead_what_is_there() -> None:
    made = given.image(*given.topic("orders"), given.partition(1, directories=(OTHER,)))
    (gone,) = leading_again(made, made.brokers[NODE], clean=True)
    assert (gone.partition_id, gone.leader) == (1, -1)


def test_replicas_found_elsewhere_are_recorded_there() -> None:
    made = given.image(*given.topic("orders", 2))
    places = [(TopicPartition("orders", 0), DIRECTORY), (TopicPartition("orders", 1), b"directory-two---")]
    places += [(TopicPartition("absent", 0), DIRECTORY)]
    assert list(directory_records(made, NODE, places)) == [
        PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID, directories=[b"directory-two---"])
    ]


def test_a_broker_that_is_gone_is_forgotten() -> None:
    gone = RegisterBrokerRecord(
        broker_id=2, incarnation_id=bytes(16), broker_epoch=70, end_points=[], features=[], rack=None
    )
    made = given.image(gone, *given.topic("orders", replicas=(2, NODE), isr=(2, NODE), leader=2))
    changed, forgotten = unregister_records(made, 2)
    assert changed == PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=[NODE], leader=NODE)
    made.apply(forgotten)
    assert 2 not in made.brokers


@pytest.mark.parametrize(("broker", "code"), [
    (7, ErrorCode.BROKER_ID_NOT_REGISTERED),
    (NODE, ErrorCode.INVALID_REQUEST),
])  # fmt: skip
def test_only_a_broker_that_was_there_and_is_gone_is_forgotten(broker: int, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as caught:
        unregister_records(given.image(), broker)
    assert caught.value.code is code
