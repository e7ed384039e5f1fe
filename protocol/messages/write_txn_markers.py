"""WriteTxnMarkers (27)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32, int64


@message(ApiKey.WRITE_TXN_MARKERS)
class WriteTxnMarkersRequest:
    """A transaction coordinator asks partition leaders to write commit or abort markers."""

    markers: list[WritableTxnMarker] = wire()


@struct
class WritableTxnMarker:
    """A producer's marker: `transaction_result` true commits, false aborts."""

    producer_id: int64 = wire()
    producer_epoch: int16 = wire()
    transaction_result: bool = wire()
    topics: list[WritableTxnMarkerTopic] = wire()
    coordinator_epoch: int32 = wire()
    transaction_version: int8 = wire(versions="2+", default=0)  # KIP-1228


@struct
class WritableTxnMarkerTopic:
    name: str = wire()
    partition_indexes: list[int32] = wire()


@message(ApiKey.WRITE_TXN_MARKERS)
class WriteTxnMarkersResponse:
    """The error code for each partition."""

    markers: list[WritableTxnMarkerResult] = wire()


@struct
class WritableTxnMarkerResult:
    producer_id: int64 = wire()
    topics: list[WritableTxnMarkerTopicResult] = wire()


@struct
class WritableTxnMarkerTopicResult:
    name: str = wire()
    partitions: list[WritableTxnMarkerPartitionResult] = wire()


@struct
class WritableTxnMarkerPartitionResult:
    partition_index: int32 = wire()
    error_code: int16 = wire()
