"""The quorum of controllers as this node sees it: its leader, the end of its log, and the log's growth.

Source: KafkaRaftMetrics, BrokerServerMetrics, and the raft-channel-metrics of KafkaNetworkChannel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.clock import Clock
from broker.metadata.log import MetadataLog
from broker.metrics.exposition import Family, counter, gauge, labels
from broker.metrics.sources import ProcessSources
from coordinator.cluster.record import MetadataBatch
from coordinator.rate import Rate

RAFT: Final = "kafka_server_raftmetrics"
CHANNEL: Final = "kafka_server_raftchannelmetrics"
METADATA: Final = "kafka_server_brokermetadatametrics"

SAMPLES: Final = 2
WINDOW_MS: Final = 30_000
"""Rates and means are over the last minute, in two windows (metrics.num.samples, metrics.sample.window.ms)."""


class MetadataRates:
    """Counts the records of the metadata log, and the time from append to commit. A listener of the log."""

    def __init__(self, metadata_log: MetadataLog, clock: Clock) -> None:
        self._clock = clock
        self._records = Rate(SAMPLES, WINDOW_MS, least_windows=1)
        self._batches = Rate(SAMPLES, WINDOW_MS, least_windows=1)
        self._latencies_ms = Rate(SAMPLES, WINDOW_MS, least_windows=1)
        metadata_log.listen(self.note)

    def note(self, batch: MetadataBatch) -> None:
        """Counts a committed batch."""
        now_ms = self._clock.monotonic_ms()
        self._records.record(len(batch.records) + len(batch.quorum), now_ms)
        self._batches.record(1, now_ms)
        self._latencies_ms.record(max(self._clock.now_ms() - batch.timestamp_ms, 0), now_ms)

    @property
    def records_per_s(self) -> float:
        return self._records.per_second(self._clock.monotonic_ms())

    @property
    def mean_latency_ms(self) -> float | None:
        """The mean time from append to commit; None if nothing was committed."""
        now_ms = self._clock.monotonic_ms()
        batches = self._batches.per_second(now_ms)
        return self._latencies_ms.per_second(now_ms) / batches if batches else None


def quorum_families(sources: ProcessSources, rates: MetadataRates) -> Iterator[Family]:
    """Yields the quorum's metrics. As in Kafka, followers report 0 for metrics of a leader, and the leader 0 for
    metrics of followers.
    """
    log, leads = sources.cluster.metadata_log, sources.is_controller
    state = labels({"current_state": log.role})
    records_per_s = round(rates.records_per_s, 6)
    for name, description, own, value in (
        ("current_state", "The role of this node in the quorum, as a label.", state, 1),
        ("current_leader", "Id of the controller that leads; -1 if it is unknown.", "", log.leader_id),
        (
            "current_vote",
            ("Id of the controller that this node has voted for; -1 for none."),
            "",
            log.voted_id,
        ),
        ("current_epoch", "Epoch of the quorum.", "", log.epoch),
        ("high_watermark", "Offset after the last committed record.", "", log.high_watermark),
        ("log_end_offset", "Offset of the next record.", "", log.end_offset),
        ("append_records_rate", "Records per second that the leader commits.", "", records_per_s if leads else 0),
        (
            "fetch_records_rate",
            ("Records per second that are fetched from the leader."),
            "",
            0 if leads else records_per_s,
        ),
    ):
        yield gauge(f"{RAFT}_{name}", description, [(own, value)])
    latency_ms = rates.mean_latency_ms
    if leads and latency_ms is not None:
        yield gauge(f"{RAFT}_commit_latency_avg", "Milliseconds from append to commit.", [("", round(latency_ms, 3))])
    yield from channel_families(sources)
    if not leads:
        yield from image_families(sources)


def channel_families(sources: ProcessSources) -> Iterator[Family]:
    """Yields the traffic of the connection that fetches the metadata log; nothing on the leader."""
    channel = sources.cluster.channel
    for name, description, value in (
        ("request", "Requests for the metadata log.", channel.requests),
        ("response", "Their answers.", channel.responses),
        ("outgoing_byte", "Bytes of these requests.", channel.sent_bytes),
        ("incoming_byte", "Bytes of these answers.", channel.received_bytes),
    ):
        yield counter(f"{CHANNEL}_{name}_total", description, [("", value)])


def image_families(sources: ProcessSources) -> Iterator[Family]:
    """Yields how far a broker has applied the log. The controller writes a record at least every half second, so a
    large lag does not mean that the metadata are idle.
    """
    loader = sources.cluster.loader
    applied_ms = loader.last_timestamp_ms
    lag_ms = max(sources.host.clock.now_ms() - applied_ms, 0)
    yield gauge(
        f"{METADATA}_last_applied_record_offset", "Offset of the last applied record.", [("", loader.image.offset)]
    )
    yield gauge(
        f"{METADATA}_last_applied_record_timestamp",
        "Time when the last applied record was written.",
        [("", applied_ms)],
    )
    yield gauge(
        f"{METADATA}_last_applied_record_lag_ms", "Time since the last applied record was written.", [("", lag_ms)]
    )
