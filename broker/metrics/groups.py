"""Groups whose coordinator is here: offsets and lag by kafka_exporter's names, share groups by names of the same kind.

The lag of a partition is told where this broker has a replica of it: it does not ask others during a scrape.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from broker.metrics.exposition import Family, Sample, gauge, labels
from broker.metrics.scrape import Breaks
from broker.metrics.sources import Sources
from coordinator.group.offsets.offsets import ByTopic

NO_OFFSET = -1


class GroupOffset(NamedTuple):
    """An offset that a group has committed, and its lag; None where the partition's end is not known here."""

    labels: str
    offset: int
    lag: int | None


class TopicSums(NamedTuple):
    """The sums of a group's partitions of one topic."""

    labels: str
    offset: int
    lag: int


class GroupRows(NamedTuple):
    """The groups here, as of this scrape."""

    offsets: list[GroupOffset]
    sums: list[TopicSums]
    members: list[Sample]
    share_members: list[Sample]


async def group_rows(sources: Sources, breaks: Breaks) -> GroupRows:
    """Returns the groups of all shards here."""
    rows = GroupRows([], [], [], [])
    for shard in list(sources.broker.groups.shards.values()):
        for group_id, group in list(shard.state.groups.items()):
            if group.type.value == "share":
                rows.share_members.append((labels({"sharegroup": group_id}), group.member_count))
            else:
                rows.members.append((labels({"consumergroup": group_id}), group.member_count))
            add_offsets(sources, rows, group_id, shard.state.offsets.of_group(group_id))
            await breaks.next()
    return rows


def add_offsets(sources: Sources, rows: GroupRows, group_id: str, by_topic: ByTopic) -> None:
    replicas = sources.broker.replicas
    for topic, partitions in by_topic.items():
        here, of_topic = replicas.topic(topic), labels({"consumergroup": group_id, "topic": topic})
        offset_sum = lag_sum = 0
        for index, committed in partitions.items():
            partition = here.get(index)
            lag = None if partition is None else max(partition.high_watermark - committed.offset, 0)
            rows.offsets.append(GroupOffset(f'{of_topic[:-1]},partition="{index}"}}', committed.offset, lag))
            offset_sum += committed.offset
            lag_sum += lag or 0
        rows.sums.append(TopicSums(of_topic, offset_sum, lag_sum))


def group_families(rows: GroupRows) -> Iterator[Family]:
    """Yields consumer groups, by kafka_exporter's names."""
    yield gauge(
        "kafka_consumergroup_current_offset",
        "Offset that a group has committed of a partition.",
        ((row.labels, row.offset) for row in rows.offsets),
    )
    yield gauge(
        "kafka_consumergroup_lag",
        "Committed records of a partition that a group has yet to read.",
        ((row.labels, row.lag) for row in rows.offsets if row.lag is not None),
    )
    yield gauge(
        "kafka_consumergroup_current_offset_sum",
        "Sum of a group's offsets of a topic.",
        ((row.labels, row.offset) for row in rows.sums),
    )
    yield gauge(
        "kafka_consumergroup_lag_sum", "Sum of a group's lag of a topic.", ((row.labels, row.lag) for row in rows.sums)
    )
    yield gauge("kafka_consumergroup_members", "Members of a group.", rows.members)


def share_families(sources: Sources, rows: GroupRows) -> Iterator[Family]:
    """Yields share groups, and the share partitions that are at work on this broker."""
    names = sources.broker.replicas
    hosted = [
        (labels({"sharegroup": key.group_id, "topic": topic, "partition": key.partition}), share)
        for key, share in sources.broker.share_groups.at_work()
        if (topic := names.name_of(key.topic_id)) is not None
    ]
    yield gauge("kafka_sharegroup_members", "Members of a share group.", rows.share_members)
    yield gauge(
        "kafka_sharegroup_start_offset",
        "Offset below which every record is done with.",
        ((own, share.engine.start_offset) for own, share in hosted),
    )
    yield gauge(
        "kafka_sharegroup_inflight",
        "Records from the start offset to the last that was acquired.",
        ((own, share.engine.in_flight_count) for own, share in hosted),
    )
    yield gauge(
        "kafka_sharegroup_lag",
        "Committed records whose delivery is not complete.",
        ((own, share.lag) for own, share in hosted),
    )
