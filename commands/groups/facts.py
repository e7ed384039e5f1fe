"""Snapshots of groups with their lags, for commands that show all groups."""

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
    """The committed offsets; empty for a share group, which has none."""
    lags: dict[TopicPartition, int]

    @property
    def lag(self) -> int:
        return sum(self.lags.values())


def readable_places(topics: Iterable[MetadataResponseTopic]) -> set[TopicPartition]:
    """Returns the partitions of topics whose partitions all have a leader."""
    return {
        TopicPartition(topic.name or "", partition.partition_index)
        for topic in topics
        for partition in topic.partitions
        if all(peer.leader_id >= 0 for peer in topic.partitions)
    }


def has_lag(listing: GroupListing) -> bool:
    """True if a client can read the group's offsets: a group of consumers, a streams group or a share group."""
    return listing.type in (SHARE, STREAMS) or listing.protocol in ("consumer", "")


async def group_facts(cluster: ClusterClient, listing: GroupListing, readable: set[TopicPartition]) -> GroupFacts:
    """Returns a snapshot of a group; partitions that can't be read have no lag. Raises CommandError."""
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
