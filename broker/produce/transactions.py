"""The transactional batches of a Produce, and their verification by the transaction's coordinator.

Source: ReplicaManager.maybeSendPartitionsToTransactionCoordinator, KIP-890.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import read_i16_be, read_i64_be

from broker.produce.request import ParsedProduce
from broker.produce.verification import NOTHING, Supports, Verified, all_failed, verify
from broker.request.turns import Turns
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import AT_PRODUCER_EPOCH, AT_PRODUCER_ID, HEADER_SIZE, BatchHeader, read_header
from protocol.types import TopicPartition

if TYPE_CHECKING:
    from broker.dispatch.broker import Broker

FIRST_ABORTABLE_VERSION, FIRST_ADDING_VERSION = 11, 12
PRODUCER_BYTES: Final = 10
"""The length of a producer id and its epoch, which follow each other in a batch's header."""


def all_open(broker: Broker, request: ParsedProduce) -> bool:
    """True if all batches are of one producer, whose transaction is open in each of their partitions: then there is
    nothing to verify, as for most requests."""
    first_producer = b""
    for produced in request.partitions:
        partition = produced.replica(broker.replicas)
        if partition is None or not partition.leads or produced.error_code or not produced.is_transactional:
            return False
        header = bytes(produced.records[:HEADER_SIZE])
        producer = header[AT_PRODUCER_ID : AT_PRODUCER_ID + PRODUCER_BYTES]
        first_producer = first_producer or producer
        if producer != first_producer:
            return False
        producer_id, epoch = read_i64_be(header, AT_PRODUCER_ID), read_i16_be(header, AT_PRODUCER_EPOCH)
        if not partition.has_open_transaction(producer_id, epoch):
            return False
    return True


async def verified_batches(broker: Broker, request: ParsedProduce) -> Verified:
    """Verifies the request's batches for partitions on this broker with the transaction's coordinator."""
    transactional_id = request.transactional_id
    here = await batches_here(broker, request)
    if not here or transactional_id is None:
        return NOTHING
    if len({(header.producer_id, header.producer_epoch) for header in here.values()}) > 1:
        text = "transactional records of more than one producer in a request"
        return all_failed(names(broker, request), KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, text))
    supports = Supports.of(request.version, FIRST_ABORTABLE_VERSION, FIRST_ADDING_VERSION)
    return await verify(broker, transactional_id, here, supports, broker.clock.now_ms())


async def batches_here(broker: Broker, request: ParsedProduce) -> dict[TopicPartition, BatchHeader]:
    """Returns the headers of producers' transactional batches, for partitions on this broker."""
    headers: dict[TopicPartition, BatchHeader] = {}
    turns = Turns(broker.clock)
    for produced in request.partitions:
        await turns.next()
        if produced.is_transactional and not produced.error_code:
            name = produced.topic.name(broker.replicas)
            header = read_header(produced.records)
            if name is not None and header.producer_id >= 0 and produced.index in broker.replicas.topic(name):
                headers[TopicPartition(name, produced.index)] = header
    return headers


def names(broker: Broker, request: ParsedProduce) -> list[TopicPartition]:
    """Returns all partitions of the request."""
    return [
        TopicPartition(produced.topic.name(broker.replicas) or "", produced.index) for produced in request.partitions
    ]
