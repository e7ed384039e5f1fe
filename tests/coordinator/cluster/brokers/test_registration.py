"""Tests registrations: a broker registers fenced, and its last incarnation has ended; UnregisterBroker removes a
broker."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from coordinator.cluster.brokers.activation import activation_records
from coordinator.cluster.brokers.bounds import MAX_NODES
from coordinator.cluster.brokers.controller_registration import register_controller
from coordinator.cluster.brokers.features import bootstrap_records
from coordinator.cluster.brokers.heartbeat import broker_heartbeat
from coordinator.cluster.brokers.info import BrokerRegistration
from coordinator.cluster.brokers.registration import register_broker, unregister_broker
from coordinator.cluster.image import Image
from coordinator.cluster.record import MetadataRecord
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.broker_registration import Feature, Listener
from protocol.messages.controller_registration import ControllerRegistrationRequest
from protocol.messages.controller_registration import Listener as ControllerListener
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.metadata_records.log import BeginTransactionRecord, EndTransactionRecord
from protocol.metadata_records.nodes import RegisterBrokerRecord
from protocol.metadata_records.topics import PartitionChangeRecord
from protocol.types import TopicPartition
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import DIRECTORY, NODE, OPTIONS, RULES, TOPIC_ID, broker_config

ORDERS = TopicPartition("orders", 0)
NEW = b"another-inc-----"
ONE_TEXT = "ZGlyZWN0b3J5LW9uZS0tLQ"
"""DIRECTORY as text, as Kafka prints it."""


def test_a_new_cluster_gets_its_features_in_a_transaction() -> None:
    assert activation_records(given.image(), bootstrap_records(), 1) == [
        BeginTransactionRecord(name="Bootstrap records"),
        *bootstrap_records(),
        broker_config("", "min.insync.replicas", "1"),
        EndTransactionRecord(),
    ]


def registered(image: Image, **fields: Any) -> list[MetadataRecord]:
    return list(register_broker(image, given.registration(**fields), RULES)[0])


def unregistered(image: Image, broker_id: int) -> list[MetadataRecord]:
    request = UnregisterBrokerRequest(broker_id=broker_id)
    return given.decide(unregister_broker, image, request, NODE, RULES, given.sessions(image)).records


def test_a_brokers_epoch_is_the_offset_of_its_registration() -> None:
    image = given.image()
    assert image.brokers[NODE].epoch == len(bootstrap_records()) + 1  # after the features comes the controller
    assert image.controllers[NODE].endpoints == OPTIONS.controller_listeners


def test_a_broker_that_registers_is_fenced() -> None:
    (record,) = registered(given.image(), broker_id=2, incarnation_id=NEW, log_dirs=[b"directory-two---"])
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_id, record.fenced, record.in_controlled_shutdown) == (2, True, False)


def test_the_same_incarnation_keeps_its_epoch_and_stays_unfenced() -> None:
    image = given.image()
    (record,) = registered(image)
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_epoch, record.fenced) == (image.brokers[NODE].epoch, False)


def test_after_a_clean_stop_the_new_incarnation_is_still_eligible() -> None:
    image = given.image(*given.topic("orders"))
    for _ in ("hand over", "stop"):
        given.apply(image, broker_heartbeat(image, given.heartbeat(image, want_shut_down=True), RULES)[0])
    (record,) = registered(image, incarnation_id=NEW, previous_broker_epoch=image.brokers[NODE].epoch)
    assert isinstance(record, RegisterBrokerRecord)


def test_after_a_crash_the_new_incarnation_is_neither_in_sync_nor_eligible() -> None:
    image = given.image(*given.topic("orders"))
    gone, record = registered(image, incarnation_id=NEW)
    assert gone == PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=[], leader=-1, last_known_elr=[NODE])
    assert isinstance(record, RegisterBrokerRecord)
    assert record.broker_epoch == image.offset + 1  # of the batch that it stands in


def test_a_crash_after_a_clean_hand_over_takes_the_eligibility_away() -> None:
    image = given.image(*given.topic("orders", isr=(), leader=-1, elr=(NODE,), last_known_elr=(NODE,)))
    gone, _ = registered(image, incarnation_id=NEW)
    assert gone == PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, eligible_leader_replicas=[])


def test_the_only_replica_of_a_broker_that_crashed_leads_again_and_recovers() -> None:
    image = given.image(*given.topic("orders"))
    given.apply(image, registered(image, incarnation_id=NEW))
    given.apply(image, broker_heartbeat(image, given.heartbeat(image), RULES)[0])
    partition = image.partition(ORDERS)
    assert partition is not None
    assert (partition.leader, partition.leader_epoch, partition.isr) == (NODE, 2, (NODE,))
    assert (partition.elr, partition.last_known_elr, partition.leader_recovery_state) == ((), (), 1)


def test_without_eligible_leader_replicas_a_crash_counts_as_a_clean_stop() -> None:
    image = given.image(*given.topic("orders"))
    image.features["eligible.leader.replicas.version"] = 0
    gone, _ = registered(image, incarnation_id=NEW)
    assert gone == PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=-1)


@pytest.mark.parametrize(("fields", "code", "message"), [
    ({"cluster_id": "x"}, ErrorCode.INCONSISTENT_CLUSTER_ID, "Expected cluster ID the-cluster, but got cluster ID x"),
    ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION, "No directories specified in request"),
    ({"log_dirs": [bytes(15) + b"\x05"]}, ErrorCode.INVALID_REGISTRATION, "Reserved directory ID in request"),
    ({"log_dirs": [DIRECTORY, DIRECTORY]}, ErrorCode.INVALID_REGISTRATION, "Duplicate directory ID in request"),
    ({"broker_id": 2}, ErrorCode.INVALID_REGISTRATION, f"Broker 1 is already registered with directory {ONE_TEXT}"),
    ({"features": []}, ErrorCode.INVALID_REGISTRATION, "Request features do not contain 'metadata.version'"),
])  # fmt: skip
def test_a_registration_that_cannot_stand_is_refused(fields: dict[str, Any], code: ErrorCode, message: str) -> None:
    with pytest.raises(KafkaError) as caught:
        registered(given.image(), **fields)
    assert (caught.value.code, caught.value.message) == (code, message)


CONTROLLER_LISTENER = ControllerListener(name="C", host="127.0.0.1", port=9093, security_protocol=0)


def listener(name: str = "PLAINTEXT", host: str = "127.0.0.1") -> Listener:
    return Listener(name=name, host=host, port=9092, security_protocol=0)


def feature(name: str) -> Feature:
    return Feature(name=name, min_supported_version=0, max_supported_version=1)


def directory(number: int) -> bytes:
    return (1_000 + number).to_bytes(16, "big")


@pytest.mark.parametrize(("fields", "message"), [
    ({"broker_id": -5}, "Node id -5 in request is negative"),
    ({"broker_id": 9}, "Node id 9 is the id of a controller, which is not a broker"),
    ({"listeners": [listener(host="h" * 256)]},
     "Host of listener PLAINTEXT in request has 256 characters, more than 255"),
    ({"listeners": [listener("L" * 256)]}, "Listener name in request has 256 characters, more than 255"),
    ({"listeners": [listener(f"L{number}") for number in range(65)]}, "65 listeners in request, more than 64"),
    ({"rack": "r" * 256}, "Rack in request has 256 characters, more than 255"),
    ({"log_dirs": [directory(number) for number in range(257)]}, "257 directories in request, more than 256"),
    ({"features": [feature(f"f{number}") for number in range(257)]}, "257 features in request, more than 256"),
    ({"features": [feature("f" * 256)]}, "Feature name in request has 256 characters, more than 255"),
])  # fmt: skip
def test_no_node_registers_more_than_a_machine_has(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(KafkaError) as caught:
        register_broker(given.image(), given.registration(**fields), RULES, controller_id=9)
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_REGISTRATION, message)


def test_a_broker_may_have_as_much_as_the_bounds_allow() -> None:
    listeners = [listener(f"L{number}", "h" * 255) for number in range(64)]
    directories = [directory(number) for number in range(256)]
    (record,) = registered(given.image(), listeners=listeners, log_dirs=directories, rack="r" * 255)
    assert isinstance(record, RegisterBrokerRecord)
    assert (len(record.end_points), len(record.log_dirs)) == (64, 256)


def test_no_more_brokers_register_than_a_cluster_has() -> None:
    image = given.image()
    image.brokers |= dict.fromkeys(range(2, MAX_NODES), image.brokers[NODE])
    assert len(image.brokers) == MAX_NODES - 1
    assert registered(image, broker_id=MAX_NODES, log_dirs=[directory(0)])
    image.brokers[MAX_NODES] = image.brokers[NODE]
    with pytest.raises(KafkaError, match="10000 nodes are registered; unregister brokers that are gone"):
        registered(image, broker_id=MAX_NODES + 1, log_dirs=[directory(0)])
    assert registered(image)


@pytest.mark.parametrize(("fields", "message"), [
    ({"controller_id": -1}, "Node id -1 in request is negative"),
    ({"listeners": []}, "No listeners specified in request"),
    ({"listeners": [listener(host="h" * 256)]},
     "Host of listener PLAINTEXT in request has 256 characters, more than 255"),
    ({"features": [feature(f"f{number}") for number in range(257)]}, "257 features in request, more than 256"),
])  # fmt: skip
def test_no_controller_registers_more_either(fields: dict[str, Any], message: str) -> None:
    request = ControllerRegistrationRequest(
        controller_id=9, incarnation_id=NEW, zk_migration_ready=False, listeners=[CONTROLLER_LISTENER], features=[]
    )
    for name, value in fields.items():
        setattr(request, name, value)
    with pytest.raises(KafkaError) as caught:
        given.decide(register_controller, given.image(), request)
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_REGISTRATION, message)


def test_a_directory_is_of_the_broker_that_registered_it_until_it_goes() -> None:
    image = given.image()
    given.apply(image, registered(image, broker_id=2, incarnation_id=NEW, log_dirs=[directory(1), directory(2)]))
    for log_dirs in ([directory(2)], [directory(3), directory(1)]):
        with pytest.raises(KafkaError, match="Broker 2 is already registered with directory"):
            registered(image, broker_id=3, log_dirs=log_dirs)
    given.apply(image, registered(image, broker_id=2, incarnation_id=NEW, log_dirs=[directory(1)]))
    assert registered(image, broker_id=3, log_dirs=[directory(2)])
    given.apply(image, unregistered(image, 2))
    assert registered(image.copy(), broker_id=3, log_dirs=[directory(1)])


class Unwalked(dict[int, BrokerRegistration]):
    """A dict of brokers in which a registration may look up only its own broker."""

    def values(self) -> NoReturn:
        raise AssertionError("all brokers are walked")


def test_a_registration_does_not_walk_the_directories_of_all_brokers() -> None:
    image = given.image()
    image.brokers = Unwalked(image.brokers)
    assert registered(image, broker_id=2, log_dirs=[directory(0)])
    with pytest.raises(KafkaError, match="Broker 1 is already registered with directory"):
        registered(image, broker_id=2)


def test_a_broker_that_cannot_run_with_a_finalized_feature_is_refused() -> None:
    request = given.registration(broker_id=2, log_dirs=[b"directory-two---"])
    request.features = [one for one in request.features if one.name != "group.version"]
    with pytest.raises(KafkaError, match=r"finalized version 1 of group\.version") as caught:
        register_broker(given.image(), request, RULES)
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_a_broker_that_is_gone_is_forgotten() -> None:
    gone = RegisterBrokerRecord(
        broker_id=2, incarnation_id=bytes(16), broker_epoch=70, end_points=[], features=[], rack=None
    )
    image = given.image(gone, *given.topic("orders", replicas=(2, NODE), isr=(2, NODE), leader=2))
    changed, forgotten = unregistered(image, 2)
    assert changed == PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=[NODE], leader=NODE)
    image.apply(forgotten)
    assert 2 not in image.brokers


@pytest.mark.parametrize(("broker", "code"), [
    (7, ErrorCode.BROKER_ID_NOT_REGISTERED),
    (NODE, ErrorCode.INVALID_REQUEST),
])  # fmt: skip
def test_only_a_broker_that_was_there_and_is_gone_is_forgotten(broker: int, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as caught:
        unregistered(given.image(), broker)
    assert caught.value.code is code
