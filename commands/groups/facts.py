"""Groups at one moment, with what each has left to read: for who looks at all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from commands.client.cluster_client import ClusterClient
from commands.groups.listing import SHARE, STREAMS, GroupDescription, GroupListing, describe_group
from commands.groups.offsets import committed_offsets
from commands.records.positions import LATEST, READ_COMMITTED, Offsets, list_offsets
from commands.shares.offsets import share_rows
from protocol.messages.metadata import MetadataResponseTopic
from protocol.types import TopicPartition


class GroupFacts(NamedTuple):
    """A group at one moment."""

    group: GroupDescription
    committed: Offsets
    """Empty of a share group, which has no such offsets."""
    lags: dict[TopicPartition, int]

    @property
    def lag(self) -> int:
        return sum(self.lags.values())


def readable_places(topics: Iterable[MetadataResponseTopic]) -> set[TopicPartition]:
    """Returns the partitions of topics that can be read whole."""
    return {
        TopicPartition(topic.name or "", one.partition_index)
        for topic in topics
        for one in topic.partitions
        if all(partition.leader_id >= 0 for partition in topic.partitions)
    }


def has_lag(listing: GroupListing) -> bool:
    """True for a group of consumers, of whatever type, whose offsets a client can see."""
    return listing.type == SHARE or (listing.type != STREAMS and listing.protocol in ("consumer", ""))


async def group_facts(cluster: ClusterClient, listing: GroupListing, readable: set[TopicPartition]) -> GroupFacts:
    """Returns a group as it is now; partitions that cannot be read have no lag. Raises CommandError."""
    description = await describe_group(cluster, listing.group, listing.type)
    if listing.type == SHARE:
        rows = await share_rows(cluster, listing.group)
        lags = {
            TopicPartition(str(row["topic"]), int(str(row["partition"]))): lag
            for row in rows
            if isinstance(lag := row["lag"], int)
        }
        return GroupFacts(description, {}, lags)
    committed = await committed_offsets(cluster, listing.group)
    places = [place for place in committed if place in readable]
    ends = await list_offsets(cluster, dict.fromkeys(places, LATEST), READ_COMMITTED)
    return GroupFacts(description, committed, {place: max(ends[place] - committed[place], 0) for place in places})
