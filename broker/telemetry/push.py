"""A push of a client's metrics on its way to the receivers."""

from __future__ import annotations

from typing import NamedTuple

from coordinator.telemetry.subscriptions import MAX_LABEL, ClientAttributes
from protocol.errors import ErrorCode, KafkaError
from protocol.records.compression import Compression
from protocol.records.inflating import decompress
from protocol.types import Buffer


class Push(NamedTuple):
    """The metrics of one client at one time."""

    attributes: ClientAttributes
    principal: str
    interval_ms: int
    """The push interval of the client."""
    data: bytes
    """OpenTelemetry's MetricsData, encoded; an ExportMetricsServiceRequest has the same bytes."""

    def labels(self, broker_id: int) -> dict[str, str]:
        """Returns the broker's labels for the client, as KIP-714 names them."""
        return {**self.attributes.present(), "principal": self.principal[:MAX_LABEL], "broker_id": str(broker_id)}


def inflated(codec: int, data: Buffer, max_bytes: int) -> bytes:
    """Returns the metrics of a push. Raises INVALID_RECORD if they are damaged, or larger than `max_bytes`."""
    try:
        return decompress(Compression(codec), bytes(data), max_size=max_bytes)
    except KafkaError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"telemetry that cannot be read: {error}") from error
