"""A push of a client's metrics on its way to the receivers."""

from __future__ import annotations

from typing import NamedTuple

from coordinator.telemetry.subscriptions import MAX_LABEL, ClientAttributes
from protocol.errors import ErrorCode, KafkaError
from protocol.records.codecs import decompress
from protocol.records.compression import Compression
from protocol.types import Buffer


class Push(NamedTuple):
    """The metrics that a client pushed at one time."""

    attributes: ClientAttributes
    principal: str
    interval_ms: int
    """The client's push interval."""
    data: bytes
    """OpenTelemetry's MetricsData, encoded; the bytes of an ExportMetricsServiceRequest are the same."""

    def labels(self, broker_id: int) -> dict[str, str]:
        """Returns the broker's labels for the client, with the names in KIP-714."""
        return {**self.attributes.present(), "principal": self.principal[:MAX_LABEL], "broker_id": str(broker_id)}


def inflated(codec: int, data: Buffer, max_bytes: int) -> bytes:
    """Returns the metrics of a push, decompressed. Raises INVALID_RECORD if they are corrupt, or larger than
    `max_bytes`.
    """
    try:
        return decompress(Compression(codec), bytes(data), max_size=max_bytes)
    except KafkaError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"the telemetry can't be decompressed: {error}") from error
