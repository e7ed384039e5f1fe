"""Client telemetry (KIP-714): tells clients which metrics to push, and passes pushes on to the receivers.

It is enabled if a receiver is configured; then ApiVersions offers the APIs, and clients that match a subscription push.
A push is decompressed and decoded in a thread.

Source: ClientMetricsManager of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.request.context import ClientConnection, Context
from broker.shards.environment import Environment
from broker.telemetry.push import Push, inflated
from broker.telemetry.queue import PushQueue
from broker.telemetry.series import ClientSeries
from broker.telemetry.topic import TelemetryTopic
from broker.workers import Workers
from coordinator.cluster.changes import Change, ConfigChanged, by_change
from coordinator.cluster.configs.resource import ResourceType
from coordinator.telemetry.instances import ClientInstance, ClientInstances
from coordinator.telemetry.subscriptions import ClientAttributes, Subscription, requested_of
from protocol.errors import ErrorCode, KafkaError
from protocol.lazy import lazy
from protocol.types import NO_UUID, Uuid, uuid_to_text

if TYPE_CHECKING:
    from broker.telemetry import otlp, points
else:  # they need a package that not every broker has
    otlp = lazy("broker.telemetry.otlp")
    points = lazy("broker.telemetry.points")

RESERVED: Final = frozenset({NO_UUID, bytes(15) + b"\1"})
"""Reserved ids, which no client may have (org.apache.kafka.common.Uuid.RESERVED)."""


class Telemetry:
    """Answers clients and passes on their pushes, until `close`."""

    def __init__(self, environment: Environment, random_bytes: Callable[[int], bytes]) -> None:
        self._random_bytes = random_bytes
        self._environment = environment
        self._workers = Workers(1, "telemetry")
        self._instances = ClientInstances()
        self._by_connection: dict[ClientConnection, Uuid] = {}
        """The last client of each open connection."""
        self._subscriptions: list[Subscription] | None = None
        self._version = 0
        """Version of the subscriptions. A client with an older version gets its subscription again."""
        self.series: ClientSeries | None = None
        """The series of pushed metrics; None if /metrics doesn't show them."""
        self.queues: dict[str, PushQueue] = {}
        """The queues of the other receivers, by receiver name."""
        self._closing: list[Callable[[], None]] = []
        self._receivers()
        environment.loader.subscribe(by_change(self._note))

    def __len__(self) -> int:
        """The number of remembered clients."""
        return len(self._instances)

    def _receivers(self) -> None:
        config = self._environment.config
        if config.odradek_telemetry_metrics:
            self.series = ClientSeries()
        if config.odradek_telemetry_topic:
            topic = TelemetryTopic(config.odradek_telemetry_topic, self._environment)
            self.queues["topic"] = PushQueue(config.odradek_telemetry_topic, topic.deliver, self._environment.clock)
        if config.odradek_telemetry_otlp_endpoint:
            collector = otlp.OtlpCollector(config.odradek_telemetry_otlp_endpoint, config.node_id)
            self.queues["otlp"] = PushQueue(
                config.odradek_telemetry_otlp_endpoint, collector.deliver, self._environment.clock
            )
            self._closing.append(collector.close)

    def close(self) -> None:
        """Stops accepting pushes."""
        for queue in self.queues.values():
            queue.close()
        for close in self._closing:
            close()
        self._workers.close()

    def expire(self) -> None:
        """Forgets clients without recent requests."""
        now_ms = self._environment.clock.monotonic_ms()
        self._instances.expire(now_ms)
        if self.series is not None:
            self.series.expire(now_ms)

    def subscribe(self, instance_id: Uuid, context: Context) -> ClientInstance:
        """Returns a client's subscription; a client without an id gets a new id. Raises THROTTLING_QUOTA_EXCEEDED."""
        while instance_id == NO_UUID:
            fresh = self._random_bytes(16)
            if fresh not in self._instances and fresh not in RESERVED:
                instance_id = fresh
        instance = self._instance(instance_id, context)
        instance.ask(self._environment.clock.monotonic_ms())
        return instance

    async def push(
        self, instance_id: Uuid, subscription_id: int, codec: int, data: bytes, context: Context, *, is_last: bool
    ) -> None:
        """Accepts a client's push. Raises INVALID_REQUEST for a reserved id, INVALID_RECORD for an unreadable push, and
        the errors of ClientInstance.push.
        """
        if instance_id in RESERVED:
            reason = f"Invalid request from the client [{uuid_to_text(instance_id)}], invalid client instance id"
            raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
        instance = self._instance(instance_id, context)
        now_ms, max_bytes = self._environment.clock.monotonic_ms(), self._environment.config.telemetry_max_bytes
        instance.push(subscription_id, codec, len(data), max_bytes, now_ms, is_last=is_last)
        if not data:
            return
        try:
            await self._take(instance, codec, data, str(context.principal), max_bytes)
        except KafkaError as error:
            instance.last_error = error.code
            raise

    async def _take(self, instance: ClientInstance, codec: int, data: bytes, principal: str, max_bytes: int) -> None:
        plain = await self._workers.call(lambda: inflated(codec, data, max_bytes))
        interval_ms = instance.requested.interval_ms
        if self.series is not None:
            points_of_push = await self._workers.call(lambda: points.points(plain))
            self.series.add(instance.attributes, points_of_push, interval_ms, self._environment.clock.monotonic_ms())
        push = Push(instance.attributes, principal, interval_ms, plain)
        for queue in self.queues.values():
            queue.take(push)

    def _instance(self, instance_id: Uuid, context: Context) -> ClientInstance:
        """Returns the client, with its subscription up to date."""
        now_ms = self._environment.clock.monotonic_ms()
        subscriptions = self._current()
        instance = self._instances.find(instance_id, self._version, now_ms)
        if instance is None:
            attributes = attributes_of(instance_id, context)
            instance = ClientInstance(instance_id, attributes, requested_of(subscriptions, attributes), self._version)
            self._instances.add(instance, now_ms)
            self._goes_with(context.connection, instance_id)
        return instance

    def _goes_with(self, connection: ClientConnection, instance_id: Uuid) -> None:
        if connection not in self._by_connection:
            connection.on_close.append(self._connection_closed)
        self._by_connection[connection] = instance_id

    def _connection_closed(self, connection: ClientConnection) -> None:
        self._instances.remove(self._by_connection.pop(connection))

    def _note(self, change: Change) -> None:
        if isinstance(change, ConfigChanged) and change.resource.type is ResourceType.CLIENT_METRICS:
            self._subscriptions = None

    def _current(self) -> list[Subscription]:
        """Returns the subscriptions, computed again if the metadata has changed."""
        if self._subscriptions is None:
            image = self._environment.image
            resources = (resource for resource in image.configured() if resource.type is ResourceType.CLIENT_METRICS)
            self._subscriptions = [Subscription.of(image.configs(resource)) for resource in resources]
            self._version += 1
        return self._subscriptions


def attributes_of(instance_id: Uuid, context: Context) -> ClientAttributes:
    """Returns the attributes of a client that subscriptions match."""
    connection = context.connection
    name, version = connection.client_software
    return ClientAttributes(
        client_instance_id=uuid_to_text(instance_id),
        client_id=context.client_id,
        client_software_name=name,
        client_software_version=version,
        client_source_address=connection.ip,
        client_source_port=connection.peer.rpartition(":")[2],
    )
