"""Decides on AllocateProducerIds: each block of producer ids is allocated once in the cluster's life (KIP-730).

Source: Kafka's ProducerIdControlManager.
"""

from __future__ import annotations

from coordinator.cluster.brokers.heartbeat import check_broker_epoch
from coordinator.cluster.image import Image
from coordinator.cluster.producer_ids import BLOCK_SIZE
from coordinator.cluster.record import ClusterResult
from coordinator.engine.result import Ticket, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from protocol.metadata_records.settings import ProducerIdsRecord

MAX_INT64 = (1 << 63) - 1


def allocate_producer_ids(
    image: Image, request: AllocateProducerIdsRequest, ticket: Ticket[AllocateProducerIdsResponse]
) -> ClusterResult:
    """Returns the decision that allocates the next block to the broker. Raises KafkaError(STALE_BROKER_EPOCH).

    As in Kafka, a broker may request any number of blocks. There are 9 * 10^15 of them; a broker that requests a
    thousand per second needs 290,000 years to exhaust them. Snapshots replace the records.
    """
    broker = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    first = image.producer_ids.next_id
    if first > MAX_INT64 - BLOCK_SIZE:
        message = "all producer ids are allocated"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
    record = ProducerIdsRecord(
        broker_id=broker.broker_id, broker_epoch=broker.epoch, next_producer_id=first + BLOCK_SIZE
    )
    response = AllocateProducerIdsResponse(
        error_code=ErrorCode.NONE, producer_id_start=first, producer_id_len=BLOCK_SIZE
    )
    return answered(ticket, response, [record])
