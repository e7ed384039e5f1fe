"""Snapshots of groups with their lags, for commands that show all groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
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
    errors: Mapping[TopicPartition, str] = MappingProxyType({})
    """The partitions whose lag is unknown, with the reasons; "" if the cluster gave none."""

    @property
    def known_lag(self) -> int:
        """The lag of the partitions whose lag is known."""
        return sum(self.lags.values())

    @property
    def lag(self) -> int | None:
        """The lag of all partitions; None if a partition's lag is unknown."""
        return None if self.errors else self.known_lag


def all_places(topics: Iterable[MetadataResponseTopic]) -> set[TopicPartition]:
    """Returns the partitions of topics."""
    return {
        TopicPartition(topic.name or "", partition.partition_index)
        for topic in topics
        for partition in topic.partitions
    }


def has_lag(listing: GroupListing) -> bool:
    """True if a client can read the group's offsets: a group of consumers, a streams group or a share group."""
    return listing.type in (SHARE, STREAMS) or listing.protocol in ("consumer", "")


async def group_facts(cluster: ClusterClient, listing: GroupListing, existing: set[TopicPartition]) -> GroupFacts:
    """Returns a snapshot of a group, with the lags of existing partitions. Raises CommandError."""
    description = await describe_group(cluster, listing.group, listing.type)
    if listing.type == SHARE:
        rows = {
            TopicPartition(str(row["topic"]), int(str(row["partition"]))): row
            for row in await share_rows(cluster, listing.group)
        }
        lags = {place: lag for place, row in rows.items() if isinstance(lag := row["lag"], int)}
        unknown = {place: str(row.get("error") or "") for place, row in rows.items() if place not in lags}
        return GroupFacts(description, {}, lags, unknown)
    committed = await committed_offsets(cluster, listing.group)
    places = [place for place in committed if place in existing]
    ends, errors = await list_offsets(cluster, dict.fromkeys(places, LATEST), READ_COMMITTED)
    lags = {place: max(end - committed[place], 0) for place, end in ends.items()}
    return GroupFacts(description, committed, lags, errors)
