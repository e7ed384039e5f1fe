"""Tests AllocateProducerIds: no id is allocated twice."""

from __future__ import annotations

import pytest

from coordinator.cluster.allocate_producer_ids import MAX_INT64, allocate_producer_ids
from coordinator.cluster.image import Image
from coordinator.cluster.producer_ids import BLOCK_SIZE
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from protocol.metadata_records.settings import ProducerIdsRecord
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import NODE


def request(image: Image, *, epoch: int | None = None) -> AllocateProducerIdsRequest:
    return AllocateProducerIdsRequest(
        broker_id=NODE, broker_epoch=image.brokers[NODE].epoch if epoch is None else epoch
    )


def allocated_up_to(next_producer_id: int) -> ProducerIdsRecord:
    return ProducerIdsRecord(broker_id=NODE, broker_epoch=0, next_producer_id=next_producer_id)


def test_each_block_begins_where_the_last_one_ended() -> None:
    image = given.image()
    for first in (0, BLOCK_SIZE, 2 * BLOCK_SIZE):
        decided = given.decide(allocate_producer_ids, image, request(image))
        response = decided.answer
        assert (response.error_code, response.producer_id_start, response.producer_id_len) == (0, first, BLOCK_SIZE)
        given.apply(image, decided.records)


def test_the_record_names_the_broker_and_its_epoch() -> None:
    image = given.image()
    (record,) = given.decide(allocate_producer_ids, image, request(image)).records
    assert record == ProducerIdsRecord(
        broker_id=NODE, broker_epoch=image.brokers[NODE].epoch, next_producer_id=BLOCK_SIZE
    )


@pytest.mark.parametrize("epoch", [-1, 0, 1 << 40])
def test_a_broker_of_another_epoch_gets_no_ids(epoch: int) -> None:
    image = given.image()
    with pytest.raises(KafkaError) as caught:
        given.decide(allocate_producer_ids, image, request(image, epoch=epoch))
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_the_last_ids_of_an_int64_are_not_allocated() -> None:
    image = given.image(allocated_up_to(MAX_INT64 - BLOCK_SIZE))
    assert given.decide(allocate_producer_ids, image, request(image)).answer.producer_id_start == MAX_INT64 - BLOCK_SIZE
    image = given.image(allocated_up_to(MAX_INT64 - BLOCK_SIZE + 1))
    with pytest.raises(KafkaError, match="all producer ids are allocated"):
        given.decide(allocate_producer_ids, image, request(image))
