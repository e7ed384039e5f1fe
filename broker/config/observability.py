"""Metrics and health of the broker: whether and where they are served."""

from __future__ import annotations

from protocol.config import STRING, Config, option


class ObservabilityOptions(Config):
    """Metrics and health of the broker: whether and where they are served."""

    odradek_metrics_listener = option(
        "odradek.metrics.listener",
        STRING,
        None,
        doc="Address, as host:port, that serves /metrics to Prometheus, and /healthz and /readyz. Nothing is served "
        "unless it is set; 9404 is the usual port. Who reaches it reads the names of topics, groups and clients.",
    )
