"""The partitions of a group with their offsets, readers and lags."""

from __future__ import annotations

from commands.client.cluster_client import ClusterClient
from commands.groups.listing import SHARE, GroupDescription
from commands.groups.offsets import committed_offsets
from commands.printing import Row, error_of
from commands.records.positions import LATEST, READ_COMMITTED, list_offsets
from commands.shares.offsets import share_rows


async def partition_rows(cluster: ClusterClient, group: GroupDescription) -> list[Row]:
    """Returns a row for each partition of a group, with its lag."""
    return await (share_rows(cluster, group.group) if group.type == SHARE else lag_rows(cluster, group))


async def lag_rows(cluster: ClusterClient, group: GroupDescription) -> list[Row]:
    """Returns a row for each partition that has a committed offset or a member that reads it."""
    committed = await committed_offsets(cluster, group.group)
    readers = {place: member for member in group.members for place in member.partitions}
    places = sorted({*committed, *readers})
    metadata = await cluster.metadata({place.topic for place in places})
    existing = {topic.name for topic in metadata.topics if not topic.error_code}
    present = [place for place in places if place.topic in existing]
    ends, errors = await list_offsets(cluster, dict.fromkeys(present, LATEST), READ_COMMITTED)
    rows: list[Row] = []
    for place in places:
        at, end, member = committed.get(place), ends.get(place), readers.get(place)
        rows.append(
            {
                "topic": place.topic,
                "partition": place.partition,
                "committed": at,
                "end": end,
                "lag": None if at is None or end is None else max(end - at, 0),
                "member": member.member if member else None,
                "client": member.client if member else None,
                "host": member.host if member else None,
                **error_of(errors.get(place)),
            }
        )
    return rows
