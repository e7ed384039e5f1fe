"""Produce (0): append record batches to partitions.

v0-2 carry message sets (v0, then v1 with timestamps), which are up-converted; v1 adds the throttle time, v2 the log
append
time, v3 batches v2 and the transactional id (KIP-98), v5 the log start offset, v7 allows zstd (KIP-110), v8 per-record
errors (KIP-467), v9 is flexible, v10 tells the current leader (KIP-951), v11 and v12 are for transactions (KIP-890),
v13 names topics by id (KIP-516).
With acks=0 nothing is answered; an error then closes the connection, which is how such a producer learns of it.
"""

from __future__ import annotations

from broker.dispatch import Api, Call
from protocol.errors import ErrorCode, InvalidRecords, KafkaError, ProtocolError, error_code
from protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from protocol.records.batch import COMPRESSION_MASK, MAGIC_OFFSET, MAGIC_V2
from protocol.records.compression import Compression

VALID_ACKS = (-1, 0, 1)
FIRST_ZSTD_VERSION = 7
FIRST_TOPIC_ID_VERSION = 13
ATTRIBUTES_LOW_BYTE = 22
"""Where a v2 batch says its codec."""


def produce(call: Call[ProduceRequest]) -> ProduceResponse | None:
    """Every partition is answered on its own: one that fails takes no other with it."""
    request = call.request
    now_ms = call.now_ms
    response = ProduceResponse(responses=[produce_topic(call, topic, now_ms) for topic in request.topic_data])
    if request.acks != 0:
        return response
    errors = [p.error_code for topic in response.responses for p in topic.partition_responses if p.error_code]
    if errors:
        raise ProtocolError(f"Produce with acks=0 failed with {error_code(errors[0]).name}")
    return None


def produce_topic(call: Call[ProduceRequest], topic: TopicProduceData, now_ms: int) -> TopicProduceResponse:
    by_id = call.version >= FIRST_TOPIC_ID_VERSION
    name = call.broker.replicas.name_of(topic.topic_id) if by_id else topic.name
    answers = [produce_partition(call, name, data, now_ms) for data in topic.partition_data]
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)


def produce_partition(
    call: Call[ProduceRequest], topic: str | None, data: PartitionProduceData, now_ms: int
) -> PartitionProduceResponse:
    try:
        if call.request.acks not in VALID_ACKS:
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        partition = call.broker.replicas.partition(topic, data.index)
        records = checked_records(call, data.records)
        appended = partition.append(records, now_ms)
    except InvalidRecords as error:
        return refused(data.index, error, record_errors(error))
    except KafkaError as error:
        return refused(data.index, error, [])
    return PartitionProduceResponse(
        index=data.index,
        error_code=0,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )


def checked_records(call: Call[ProduceRequest], records: object) -> memoryview:
    """The records if this version may carry them."""
    if not isinstance(records, memoryview) or not len(records):
        return memoryview(b"")
    if len(records) <= ATTRIBUTES_LOW_BYTE:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{len(records)} bytes are too few for a record batch")
    if call.version >= 3 and records[MAGIC_OFFSET] != MAGIC_V2:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"Produce v{call.version} carries batches of magic 2 only")
    is_old = call.version < FIRST_ZSTD_VERSION and records[MAGIC_OFFSET] == MAGIC_V2
    if is_old and records[ATTRIBUTES_LOW_BYTE] & COMPRESSION_MASK == Compression.ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7")
    return records


def refused(index: int, error: KafkaError, errors: list[BatchIndexAndErrorMessage]) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=error.code, base_offset=-1, log_append_time_ms=-1, log_start_offset=-1,
        record_errors=errors, error_message=error.message,
    )  # fmt: skip


def record_errors(error: InvalidRecords) -> list[BatchIndexAndErrorMessage]:
    return [
        BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
        for index, message in error.record_errors
    ]


API = Api(ProduceRequest, ProduceResponse, produce)
