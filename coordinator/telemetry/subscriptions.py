"""Subscriptions to clients' metrics, and what they ask of one client.

Every subscription that matches a client adds its metrics; the shortest interval counts.
Source: ClientMetricsManager, ClientMetricsInstanceMetadata (KIP-714).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Self

from coordinator.group.regex import Pattern, TooCostly, compiled
from coordinator.telemetry.config import ClientMetricsConfig
from protocol.patterns import python_pattern
from protocol.records.checksum import crc32c
from protocol.types import Uuid

ALL_METRICS: Final = "*"

DEFAULT_INTERVAL_MS: Final = ClientMetricsConfig().interval_ms

MAX_LABEL: Final = 256
"""Characters of what is told of a client, and of the names and labels that it gives. A client id may have 32,767, and
would be told with each of its series."""


class ClientAttributes(NamedTuple):
    """A client as subscriptions match it: the fields are the keys of `match`, in their order. A client whose header
    has no client id has none to match."""

    client_instance_id: str
    client_id: str | None
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str

    def present(self) -> dict[str, str]:
        """Returns the attributes that the client has, by their names, none of them longer than MAX_LABEL."""
        return {key: value[:MAX_LABEL] for key, value in self._asdict().items() if value is not None}


class Subscription(NamedTuple):
    """One subscription, ready to match."""

    metrics: tuple[str, ...]
    interval_ms: int
    match: Mapping[str, Pattern]
    """Patterns by the names of attributes; a client matches all of them."""

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> Self:
        """Returns the subscription that these configs of a client-metrics resource make. They are valid: they were
        checked before they were written."""
        config = ClientMetricsConfig.parse(configs)
        patterns = {}
        for text in config.match:
            key, _, expression = text.partition("=")
            patterns[key.strip()] = pattern(expression.strip())
        return cls(tuple(config.metrics), config.interval_ms, patterns)

    def matches(self, client: ClientAttributes) -> bool:
        """True where every pattern matches the whole of its attribute."""
        return all(
            (value := getattr(client, key)) is not None and expression.fullmatch(value) is not None
            for key, expression in self.match.items()
        )


def pattern(expression: str) -> Pattern:
    """Returns a pattern that takes linear time, whatever a client calls itself; where RE2 has no way to say it (a
    reference back, a look around), Python's own, which costs what the operator wrote."""
    import re2

    try:
        return compiled(expression)
    except (re2.error, TooCostly):
        return python_pattern(expression)


class RequestedMetrics(NamedTuple):
    """The metrics that one client is asked for."""

    metrics: tuple[str, ...]
    """Prefixes of names, sorted; one that is `*` stands for all. None where nothing is asked for."""
    interval_ms: int

    def id_for(self, instance_id: Uuid) -> int:
        """Returns the subscription id: it changes with what is requested, and with the client."""
        checksum = crc32c(f"{','.join(self.metrics)} {self.interval_ms}".encode()) ^ uuid_hash(instance_id)
        return checksum - (1 << 32) if checksum >= 1 << 31 else checksum


def requested_of(subscriptions: Iterable[Subscription], client: ClientAttributes) -> RequestedMetrics:
    """Returns what all subscriptions that match a client ask of it."""
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
