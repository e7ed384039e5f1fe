"""Metrics and health of the broker: whether and where they are served."""

from __future__ import annotations

from protocol.config import CLUSTER_WIDE, LONG, STRING, Config, option


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
