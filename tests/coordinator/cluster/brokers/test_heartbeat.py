"""Tests the effects of a heartbeat: the broker is unfenced and elected, hands over, stops, or loses a directory."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.cluster.brokers.heartbeat import broker_heartbeat
from coordinator.cluster.brokers.registration import register_broker
from coordinator.cluster.image import Image
from coordinator.cluster.record import MetadataRecord
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
from protocol.metadata_records.nodes import BrokerRegistrationChangeRecord
from protocol.metadata_records.topics import PartitionChangeRecord
from protocol.types import TopicPartition
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import DIRECTORY, NODE, RULES, TOPIC_ID, topic_config

ORDERS = TopicPartition("orders", 0)
OTHER = 2
OTHER_DIRECTORY = b"directory-two---"


def beat(image: Image, **fields: Any) -> tuple[list[MetadataRecord], BrokerHeartbeatResponse]:
    """Returns the answer to a heartbeat and its records, and applies them."""
    records, response = broker_heartbeat(image, given.heartbeat(image, **fields), RULES)
    given.apply(image, records)
    return records, response


def change(image: Image, **fields: Any) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker_id=NODE, broker_epoch=image.brokers[NODE].epoch, **fields)


def fenced(*records: MetadataRecord) -> Image:
    """Returns a broker that has just registered after a clean stop."""
    image = given.image(*records)
    for _ in ("hand over", "stop"):
        beat(image, want_shut_down=True)
    request = given.registration(incarnation_id=b"another-inc-----", previous_broker_epoch=image.brokers[NODE].epoch)
    given.apply(image, register_broker(image, request, RULES)[0])
    return image


def test_a_broker_that_has_read_its_registration_is_unfenced_and_then_elected() -> None:
    image = fenced(*given.topic("orders"))
    records, response = beat(image)
    assert records == [
        change(image, fenced=-1),
        PartitionChangeRecord(
            partition_id=0, topic_id=TOPIC_ID, isr=[NODE], leader=NODE, eligible_leader_replicas=[], last_known_elr=[]
        ),
    ]
    assert (response.is_caught_up, response.is_fenced, response.should_shut_down) == (True, False, False)
    partition = image.partition(ORDERS)
    assert partition is not None
    assert (partition.leader, partition.leader_epoch, partition.isr, partition.elr) == (NODE, 2, (NODE,), ())


def test_a_broker_that_has_not_read_its_registration_stays_fenced() -> None:
    image = fenced()
    records, response = beat(image, current_metadata_offset=image.brokers[NODE].epoch - 1)
    assert (records, response.is_caught_up, response.is_fenced) == ([], False, True)


def test_a_broker_that_wants_to_be_fenced_is() -> None:
    image = given.image(*given.topic("orders"))
    records, response = beat(image, want_fence=True)
    assert records[-1] == change(image, fenced=1)
    assert response.is_fenced
    assert image.partition(ORDERS).leader == -1  # type: ignore[union-attr]
    assert beat(image, want_fence=True)[0] == []


def test_a_leader_that_wants_to_stop_hands_over_first() -> None:
    image = given.image(*given.topic("orders"))
    records, response = beat(image, want_shut_down=True)
    assert records == [
        change(image, in_controlled_shutdown=1),
        PartitionChangeRecord(
            partition_id=0,
            topic_id=TOPIC_ID,
            isr=[],
            leader=-1,
            eligible_leader_replicas=[NODE],
            last_known_elr=[NODE],
        ),
    ]
    assert not response.should_shut_down
    records, response = beat(image, want_shut_down=True)
    assert (records, response.should_shut_down) == ([change(image, fenced=1)], True)
    records, response = beat(image, want_shut_down=True)
    assert (records, response.should_shut_down) == ([], True)


def test_who_leads_nothing_may_stop_at_once() -> None:
    image = given.image()
    records, response = beat(image, want_shut_down=True)
    assert (records, response.should_shut_down) == ([change(image, fenced=1)], True)


def test_without_eligible_leader_replicas_the_last_in_sync_replica_stays_in_the_set() -> None:
    image = given.image(*given.topic("orders"))
    image.features["eligible.leader.replicas.version"] = 0
    records, _ = beat(image, want_shut_down=True)
    assert records[1] == PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=-1)


@pytest.mark.parametrize(("replicas", "isr"), [((OTHER,), (OTHER,)), ((NODE, OTHER), (OTHER,))])
def test_a_broker_that_is_not_in_sync_is_not_elected(replicas: tuple[int, ...], isr: tuple[int, ...]) -> None:
    records, _ = beat(fenced(*given.topic("orders", replicas=replicas, isr=isr, leader=-1, directories=())))
    assert len(records) == 1


def test_a_broker_that_is_not_in_sync_is_elected_where_the_topic_allows_it() -> None:
    unclean = topic_config("orders", "unclean.leader.election.enable", "true")
    lost = given.topic("orders", replicas=(NODE, OTHER), isr=(OTHER,), leader=-1, directories=())
    _, elected = beat(fenced(*lost, unclean))[0]
    assert elected == PartitionChangeRecord(
        partition_id=0, topic_id=TOPIC_ID, isr=[NODE], leader=NODE, leader_recovery_state=1
    )


def test_partitions_in_a_directory_that_failed_have_no_leader_until_it_is_back() -> None:
    image = given.image(*given.topic("orders"), given.partition(1, directories=(OTHER_DIRECTORY,)))
    image.apply(BrokerRegistrationChangeRecord(broker_id=NODE, broker_epoch=0, log_dirs=[DIRECTORY, OTHER_DIRECTORY]))
    records, _ = beat(image, offline_log_dirs=[OTHER_DIRECTORY])
    gone, registered = records
    assert gone == PartitionChangeRecord(
        partition_id=1, topic_id=TOPIC_ID, isr=[], leader=-1, eligible_leader_replicas=[NODE], last_known_elr=[NODE]
    )
    assert isinstance(registered, BrokerRegistrationChangeRecord)
    assert registered.log_dirs == [DIRECTORY]
    assert beat(image, offline_log_dirs=[OTHER_DIRECTORY])[0] == []


def test_a_broker_that_starts_without_a_directory_does_not_lead_what_is_there() -> None:
    image = fenced(*given.topic("orders"), given.partition(1, directories=(OTHER_DIRECTORY,)))
    _, elected = beat(image)[0]
    assert isinstance(elected, PartitionChangeRecord)
    assert elected.partition_id == 0


@pytest.mark.parametrize(("fields", "message"), [
    ({"broker_epoch": 3}, "Expected broker epoch 7, but got broker epoch 3"),
    ({"broker_id": 9}, "No broker registration found for broker id 9"),
])  # fmt: skip
def test_a_broker_that_registered_anew_is_not_heard_any_more(fields: dict[str, int], message: str) -> None:
    image = given.image()
    request = given.heartbeat(image)
    for name, value in fields.items():
        setattr(request, name, value)
    with pytest.raises(KafkaError) as caught:
        broker_heartbeat(image, request, RULES)
    assert (caught.value.code, caught.value.message) == (ErrorCode.STALE_BROKER_EPOCH, message)


def test_only_directories_that_the_broker_has_are_cordoned() -> None:
    image = given.image()
    strange = [number.to_bytes(16, "big") for number in range(1_000, 1_100)]
    (record,), _ = beat(image, cordoned_log_dirs=[*strange, DIRECTORY, DIRECTORY])
    assert isinstance(record, BrokerRegistrationChangeRecord)
    assert record.cordoned_log_dirs == [DIRECTORY]
    assert beat(image, cordoned_log_dirs=[DIRECTORY, *strange])[0] == []
