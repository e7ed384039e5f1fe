"""Writes pushes to a topic.

The key of a record is the client instance id, its value OpenTelemetry's MetricsData, and its headers are the broker's
labels for the client.
"""

from __future__ import annotations

from broker.replica.topics import OwnTopic
from broker.shards.appending import append_at_leader, partition_of
from broker.shards.environment import Environment
from broker.telemetry.push import Push
from protocol.java_hash import java_hash
from protocol.records.building import build
from protocol.records.record import Record


class TelemetryTopic:
    """The topic that pushes are written to, created with the broker's defaults if it doesn't exist."""

    def __init__(self, name: str, environment: Environment) -> None:
        self._name = name
        self._environment = environment

    async def deliver(self, push: Push) -> None:
        """Writes a push, and returns once it is committed. Raises KafkaError."""
        now_ms = self._environment.clock.now_ms()
        encoded = build([self._record(push, now_ms)])
        number = java_hash(push.attributes.client_instance_id)
        target = await partition_of(self._environment, OwnTopic(self._name), number)
        await append_at_leader(self._environment, target, encoded, now_ms)

    def _record(self, push: Push, now_ms: int) -> Record:
        labels = push.labels(self._environment.config.node_id)
        headers: list[tuple[str, bytes | None]] = [(name, value.encode()) for name, value in labels.items()]
        return Record(0, now_ms, push.attributes.client_instance_id.encode(), push.data, headers)
