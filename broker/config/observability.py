"""Options of the broker's metrics, health checks and client telemetry."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from protocol.config import BOOLEAN, CLUSTER_WIDE, LONG, STRING, Config, option
from protocol.lazy import lazy

if TYPE_CHECKING:
    from urllib import parse
else:  # with the first URL
    parse = lazy("urllib.parse")

TELEMETRY_PACKAGE: Final = "opentelemetry"
TELEMETRY_EXTRA: Final = "odradek[telemetry]"


class ObservabilityOptions(Config):
    """Options of the broker's metrics, health checks and client telemetry."""

    odradek_metrics_listener = option(
        STRING,
        None,
        "Address, as host:port, of an HTTP listener that serves /metrics to Prometheus, and /healthz and /readyz. "
        "The usual port is 9404. Unless it is set, there is no such listener. Its clients can read the names of "
        "topics, groups and clients.",
    )
    odradek_slow_request_ms = option(
        LONG,
        0,
        "Requests that take longer than this are logged with the time spent in each stage; 0 disables it. Time "
        "that the client asked the broker to wait for records or members does not count.",
        at_least=0,
        update=CLUSTER_WIDE,
    )
    odradek_telemetry_metrics = option(
        BOOLEAN,
        False,
        "Add the metrics that clients push (KIP-714) to /metrics; a client-metrics subscription makes clients "
        "push. Needs odradek.metrics.listener and the packages of odradek[telemetry].",
    )
    odradek_telemetry_topic = option(
        STRING,
        None,
        "Topic to which the broker writes the metrics that clients push: the key is the client instance id, the "
        "value OpenTelemetry's MetricsData.",
    )
    odradek_telemetry_otlp_endpoint = option(
        STRING,
        None,
        "URL of a collector to which the broker posts the metrics that clients push, by OTLP over HTTP, such as "
        "http://localhost:4318/v1/metrics. Needs the packages of odradek[telemetry].",
    )

    @property
    def takes_telemetry(self) -> bool:
        """True if a receiver of pushed metrics is configured."""
        return self.odradek_telemetry_metrics or bool(
            self.odradek_telemetry_topic or self.odradek_telemetry_otlp_endpoint
        )


def telemetry_problem(config: ObservabilityOptions) -> str | None:
    """Returns the error in the options of telemetry's receivers; None if they are valid."""
    if config.odradek_telemetry_metrics and not config.odradek_metrics_listener:
        return "odradek.telemetry.metrics: /metrics is not served; set odradek.metrics.listener"
    if config.odradek_telemetry_otlp_endpoint and not is_http(config.odradek_telemetry_otlp_endpoint):
        return (
            f"odradek.telemetry.otlp.endpoint={config.odradek_telemetry_otlp_endpoint}: is not an http or https URL "
            "with a host, such as http://localhost:4318/v1/metrics"
        )
    needs_package = config.odradek_telemetry_metrics or config.odradek_telemetry_otlp_endpoint
    if needs_package and find_spec(TELEMETRY_PACKAGE) is None:
        return f"telemetry of clients can't be decoded: opentelemetry-proto is missing; pip install '{TELEMETRY_EXTRA}'"
    return None


def is_http(url: str) -> bool:
    """True for an http or https URL with a host."""
    try:
        parts = parse.urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
