"""Client metrics subscriptions, and the metrics that they request from one client.

A client gets the metrics of every subscription that matches it, and the shortest interval.

Source: ClientMetricsManager, ClientMetricsInstanceMetadata (KIP-714).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Self

from coordinator.group.regex import InvalidPattern, Pattern, compiled
from coordinator.telemetry.config import ClientMetricsConfig
from protocol.patterns import python_pattern
from protocol.records.checksum import crc32c
from protocol.types import Uuid

ALL_METRICS: Final = "*"

DEFAULT_INTERVAL_MS: Final = ClientMetricsConfig().interval_ms

MAX_LABEL: Final = 256
"""Maximum number of characters of a client's attributes, and of the names and labels in its pushes. A client id may
have 32,767 characters, and would be repeated in each series.
"""


class ClientAttributes(NamedTuple):
    """The attributes of a client that subscriptions match: the fields are the keys of `match`, in their order. A client
    without a client id in its request header has no attribute for it.
    """

    client_instance_id: str
    client_id: str | None
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str

    def present(self) -> dict[str, str]:
        """Returns the attributes that the client has, by name, cut to MAX_LABEL characters."""
        return {key: value[:MAX_LABEL] for key, value in self._asdict().items() if value is not None}


class Subscription(NamedTuple):
    """A client metrics subscription, ready to match clients."""

    metrics: tuple[str, ...]
    interval_ms: int
    match: Mapping[str, Pattern]
    """Patterns by attribute name; a client must match all of them."""

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> Self:
        """Returns the subscription with these configs of a client-metrics resource. They are valid, because they were
        checked before they were written.
        """
        config = ClientMetricsConfig.parse(configs)
        patterns = {}
        for text in config.match:
            key, _, expression = text.partition("=")
            patterns[key.strip()] = pattern(expression.strip())
        return cls(tuple(config.metrics), config.interval_ms, patterns)

    def matches(self, client: ClientAttributes) -> bool:
        """True if every pattern matches the whole of its attribute."""
        return all(
            (value := getattr(client, key)) is not None and expression.fullmatch(value) is not None
            for key, expression in self.match.items()
        )


def pattern(expression: str) -> Pattern:
    """Returns a compiled pattern that takes linear time for every client name. Uses Python's own `re` if RE2 can't
    express the pattern (backreferences, look-around) or it is too large; then the time depends on the operator's
    pattern.
    """
    try:
        return compiled(expression)
    except InvalidPattern:
        return python_pattern(expression)


class RequestedMetrics(NamedTuple):
    """The metrics that the broker requests from one client."""

    metrics: tuple[str, ...]
    """Prefixes of metric names, sorted; the prefix `*` matches all names. Empty if no metrics are requested."""
    interval_ms: int

    def id_for(self, instance_id: Uuid) -> int:
        """Returns the subscription id, which depends on the requested metrics and on the client."""
        checksum = crc32c(f"{','.join(self.metrics)} {self.interval_ms}".encode()) ^ uuid_hash(instance_id)
        return checksum - (1 << 32) if checksum >= 1 << 31 else checksum


def requested_of(subscriptions: Iterable[Subscription], client: ClientAttributes) -> RequestedMetrics:
    """Returns the metrics that all matching subscriptions request from a client."""
    metrics, interval_ms = set[str](), DEFAULT_INTERVAL_MS
    for subscription in subscriptions:
        if subscription.matches(client):
            metrics.update(subscription.metrics)
            interval_ms = min(interval_ms, subscription.interval_ms)
    return RequestedMetrics((ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics)), interval_ms)


def uuid_hash(value: Uuid) -> int:
    """Returns 32 bits of a UUID (org.apache.kafka.common.Uuid.hashCode)."""
    folded = int.from_bytes(value[:8]) ^ int.from_bytes(value[8:])
    return (folded >> 32) ^ (folded & 0xFFFFFFFF)
