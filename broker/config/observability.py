"""Metrics and health of the broker: whether and where they are served."""

from __future__ import annotations

from typing import Final

from protocol.config import BOOLEAN, CLUSTER_WIDE, LONG, STRING, Config, option

TELEMETRY_PACKAGE: Final = "opentelemetry"
TELEMETRY_EXTRA: Final = "odradek[telemetry]"


class ObservabilityOptions(Config):
    """Metrics and health of the broker: whether and where they are served."""

    odradek_metrics_listener = option(
        "odradek.metrics.listener",
        STRING,
        None,
        doc="Address, as host:port, that serves /metrics to Prometheus, and /healthz and /readyz. Nothing is served "
        "unless it is set; 9404 is the usual port. Who reaches it reads the names of topics, groups and clients.",
    )
    odradek_slow_request_ms = option(
        "odradek.slow.request.ms",
        LONG,
        0,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Age of a request, when it is answered, from which on it is logged with where its time went; 0 is never. "
        "Waits for records or members that the client has asked for do not count.",
    )
    odradek_telemetry_metrics = option(
        "odradek.telemetry.metrics",
        BOOLEAN,
        False,
        doc="Whether /metrics has what clients push (KIP-714), once a client-metrics subscription asks them to. Needs "
        "odradek.metrics.listener, and the packages of odradek[telemetry].",
    )
    odradek_telemetry_topic = option(
        "odradek.telemetry.topic",
        STRING,
        None,
        doc="Topic that gets what clients push: the client instance id as key, OpenTelemetry's MetricsData as value.",
    )
    odradek_telemetry_otlp_endpoint = option(
        "odradek.telemetry.otlp.endpoint",
        STRING,
        None,
        doc="URL of a collector that gets what clients push, by OTLP over HTTP, as http://localhost:4318/v1/metrics. "
        "Needs the packages of odradek[telemetry].",
    )

    @property
    def takes_telemetry(self) -> bool:
        """True where somebody wants what clients push."""
        return self.odradek_telemetry_metrics or bool(
            self.odradek_telemetry_topic or self.odradek_telemetry_otlp_endpoint
        )


def telemetry_problem(config: ObservabilityOptions) -> str | None:
    """Returns what is wrong with the receivers of telemetry; None where all is well."""
    if config.odradek_telemetry_metrics and not config.odradek_metrics_listener:
        return "odradek.telemetry.metrics: /metrics is not served; set odradek.metrics.listener"
    if config.odradek_telemetry_otlp_endpoint and not is_http(config.odradek_telemetry_otlp_endpoint):
        return (
            f"odradek.telemetry.otlp.endpoint={config.odradek_telemetry_otlp_endpoint}: "
            "no http or https URL with a host, as http://localhost:4318/v1/metrics"
        )
    from importlib.util import find_spec

    needs_package = config.odradek_telemetry_metrics or config.odradek_telemetry_otlp_endpoint
    if needs_package and find_spec(TELEMETRY_PACKAGE) is None:
        return (
            f"telemetry of clients cannot be decoded: opentelemetry-proto is missing; pip install '{TELEMETRY_EXTRA}'"
        )
    return None


def is_http(url: str) -> bool:
    """True for an http or https URL with a host."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
