"""Families of the metrics that clients push (KIP-714), under the names of Strimzi's reporter: `clients_` and the
metric's name.

The labels `client_instance_id` and `client_id` are added to the client's own labels.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.metrics.exposition import Family, Sample, counter, gauge, labels
from broker.metrics.sources import Sources
from broker.telemetry.series import ClientSeries

DESCRIPTION = "Pushed by clients."


def telemetry_families(sources: Sources) -> Iterator[Family]:
    """Yields the clients that push, their series, and what happened to pushes; nothing if telemetry is disabled."""
    if not sources.broker.config.takes_telemetry:
        return
    telemetry = sources.broker.telemetry
    yield gauge(
        "kafka_server_client_metrics_instance_count",
        ("Clients that have requested a telemetry subscription."),
        [("", len(telemetry))],
    )
    queues = [(labels({"receiver": name}), queue) for name, queue in telemetry.queues.items()]
    yield gauge(
        "odradek_telemetry_queued_bytes",
        "Bytes of pushes that wait for a receiver.",
        [(own, queue.held_bytes) for own, queue in queues],
    )
    yield counter(
        "odradek_telemetry_delivered_total",
        "Pushes that a receiver has accepted.",
        [(own, queue.delivered) for own, queue in queues],
    )
    yield counter(
        "odradek_telemetry_dropped_total",
        "Pushes that no receiver has accepted.",
        [(own, queue.dropped) for own, queue in queues],
    )
    if telemetry.series is not None:
        yield from client_families(telemetry.series)


def client_families(series: ClientSeries) -> Iterator[Family]:
    """Yields the metrics that clients have pushed, and the clients."""
    clients = [(labels(attributes.present()), 1) for attributes in series.clients()]
    yield gauge("odradek_telemetry_client_info", "A client that pushes, with its software.", clients)
    yield counter(
        "odradek_telemetry_points_left_out_total",
        "Points of pushes that were dropped: there were too many series, or the name already has another type.",
        [("", series.left_out)],
    )
    by_name: dict[tuple[str, bool], list[Sample]] = {}
    for value in series.all():
        by_name.setdefault((value.name, value.is_counter), []).append((labels(value.labels), value.value))
    for (name, is_counter), samples in sorted(by_name.items()):
        yield (counter if is_counter else gauge)(name, DESCRIPTION, samples)
