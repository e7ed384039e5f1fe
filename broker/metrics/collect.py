"""All families of a scrape, in order: of a broker, of a controller, and of a process that is starting."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Protocol

from broker.metadata.node import NodeState
from broker.metrics.cluster import UncleanElections, controller_families, exporter_families, partition_states
from broker.metrics.ends import EndsElsewhere
from broker.metrics.exposition import Family
from broker.metrics.fetchers import followed_rows, follower_families
from broker.metrics.groups import census_families, group_families, group_rows, share_families
from broker.metrics.loop_watch import LoopWatch
from broker.metrics.machine import UNKNOWN, MachineState, MachineWatch
from broker.metrics.node import disk_families, state_families
from broker.metrics.partitions import partition_families, rows
from broker.metrics.process import connection_families, loop_families, process_families
from broker.metrics.quorum import QuorumWatch, metadata_families, quorum_families
from broker.metrics.replication import replication_families
from broker.metrics.requests import request_families, request_rows
from broker.metrics.scrape import Breaks
from broker.metrics.sources import ProcessSources, Sources
from broker.metrics.telemetry import telemetry_families
from broker.metrics.topics import topic_families
from coordinator.cluster.changes import by_change
from storage.disk import Disk


class Collector(Protocol):
    """Reads the metrics of a process for a scrape."""

    def collect(self, breaks: Breaks) -> AsyncIterator[Family]:
        """Yields all families. Reads the data that several of them need first, in turns."""
        ...

    def close(self) -> None:
        """Ends its threads and tasks."""
        ...


class StartingCollector:
    """The collector of a process that doesn't serve yet, such as a broker that takes long to recover its logs."""

    def __init__(self, loop: LoopWatch, disk: Disk, started_s: float) -> None:
        self._loop = loop
        self._disk = disk
        self._started_s = started_s
        self.state: NodeState | None = None
        """The broker's state; None for a controller."""

    def close(self) -> None:
        """Does nothing."""

    async def collect(self, breaks: Breaks) -> AsyncIterator[Family]:
        state = () if self.state is None else state_families(self.state)
        machine = process_families(self._disk, self._started_s, UNKNOWN)
        for family in of_all(state, loop_families(self._loop), machine):
            yield family


class ControllerCollector:
    """The collector of a controller without a broker, and of the families that every process has."""

    def __init__(self, sources: ProcessSources) -> None:
        self._sources = sources
        self._unclean = UncleanElections()
        self._quorum = QuorumWatch(sources.cluster.metadata_log, sources.host.clock)
        self._machine = MachineWatch(sources.disk)
        sources.cluster.loader.subscribe(by_change(self._unclean.note))

    def close(self) -> None:
        self._machine.close()

    async def look(self, directories: list[str]) -> MachineState:
        """Returns data about the machine, with the free space of these directories' volumes."""
        return await self._machine.look(directories)

    async def collect(self, breaks: Breaks) -> AsyncIterator[Family]:
        async for family in self.collect_beside(await breaks.during(self.look([])), breaks):
            yield family

    async def collect_beside(self, machine: MachineState, breaks: Breaks) -> AsyncIterator[Family]:
        """Yields the families of every process."""
        sources = self._sources
        states = await partition_states(sources, breaks)
        requests = await request_rows(sources, breaks)
        for family in of_all(
            loop_families(sources.loop),
            connection_families(sources),
            request_families(requests),
            controller_families(sources, states, self._unclean),
            quorum_families(sources, self._quorum),
            process_families(sources.disk, sources.started_s, machine),
        ):
            yield family


class BrokerCollector:
    """The collector of a broker, which may be the controller as well."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._process = ControllerCollector(sources.process)
        self._elsewhere = EndsElsewhere(sources.broker)

    def close(self) -> None:
        self._process.close()
        self._elsewhere.close()

    async def collect(self, breaks: Breaks) -> AsyncIterator[Family]:
        sources = self._sources
        directories = [log_dir.path for log_dir in sources.broker.logs.online_dirs()]
        machine = await breaks.during(self._process.look(directories))
        async for family in self._process.collect_beside(machine, breaks):
            yield family
        partitions = await rows(sources, breaks)
        followed = await followed_rows(sources, breaks)
        groups = await group_rows(sources, self._elsewhere, breaks)
        for family in of_all(
            state_families(sources.broker.node.state),
            metadata_families(sources.process),
            topic_families(sources),
            replication_families(sources, partitions),
            follower_families(followed),
            disk_families(sources, machine.spaces),
            exporter_families(sources),
            partition_families(partitions),
            group_families(groups),
            census_families(groups),
            share_families(sources, groups),
            telemetry_families(sources),
        ):
            yield family


def of_all(*parts: Iterable[Family]) -> Iterator[Family]:
    """Yields the families of all parts."""
    for part in parts:
        yield from part
