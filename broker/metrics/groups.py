"""Groups whose coordinator is here: their number by state under Kafka's names (KIP-1301), offsets and lag under
kafka_exporter's names, share groups under similar names.

As in kafka_exporter, if a group has offsets for some partitions of a topic, its other partitions have -1 as offset and
lag, so that operators notice a partition that the group has never read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from broker.metrics.ends import Ends, EndsElsewhere
from broker.metrics.exposition import Family, Sample, gauge, labels
from broker.metrics.scrape import Breaks
from broker.metrics.sources import Sources
from broker.replica.partition import Partition
from coordinator.group.classic.rendezvous import ClassicState
from coordinator.group.consumer.group import ConsumerGroupState
from coordinator.group.group import GroupType
from coordinator.group.offsets.offsets import ByTopic
from coordinator.group.share.group import EMPTY, STABLE
from coordinator.group.streams.group import StreamsGroupState
from protocol.types import TopicPartition

NO_OFFSET: Final = -1
"""Offset and lag of a partition for which the group has no committed offset."""

MAX_CHARACTERS: Final = 64 << 20
"""Maximum number of characters of all groups' labels: half a million partitions with names of usual length. A client
may create any number of groups with names of 32,767 bytes, and a page has a name twice for each partition.
"""


COORDINATOR: Final = "kafka_server_group_coordinator_metrics"

STATES: Final[Mapping[GroupType, Mapping[str, str]]] = {
    GroupType.CLASSIC: {state.value: state.name.lower() for state in ClassicState},
    GroupType.CONSUMER: {state.value: state.name.lower() for state in ConsumerGroupState},
    GroupType.SHARE: {EMPTY: "empty", STABLE: "stable", "Dead": "dead"},
    GroupType.STREAMS: {state.value: state.name.lower() for state in StreamsGroupState},
}
"""The states of each type of group, as Kafka prints them and as its metrics name them."""


class GroupTopic(NamedTuple):
    """A group and a topic with committed offsets, by partition."""

    labels: str
    topic: str
    offsets: dict[int, int]

    @property
    def characters(self) -> int:
        """The number of characters of its labels in all its samples."""
        return 2 * len(self.labels) * (1 + len(self.offsets))


class GroupRows(NamedTuple):
    """The groups here at the time of this scrape."""

    offsets: list[Sample]
    lags: list[Sample]
    offset_sums: list[Sample]
    lag_sums: list[Sample]
    members: list[Sample]
    share_members: list[Sample]
    left_out: list[Sample]
    """The number of groups that are left out because of MAX_CHARACTERS."""
    states: Counter[tuple[GroupType, str]]
    """The number of groups by type and state."""
    offset_counts: list[Sample]
    """The number of committed offsets."""


async def group_rows(sources: Sources, elsewhere: EndsElsewhere, breaks: Breaks) -> GroupRows:
    """Returns the groups of all shards here, with the lag of each partition whose high watermark is known."""
    rows, topics = GroupRows([], [], [], [], [], [], [], Counter(), []), list[GroupTopic]()
    room = MAX_CHARACTERS
    left_out = offset_count = 0
    for shard in list(sources.broker.groups.shards.values()):
        for group_id, group in list(shard.state.groups.items()):
            await breaks.next()
            rows.states[group.type, group.state_name] += 1
            committed = shard.state.offsets.of_group(group_id)
            offset_count += sum(map(len, committed.values()))
            of_group = list(group_topics(sources, group_id, committed))
            characters = len(group_id) + sum(entry.characters for entry in of_group)
            if characters > room:
                left_out += 1
                continue
            room -= characters
            is_share = group.type.value == "share"
            name, members = ("sharegroup", rows.share_members) if is_share else ("consumergroup", rows.members)
            members.append((labels({name: group_id}), group.member_count))
            topics += of_group
    rows.left_out.append(("", left_out))
    rows.offset_counts.append(("", offset_count))
    ends = await breaks.during(elsewhere.look(unknown_ends(sources, topics)))
    for entry in topics:
        add_offsets(sources, rows, entry, ends)
        await breaks.next()
    return rows


def group_topics(sources: Sources, group_id: str, by_topic: ByTopic) -> Iterator[GroupTopic]:
    """Yields the topics of a group, each with its existing partitions, and deleted partitions that still have
    offsets.
    """
    for name, committed in by_topic.items():
        topic = sources.broker.image.topic(name)
        offsets = dict.fromkeys(() if topic is None else sorted(topic.partitions), NO_OFFSET)
        offsets.update((index, entry.offset) for index, entry in committed.items())
        yield GroupTopic(labels({"consumergroup": group_id, "topic": name}), name, offsets)


def unknown_ends(sources: Sources, topics: list[GroupTopic]) -> dict[TopicPartition, None]:
    """Returns the partitions with an offset whose high watermark no replica here knows."""
    replicas = sources.broker.replicas
    return {
        TopicPartition(entry.topic, index): None
        for entry in topics
        for index, offset in entry.offsets.items()
        if offset != NO_OFFSET and known_end(replicas.topic(entry.topic).get(index), offset) is None
    }


def known_end(here: Partition | None, offset: int) -> int | None:
    """Returns the high watermark from a replica here; None for a follower that is itself behind the group's offset."""
    if here is None or not (here.leads or here.high_watermark >= offset):
        return None
    return here.high_watermark


def add_offsets(sources: Sources, rows: GroupRows, entry: GroupTopic, ends: Ends) -> None:
    """Adds the rows of one group and topic."""
    here, lag_sum = sources.broker.replicas.topic(entry.topic), 0
    for index, offset in entry.offsets.items():
        own = f'{entry.labels[:-1]},partition="{index}"}}'
        rows.offsets.append((own, offset))
        if offset == NO_OFFSET:
            rows.lags.append((own, NO_OFFSET))
            continue
        end = known_end(here.get(index), offset)
        if end is None:
            end = ends.get(TopicPartition(entry.topic, index))
        if end is not None:  # negative if the offset is beyond the end, for example after the topic was recreated
            rows.lags.append((own, end - offset))
            lag_sum += end - offset
    rows.offset_sums.append((entry.labels, sum(entry.offsets.values())))
    rows.lag_sums.append((entry.labels, lag_sum))


def group_families(rows: GroupRows) -> Iterator[Family]:
    """Yields consumer groups under kafka_exporter's names."""
    for name, description, samples in (
        ("current_offset", "Committed offset of a group; -1 if it has none.", rows.offsets),
        ("lag", "Committed records of a partition that a group has not read yet; -1 without an offset.", rows.lags),
        ("current_offset_sum", "Sum of a group's offsets of a topic.", rows.offset_sums),
        ("lag_sum", "Sum of a group's lag of a topic.", rows.lag_sums),
        ("members", "Members of a group.", rows.members),
    ):
        yield gauge(f"kafka_consumergroup_{name}", description, samples)
    yield gauge(
        "odradek_groups_left_out",
        ("Groups that are left out of the page because their names are too long."),
        rows.left_out,
    )


def census_families(rows: GroupRows) -> Iterator[Family]:
    """Yields the number of groups and of committed offsets under Kafka's names."""
    by_type: Counter[GroupType] = Counter()
    for (kind, _), count in rows.states.items():
        by_type[kind] += count
    yield gauge(
        f"{COORDINATOR}_group_count",
        "Groups of a protocol.",
        ((labels({"protocol": kind.value}), by_type[kind]) for kind in STATES),
    )
    for kind, states in STATES.items():
        yield gauge(
            f"{COORDINATOR}_{kind.value}_group_count",
            f"Groups of the {kind.value} protocol in a state.",
            ((labels({"state": tag}), rows.states[kind, name]) for name, tag in states.items()),
        )
    yield gauge(f"{COORDINATOR}_offset_count", "Committed offsets.", rows.offset_counts)


def share_families(sources: Sources, rows: GroupRows) -> Iterator[Family]:
    """Yields share groups, and the active share partitions on this broker."""
    names = sources.broker.replicas
    hosted = [
        (labels({"sharegroup": key.group_id, "topic": topic, "partition": key.partition}), share)
        for key, share in sources.broker.share_groups.at_work()
        if (topic := names.name_of(key.topic_id)) is not None
    ]
    yield gauge("kafka_sharegroup_members", "Members of a share group.", rows.share_members)
    yield gauge(
        "kafka_sharegroup_start_offset",
        "Offset below which the delivery of every record is complete.",
        ((own, share.machine.start_offset) for own, share in hosted),
    )
    yield gauge(
        "kafka_sharegroup_inflight",
        "Records from the start offset to the last acquired record.",
        ((own, share.machine.in_flight_count) for own, share in hosted),
    )
    yield gauge(
        "kafka_sharegroup_lag",
        "Committed records whose delivery is not complete.",
        ((own, share.lag) for own, share in hosted),
    )
