"""Tests that committed records reach the image, and its subscribers, batch by batch."""

from __future__ import annotations

import pytest

from coordinator.cluster.changes import Change, Delta, PartitionCreated, TopicCreated
from coordinator.cluster.image import Image
from coordinator.cluster.loader import SLICE, MetadataLoader
from coordinator.cluster.record import MetadataBatch, MetadataRecord
from coordinator.cluster.snapshot import Snapshot, SnapshotId
from protocol.errors import ErrorCode, KafkaError
from protocol.metadata_records.log import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from protocol.metadata_records.settings import ClientQuotaRecord, EntityData, ProducerIdsRecord
from protocol.metadata_records.topics import RemoveTopicRecord
from protocol.records.control import KRaftVersionRecord
from tests.coordinator.cluster import given

OTHER_ID = b"another-topic's-"
BEGIN, END, ABORT = BeginTransactionRecord(name="b"), EndTransactionRecord(), AbortTransactionRecord(reason="r")


def batch(base_offset: int, *records: MetadataRecord, epoch: int = 3) -> MetadataBatch:
    return MetadataBatch(base_offset, base_offset + len(records) - 1, epoch, 100, 5, records)


def loader_and_deltas() -> tuple[MetadataLoader, list[Delta]]:
    loader = MetadataLoader(Image("c"))
    deltas: list[Delta] = []
    loader.subscribe(deltas.append)
    return loader, deltas


def test_a_batch_is_one_delta_told_when_the_image_has_all_of_it() -> None:
    loader = MetadataLoader(Image("c"))
    deltas: list[tuple[Delta, int]] = []
    loader.subscribe(lambda delta: deltas.append((delta, len(loader.image.topic("orders").partitions))))  # type: ignore[union-attr]
    loader.commit(batch(7, *given.topic("orders", 2)))
    topic = loader.image.topic("orders")
    assert topic is not None
    changes: list[Change] = [
        TopicCreated(topic),
        *(PartitionCreated(topic, index, topic.partitions[index]) for index in (0, 1)),
    ]
    assert deltas == [(Delta(9, 3, changes), 2)]
    assert (loader.image.offset, loader.image.epoch) == (9, 3)


def test_readers_see_all_of_a_large_batch_or_nothing_of_it() -> None:
    loader, deltas = loader_and_deltas()
    loader.commit(batch(0, *given.topic("orders")))
    records = [*given.topic("invoices", 3 * SLICE, topic_id=OTHER_ID), RemoveTopicRecord(topic_id=given.TOPIC_ID)]
    seen = [
        (loader.image.topic_names(), loader.image.offset, len(deltas)) for _ in loader.committing(batch(2, *records))
    ]
    assert seen == [(["orders"], 1, 1)] * 3
    assert loader.image.topic_names() == ["invoices"]
    assert loader.image.offset == len(records) + 1 == deltas[1].offset


def test_quotas_are_all_applied_at_once() -> None:
    loader, _ = loader_and_deltas()
    quotas = [
        ClientQuotaRecord(
            entity=[EntityData(entity_type="user", entity_name=f"u-{number}")], key="k", value=1, remove=False
        )
        for number in range(2 * SLICE)
    ]
    assert [*loader.committing(batch(0, *quotas))] == []


def test_a_batch_that_changes_nothing_that_interests_is_a_delta_too() -> None:
    loader, deltas = loader_and_deltas()
    loader.commit(batch(0, ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=5)))
    assert deltas == [Delta(0, 3, [])]


def test_a_control_batch_moves_the_offset_only() -> None:
    loader, deltas = loader_and_deltas()
    loader.commit(MetadataBatch(4, 4, 9, 100, 5, (), [KRaftVersionRecord(version=0, k_raft_version=1)]))
    assert (loader.image.offset, loader.image.epoch, loader.image.kraft_version) == (4, 9, 1)
    assert deltas == []


def test_a_transaction_is_told_when_it_ends_and_the_offset_waits_for_it() -> None:
    loader, deltas = loader_and_deltas()
    created, first = given.topic("orders")
    loader.commit(batch(0, BEGIN, created))
    assert (loader.in_transaction, loader.image.offset, deltas) == (True, -1, [])
    loader.commit(batch(2, first, END))
    assert (loader.in_transaction, loader.image.offset) == (False, 3)
    assert [len(delta.changes) for delta in deltas] == [2]


def test_an_aborted_transaction_changes_nothing() -> None:
    loader, deltas = loader_and_deltas()
    loader.commit(batch(0, BEGIN, *given.topic("orders")))
    loader.commit(batch(3, ABORT))
    assert (loader.image.topic_names(), loader.image.offset) == ([], 3)
    assert deltas == [Delta(3, 3, [])]


def test_a_subscriber_that_fails_does_not_keep_the_delta_from_others() -> None:
    faults: list[Exception] = []
    loader = MetadataLoader(Image("c"), faults.append)
    deltas: list[Delta] = []
    broken = ValueError("broken")

    def fail(_: Delta) -> None:
        raise broken

    loader.subscribe(fail)
    loader.subscribe(deltas.append)
    loader.commit(batch(0, *given.topic("orders")))
    assert (len(deltas), faults) == (1, [broken])


def test_a_snapshot_is_where_the_image_begins() -> None:
    loader = MetadataLoader(Image("c"))
    loader.load_snapshot(SnapshotId(50, 2), Snapshot(given.topic("orders"), []))
    assert (loader.image.offset, loader.image.epoch, loader.image.topic_names()) == (49, 2, ["orders"])


def test_a_record_that_does_not_fit_is_named_by_its_offset() -> None:
    loader = MetadataLoader(Image("c"))
    with pytest.raises(KafkaError, match="offset 12: ") as caught:
        loader.commit(
            batch(11, ProducerIdsRecord(broker_id=0, next_producer_id=0), RemoveTopicRecord(topic_id=b"x" * 16))
        )
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
