"""Tests a cluster's metadata over restarts, clean and unclean, and with failing disks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker.metadata.opening import Metadata
from coordinator.cluster.image import Image
from coordinator.cluster.producer_ids import ProducerIdPool
from coordinator.cluster.quorum_state import QuorumState, read_quorum_state
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.records.batch import iter_batches
from protocol.types import TopicPartition
from storage.checkpoint import read_partition_metadata
from tests.broker.metadata.harness import ENDPOINTS, MetadataHarness
from tests.coordinator.cluster.given import creatable
from tests.storage.bad_disk import BadDisk, fails

ORDERS = TopicPartition("orders", 0)


async def create(cluster: Metadata, name: str, partitions: int = 1) -> CreateTopicsResponse:
    topics = [creatable(name, partitions, 1, {"retention.ms": "5"})]
    return await cluster.controller.submit(CreateTopicsRequest(topics=topics), CreateTopicsResponse)


def state(image: Image) -> dict[str, object]:
    """Returns the state that a restart must restore; brokers register again each time."""
    topics = {topic.name: (topic.topic_id, {**topic.partitions}) for topic in image.topics()}
    configs = {resource: dict(image.configs(resource)) for resource in image.configured()}
    return {"topics": topics, "configs": configs, "features": image.features, "producers": image.producer_ids}


async def test_a_new_cluster_is_registered_and_has_its_features(tmp_path: Path) -> None:
    image = MetadataHarness(tmp_path).open().image
    assert image.features["metadata.version"] == 33
    assert image.brokers[1].active
    assert image.brokers[1].endpoints == tuple(ENDPOINTS)
    assert (image.controller_id, image.controller_epoch) == (1, 1)


async def test_what_was_created_is_there_after_a_restart(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    cluster = harness.open()
    await create(cluster, "orders", 3)
    await create(cluster, "gone")
    await cluster.controller.submit(DeleteTopicsRequest(topic_names=["gone"], timeout_ms=1000), DeleteTopicsResponse)
    assert (await cluster.node.allocate_producer_ids()).first == 0
    epochs = {at: one.leader_epoch for at, one in cluster.image.topic("orders").partitions.items()}  # type: ignore[union-attr]
    harness.stop(cluster)
    closed = state(cluster.image)
    again = harness.open(register=False)
    assert state(again.image) == closed
    harness.join(again)
    topic = again.image.topic("orders")
    assert topic is not None
    assert {one.leader for one in topic.partitions.values()} == {1}
    assert epochs == {0: 0, 1: 0, 2: 0}
    assert {one.leader_recovery_state for one in topic.partitions.values()} == {0}
    assert again.image.topic("gone") is None
    assert (await again.node.allocate_producer_ids()).first == 1000


async def test_after_a_crash_everything_is_there_and_leaders_have_a_new_epoch(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    cluster = harness.open()
    await create(cluster, "orders")
    before = cluster.image.partition(ORDERS)
    assert before is not None
    again = harness.open()
    after = again.image.partition(ORDERS)
    assert after == before._replace(leader_epoch=2, partition_epoch=2, leader_recovery_state=1)


async def test_each_start_leads_in_a_new_epoch_that_its_batches_carry(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    for epoch in (1, 2, 3):
        cluster = harness.open()
        await create(cluster, f"topic-{epoch}")
        assert read_quorum_state(harness.disk, str(harness.folder())) == QuorumState(leader_id=1, leader_epoch=epoch)
        harness.stop(cluster)
    content = (harness.folder() / f"{0:020}.log").read_bytes()
    headers = [header for _, header in iter_batches(content)]
    assert [header.partition_leader_epoch for header in headers if header.is_control] == [1, 2, 3]
    assert [header.partition_leader_epoch for header in headers] == sorted(
        header.partition_leader_epoch for header in headers
    )
    assert read_partition_metadata(harness.disk, str(harness.folder())) == bytes(15) + b"\x01"


async def test_a_lost_quorum_state_does_not_bring_an_old_epoch_back(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    harness.stop(harness.open())
    (harness.folder() / "quorum-state").unlink()
    assert harness.open().metadata_log.epoch == 2


async def test_a_torn_tail_of_the_metadata_is_cut(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    cluster = harness.open()
    await create(cluster, "orders")
    with (harness.folder() / f"{0:020}.log").open("ab") as log:
        log.write(b"\x00" * 30)
    assert harness.open().image.topic("orders") is not None


async def test_an_answer_waits_until_its_records_are_on_the_device(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    cluster = harness.open()
    harness.worker.at_once = False
    first = asyncio.ensure_future(create(cluster, "first"))
    await asyncio.sleep(0)
    others = [asyncio.ensure_future(create(cluster, f"other-{at}")) for at in range(5)]
    await asyncio.sleep(0)
    assert not first.done()
    assert len(harness.worker.given) == 1
    harness.worker.work()
    assert (await first).topics[0].error_code == ErrorCode.NONE
    assert cluster.image.topic_names() == ["first"]
    harness.worker.work()
    assert harness.worker.given == []
    assert {answer.topics[0].error_code for answer in await asyncio.gather(*others)} == {ErrorCode.NONE}


async def test_a_committed_record_that_cannot_be_applied_ends_it(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    cluster = harness.open()

    def choke(batch: object) -> None:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "no such topic")

    cluster.metadata_log.listen(choke)
    with pytest.raises(KafkaError, match="no such topic"):
        await create(cluster, "orders")
    assert [error.message for error in harness.failures] == ["no such topic"]
    with pytest.raises(KafkaError, match="has renounced: no such topic") as refused:
        await create(cluster, "more")
    assert refused.value.code is ErrorCode.NOT_CONTROLLER


async def test_a_failed_flush_ends_it(tmp_path: Path) -> None:
    disk = BadDisk()
    harness = MetadataHarness(tmp_path, disk=disk)
    cluster = harness.open()
    disk.fault = fails("fsync")
    with pytest.raises(KafkaError) as caught:
        await create(cluster, "orders")
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert [error.code for error in harness.failures] == [ErrorCode.KAFKA_STORAGE_ERROR]
    disk.fault = lambda call, path: None
    with pytest.raises(KafkaError) as caught:
        await create(cluster, "orders")
    assert caught.value.code is ErrorCode.NOT_CONTROLLER


async def test_partitions_go_to_the_emptiest_directory(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path, ["one", "two"])
    cluster = harness.open()
    await create(cluster, "orders", 4)
    assert set(cluster.image.partitions_in.values()) == {2}


async def test_producer_ids_are_handed_out_once(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    cluster = harness.open()
    ids = ProducerIdPool(cluster.node.allocate_producer_ids)
    handed_out = [await ids.next_id() for _ in range(1001)]
    assert handed_out == list(range(1001))
    handed_out += await asyncio.gather(*(ids.next_id() for _ in range(1500)))
    assert len(set(handed_out)) == 2501
