"""Reads the samples of a cluster that `odradek top` and the console show."""

from __future__ import annotations

import asyncio
from typing import Final

from commands.client.cluster_client import ClusterClient, outcome
from commands.errors import CommandError
from commands.groups.facts import all_places, group_facts, has_lag
from commands.groups.listing import list_groups
from commands.records.positions import bounds
from commands.state.live import ClusterSample
from protocol.errors import ErrorCode

UNSHOWN: Final = (ErrorCode.GROUP_ID_NOT_FOUND.name, ErrorCode.GROUP_AUTHORIZATION_FAILED.name)
"""Errors of groups that are not shown: deleted since they were listed, or not authorized."""


async def sample(cluster: ClusterClient, *, internal: bool) -> ClusterSample:
    """Returns a sample of a cluster."""
    metadata = await cluster.metadata(None)
    topics = [topic for topic in metadata.topics if internal or not topic.is_internal]
    limits, listings = await asyncio.gather(bounds(cluster, all_places(topics)), list_groups(cluster))
    shown = [listing for listing in listings.groups if has_lag(listing)]
    everywhere = all_places(metadata.topics)
    groups = await asyncio.gather(*(outcome(group_facts(cluster, listing, everywhere)) for listing in shown))
    return ClusterSample(
        cluster.clock.now_ms(),
        metadata.cluster_id or "",
        len(metadata.brokers),
        limits.ends,
        limits.starts,
        [facts for facts in groups if not isinstance(facts, CommandError)],
        limits.errors,
        listings.errors,
        {
            listing.group: facts.message
            for listing, facts in zip(shown, groups, strict=True)
            if isinstance(facts, CommandError) and not any(reason in facts.message for reason in UNSHOWN)
        },
        metadata.topics,
    )
