"""The quorum of controllers as this node sees it: its leader and voters, the end of its log, elections, and snapshots.

Source: KafkaRaftMetrics, BrokerServerMetrics, QuorumControllerMetrics, MetadataLoaderMetrics, SnapshotEmitterMetrics,
and the raft-channel-metrics of KafkaNetworkChannel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from broker.clock import Clock
from broker.metadata.log import MetadataLog
from broker.metrics.exposition import Family, counter, gauge, labels
from broker.metrics.sources import ProcessSources
from coordinator.cluster.brokers.features import KRAFT_VERSION
from coordinator.cluster.quorum_state import NOBODY
from coordinator.cluster.record import MetadataBatch
from coordinator.rate import Rate

RAFT: Final = "kafka_server_raftmetrics"
CHANNEL: Final = "kafka_server_raftchannelmetrics"
METADATA: Final = "kafka_server_brokermetadatametrics"
LOADER: Final = "kafka_server_metadataloader"
EMITTER: Final = "kafka_server_snapshotemitter"
CONTROLLER: Final = "kafka_controller_kafkacontroller"

SAMPLES: Final = 2
WINDOW_MS: Final = 30_000
"""Rates and times are over the last minute, in two windows (metrics.num.samples, metrics.sample.window.ms)."""

ELECTING: Final = frozenset({"prospective", "candidate"})
"""The roles of a voter that has begun an election."""

ELECTED: Final = frozenset({"leader", "follower"})


@dataclass(slots=True)
class Window:
    """The times in a part of the last minute."""

    begun_ms: int
    count: int = 0
    sum_ms: int = 0
    max_ms: int = 0


class Times:
    """The mean and the maximum of times in the last minute (Avg and Max of Kafka's metrics)."""

    def __init__(self) -> None:
        self._windows: deque[Window] = deque()

    def record(self, took_ms: int, now_ms: int) -> None:
        """Adds a time."""
        self._forget(now_ms)
        if not self._windows or now_ms - self._windows[-1].begun_ms >= WINDOW_MS:
            self._windows.append(Window(now_ms))
        window = self._windows[-1]
        window.count += 1
        window.sum_ms += took_ms
        window.max_ms = max(window.max_ms, took_ms)

    def families(self, name: str, description: str, now_ms: int) -> Iterator[Family]:
        """Yields mean and maximum; nothing without a time in the last minute."""
        self._forget(now_ms)
        if self._windows:
            mean_ms = sum(window.sum_ms for window in self._windows) / sum(window.count for window in self._windows)
            max_ms = max(window.max_ms for window in self._windows)
            yield gauge(f"{name}_avg", f"Mean milliseconds {description}.", [("", round(mean_ms, 3))])
            yield gauge(f"{name}_max", f"Most milliseconds {description}.", [("", max_ms)])

    def _forget(self, now_ms: int) -> None:
        while self._windows and now_ms - self._windows[0].begun_ms >= SAMPLES * WINDOW_MS:
            self._windows.popleft()


class QuorumWatch:
    """Counts the records of the metadata log and its leaders, and measures commits and elections. A listener of the
    log."""

    def __init__(self, metadata_log: MetadataLog, clock: Clock) -> None:
        self._clock = clock
        self._records = Rate(SAMPLES, WINDOW_MS, least_windows=1)
        self.commits = Times()
        self.elections = Times()
        self.leaders = 0
        """Number of new leaders since the start."""
        self._leader_id = metadata_log.leader_id
        self._begun_ms: int | None = None
        """The time when this node began an election; None if none is under way."""
        metadata_log.listen(self.committed)
        metadata_log.listen_to_role(self.became)

    def committed(self, batch: MetadataBatch) -> None:
        """Counts a committed batch."""
        now_ms = self._clock.monotonic_ms()
        self._records.record(len(batch.records) + len(batch.quorum), now_ms)
        self.commits.record(max(self._clock.now_ms() - batch.timestamp_ms, 0), now_ms)

    def became(self, role: str, leader_id: int) -> None:
        """Measures an election from the first role of a voter that requests votes until a leader is known."""
        now_ms = self._clock.monotonic_ms()
        if role in ELECTING and self._begun_ms is None:
            self._begun_ms = now_ms
        elif role in ELECTED and self._begun_ms is not None:
            self.elections.record(now_ms - self._begun_ms, now_ms)
            self._begun_ms = None
        if leader_id not in (NOBODY, self._leader_id):
            self.leaders += 1
            self._leader_id = leader_id

    @property
    def records_per_s(self) -> float:
        return self._records.per_second(self._clock.monotonic_ms())


def quorum_families(sources: ProcessSources, watch: QuorumWatch) -> Iterator[Family]:
    """Yields the quorum's metrics. As in Kafka, followers report 0 for metrics of a leader, and the leader 0 for
    metrics of followers.
    """
    log, leads, view = sources.cluster.metadata_log, sources.is_controller, sources.cluster.view()
    state = labels({"current_state": log.role})
    records_per_s = round(watch.records_per_s, 6)
    for name, description, own, value in (
        ("current_state", "The role of this node in the quorum, as a label.", state, 1),
        ("current_leader", "Id of the controller that leads; -1 if it is unknown.", "", log.leader_id),
        ("current_vote", "Id of the controller that this node has voted for; -1 for none.", "", log.voted_id),
        ("current_epoch", "Epoch of the quorum.", "", log.epoch),
        ("high_watermark", "Offset after the last committed record.", "", log.high_watermark),
        ("log_end_offset", "Offset of the next record.", "", log.end_offset),
        ("log_end_epoch", "Epoch of the last record.", "", log.end_epoch),
        ("number_of_voters", "Controllers that vote.", "", view.voters),
        ("number_of_observers", "Nodes that follow the leader and don't vote.", "", view.observers),
        ("uncommitted_voter_change", "1 on the leader while voters change.", "", int(view.is_changing)),
        ("append_records_rate", "Records per second that the leader commits.", "", records_per_s if leads else 0),
        ("fetch_records_rate", "Records per second that are fetched from it.", "", 0 if leads else records_per_s),
    ):
        yield gauge(f"{RAFT}_{name}", description, [(own, value)])
    now_ms = sources.host.clock.monotonic_ms()
    if leads:
        yield from watch.commits.families(f"{RAFT}_commit_latency", "from append to commit", now_ms)
    yield from watch.elections.families(f"{RAFT}_election_latency", "until a leader was known", now_ms)
    yield from channel_families(sources)
    yield from image_families(sources)
    if log.role != "observer":
        yield from voter_families(sources, watch)


def voter_families(sources: ProcessSources, watch: QuorumWatch) -> Iterator[Family]:
    """Yields the progress of a controller, active or standby."""
    log, loader = sources.cluster.metadata_log, sources.cluster.loader
    for name, description, value in (
        ("lastappliedrecordoffset", "Offset of the last applied record.", loader.image.offset),
        ("lastappliedrecordtimestamp", "Time when the last applied record was written.", loader.last_timestamp_ms),
        ("lastappliedrecordlagms", "Time since the last applied record was written.", _lag_ms(sources)),
        ("lastcommittedrecordoffset", "Offset of the last committed record.", log.high_watermark - 1),
        ("newactivecontrollerscount", "New active controllers since the start of this process.", watch.leaders),
    ):
        yield gauge(f"{CONTROLLER}_{name}", description, [("", value)])


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
    """Yields a node's image and its snapshots."""
    loader, snapshots = sources.cluster.loader, sources.cluster.snapshots
    age_ms = max(sources.host.clock.now_ms() - snapshots.written_ms, 0)
    for name, description, value in (
        (f"{LOADER}_currentmetadataversion", "The metadata.version of the cluster.",
         loader.image.metadata_version),
        (f"{LOADER}_currentcontrollerid", "Id of the active controller; -1 if it is unknown.",
         sources.cluster.metadata_log.leader_id),
        (f"{LOADER}_handleloadsnapshotcount", "Snapshots loaded since the start.", loader.snapshots_loaded),
        (f"{EMITTER}_latestsnapshotgeneratedbytes", "Size of the last snapshot written since the start; else 0.",
         snapshots.written_bytes),
        (f"{EMITTER}_latestsnapshotgeneratedagems", "Time since that snapshot, or since the start.", age_ms),
    ):  # fmt: skip
        yield gauge(name, description, [("", value)])
    levels = sorted({**loader.image.features, KRAFT_VERSION: loader.image.kraft_version}.items())
    yield gauge(
        f"{LOADER}_finalizedlevel",
        "The level of a feature.",
        [(labels({"featureName": name}), level) for name, level in levels],
    )


def metadata_families(sources: ProcessSources) -> Iterator[Family]:
    """Yields how far a broker has applied the metadata log. The controller writes a record at least every half second,
    so a large lag does not mean that the metadata are idle.
    """
    loader = sources.cluster.loader
    for name, description, value in (
        ("offset", "Offset of the last applied record.", loader.image.offset),
        ("timestamp", "Time when the last applied record was written.", loader.last_timestamp_ms),
        ("lag_ms", "Time since the last applied record was written.", _lag_ms(sources)),
    ):
        yield gauge(f"{METADATA}_last_applied_record_{name}", description, [("", value)])


def _lag_ms(sources: ProcessSources) -> int:
    return max(sources.host.clock.now_ms() - sources.cluster.loader.last_timestamp_ms, 0)
