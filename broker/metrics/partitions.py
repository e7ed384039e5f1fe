"""Partitions: logs and replicas here under the JMX exporter's names; offsets and leaders under kafka_exporter's.

For kafka_exporter's metrics, each broker reports the partitions that it leads, so that each is reported once in the
cluster. Partitions without a leader are in `offlinepartitionscount`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from broker.metrics.exposition import Family, Sample, gauge
from broker.metrics.scrape import Breaks
from broker.metrics.sources import Sources
from broker.replica.partition import Partition
from coordinator.cluster.image import Image
from coordinator.replication.roles import Leading


class Row(NamedTuple):
    """A partition with a replica here, at the time of the scrape."""

    labels: str
    partition: Partition
    is_led: bool
    replicas: int
    """The number of replicas; 0 on brokers that don't lead the partition, as in Kafka."""
    in_sync: int
    min_in_sync: int
    leader_id: int
    is_preferred: bool
    """True if its first replica leads it."""

    @property
    def is_under_replicated(self) -> bool:
        return self.is_led and self.in_sync < self.replicas

    @property
    def is_under_min_isr(self) -> bool:
        return self.is_led and self.in_sync < self.min_in_sync

    @property
    def is_at_min_isr(self) -> bool:
        return self.is_led and self.in_sync == self.min_in_sync


class Value(NamedTuple):
    """A metric of each partition: its name and its function."""

    name: str
    description: str
    of: Callable[[Row], int]


OF_REPLICAS: Final = (
    Value("kafka_log_log_size", "Bytes of the log.", lambda row: row.partition.size_bytes),
    Value("kafka_log_log_logstartoffset", "First offset of the log.", lambda row: row.partition.log_start_offset),
    Value("kafka_log_log_logendoffset", "Offset of the next record.", lambda row: row.partition.log_end_offset),
    Value(
        "kafka_cluster_partition_replicascount",
        ("Replicas; 0 unless this broker leads the partition."),
        lambda row: row.replicas,
    ),
    Value(
        "kafka_cluster_partition_insyncreplicascount",
        ("Replicas in sync; 0 unless this broker leads the partition."),
        lambda row: row.in_sync,
    ),
    Value(
        "kafka_cluster_partition_underreplicated",
        ("1 if a replica is not in sync."),
        lambda row: row.is_under_replicated,
    ),
    Value(
        "kafka_cluster_partition_underminisr",
        ("1 if fewer replicas are in sync than min.insync.replicas."),
        lambda row: row.is_under_min_isr,
    ),
    Value(
        "kafka_cluster_partition_atminisr",
        ("1 if as many replicas are in sync as min.insync.replicas."),
        lambda row: row.is_at_min_isr,
    ),
)
"""The metrics of every replica here."""

OF_LEADERS: Final = (
    Value(
        "kafka_topic_partition_current_offset",
        "Offset after the last committed record.",
        lambda row: row.partition.high_watermark,
    ),
    Value("kafka_topic_partition_oldest_offset", "First offset.", lambda row: row.partition.log_start_offset),
    Value("kafka_topic_partition_replicas", "Replicas.", lambda row: row.replicas),
    Value("kafka_topic_partition_in_sync_replica", "Replicas that are in sync.", lambda row: row.in_sync),
    Value("kafka_topic_partition_leader", "Id of the broker that leads.", lambda row: row.leader_id),
    Value("kafka_topic_partition_leader_is_preferred", "1 if the first replica leads.", lambda row: row.is_preferred),
    Value(
        "kafka_topic_partition_under_replicated_partition",
        "1 if a replica is not in sync.",
        lambda row: row.is_under_replicated,
    ),
)
"""The metrics of the partitions that this broker leads."""


async def rows(sources: Sources, breaks: Breaks) -> list[Row]:
    """Returns all partitions with a replica here."""
    replicas, image = sources.broker.replicas, sources.broker.image
    gathered: list[Row] = []
    for name in replicas.topic_names():
        gathered += [row(image, partition) for partition in list(replicas.topic(name).values())]
        await breaks.next()
    return gathered


def row(image: Image, partition: Partition) -> Row:
    topic, index = partition.name
    own = f'{{topic="{topic}",partition="{index}"}}'  # names of topics need no escaping
    role = partition.role
    if not isinstance(role, Leading):
        return Row(own, partition, False, 0, 0, 0, role.leader_id, False)
    registration = image.partition(partition.name)
    return Row(
        own,
        partition,
        True,
        len(role.followers) + 1,
        len(role.isr.committed),
        role.min_isr(partition.config.min_insync_replicas),
        role.leader_id,
        registration is not None and registration.preferred_leader == role.leader_id,
    )


def partition_families(partitions: Sequence[Row]) -> Iterator[Family]:
    """Yields the families with a sample for each partition."""
    for value in OF_REPLICAS:
        yield gauge(value.name, value.description, samples(value.of, partitions))
    led = [row for row in partitions if row.is_led]
    for value in OF_LEADERS:
        yield gauge(value.name, value.description, samples(value.of, led))


def samples(of: Callable[[Row], int], partitions: Sequence[Row]) -> Iterator[Sample]:
    return ((row.labels, int(of(row))) for row in partitions)
