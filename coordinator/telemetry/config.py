"""The options of a client metrics subscription (KIP-714; ClientMetricsConfigs of Apache Kafka 4.3)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Final

from protocol.config import INT, LIST, Config, ConfigError, option
from protocol.patterns import python_pattern

MIN_INTERVAL_MS: Final = 100
MAX_INTERVAL_MS: Final = 3_600_000
MATCH_KEYS: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


class ClientMetricsConfig(Config):
    """The metrics that matching clients push, and the push interval."""

    KIND: ClassVar[str] = "client metrics"

    interval_ms = option(INT, 300_000, "Interval between two pushes of a client.")
    metrics = option(LIST, (), "Prefixes of the names of metrics to push; * is all metrics, an empty list none.")
    match = option(LIST, (), "Clients that push, as key=regular expression; an empty list is all clients.")

    def contradictions(self) -> Iterable[ConfigError]:
        """Yields an error for an interval out of bounds, and for each invalid pattern."""
        if not MIN_INTERVAL_MS <= self.interval_ms <= MAX_INTERVAL_MS:
            bounds = f"{MIN_INTERVAL_MS} and {MAX_INTERVAL_MS} (1 hour)"
            yield ConfigError(
                f"Invalid value {self.interval_ms} for interval.ms, interval must be between {bounds}",
                name="interval.ms",
            )
        for pattern in self.match:
            if not _is_pattern(pattern):
                yield ConfigError(f"Illegal client matching pattern: {pattern}", name="match")


def _is_pattern(text: str) -> bool:
    key, equals, expression = text.partition("=")
    if not equals or key.strip() not in MATCH_KEYS:
        return False
    try:
        python_pattern(expression.strip())
    except re.error:
        return False
    return True
