"""All families of a scrape, in their order."""

from __future__ import annotations

from collections.abc import AsyncIterator

from broker.metrics.cluster import (
    UncleanElections,
    controller_families,
    exporter_families,
    partition_states,
    quorum_families,
)
from broker.metrics.exposition import Family
from broker.metrics.groups import group_families, group_rows, share_families
from broker.metrics.node import disk_families, node_families, process_families
from broker.metrics.partitions import partition_families, rows
from broker.metrics.replication import replication_families
from broker.metrics.requests import request_families
from broker.metrics.scrape import Breaks
from broker.metrics.sources import Sources
from broker.metrics.spaces import VolumeSpaces
from broker.metrics.telemetry import telemetry_families
from broker.metrics.topics import topic_families
from coordinator.cluster.changes import by_change


class Collector:
    """Reads the parts of a broker when it is asked, and counts what no part counts."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._unclean = UncleanElections()
        self._spaces = VolumeSpaces(sources.disk)
        sources.broker.loader.subscribe(by_change(self._unclean.note))

    def close(self) -> None:
        """Ends its thread."""
        self._spaces.close()

    async def collect(self, breaks: Breaks) -> AsyncIterator[Family]:
        """Yields all families. What several of them need is gathered first, in turns."""
        sources = self._sources
        partitions = await rows(sources, breaks)
        states = await partition_states(sources, breaks)
        groups = await group_rows(sources, breaks)
        spaces = await self._spaces.measured([log_dir.path for log_dir in sources.broker.logs.online_dirs()])
        for families in (
            node_families(sources),
            request_families(sources),
            topic_families(sources),
            replication_families(sources, partitions),
            controller_families(sources, states, self._unclean),
            quorum_families(sources),
            disk_families(sources, spaces),
            process_families(sources),
            exporter_families(sources),
            partition_families(partitions),
            group_families(groups),
            share_families(sources, groups),
            telemetry_families(sources),
        ):
            for family in families:
                yield family
