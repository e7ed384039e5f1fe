"""A cluster that pages show live: reads a sample every few seconds while a page is open, and keeps the last minutes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from client.clock import SystemClock, done_by
from client.pool import Peers
from commands.client.cluster_client import FAILURES, ClusterClient, draw
from commands.client.connecting import Destination
from commands.errors import CommandError
from commands.groups.facts import GroupFacts
from commands.printing import Row
from commands.state.examination import ClusterFacts, Examination
from commands.state.findings import Diagnosis, DoctorLimits, findings
from commands.state.live import ClusterSample, View, view
from commands.state.sampling import sample
from protocol.errors import ProtocolError
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

SAMPLE_MS: Final = 3000
"""Pause between samples. It is longer if a sample takes long: a sample may take a tenth of the time."""

SLOWDOWN: Final = 9

EXAMINE_MS: Final = 30_000
"""Time after which the health of the cluster, and the sizes of topics, are read again."""

WATCHED_MS: Final = 2000
"""Time between the two looks at groups of an examination."""

HANGING_MS: Final = 15 * 60_000

IDLE_MS: Final = 300_000
"""Time without an open page after which a cluster is no longer read."""

MAX_SAMPLES: Final = 200
MAX_LAGS: Final = 200_000
"""Limits of the history: samples, and lags of partitions in all of them."""

UNREADABLE: Final = (*FAILURES, ProtocolError)


class LagPoint(NamedTuple):
    """The lags of groups at one moment."""

    now_ms: int
    groups: Mapping[str, GroupFacts]

    @property
    def size(self) -> int:
        return sum(len(facts.lags) for facts in self.groups.values())


class WatchedCluster:
    """A cluster, its last sample, and the history of rates and lags."""

    def __init__(self, where: Destination) -> None:
        self.clock = SystemClock()
        self.client = ClusterClient(Peers(where.connection, self.clock, draw, where.bootstrap), where.timeout_ms)
        self.sample: ClusterSample | None = None
        self.shown: View | None = None
        """The tables of the last two samples, with rates; None before the first sample."""
        self.facts: ClusterFacts | None = None
        self.findings: Sequence[Diagnosis] = ()
        self.sizes: Mapping[str, int] = MappingProxyType({})
        """The bytes of each topic on all brokers."""
        self.rates: deque[tuple[int, float]] = deque(maxlen=MAX_SAMPLES)
        """The records per second that were written to all topics, with the time of each sample."""
        self.lags: deque[LagPoint] = deque(maxlen=MAX_SAMPLES)
        self.fault = ""
        """The error of the last sample; empty if it succeeded."""
        self._looked_ms = self.clock.monotonic_ms()
        self._tasks: set[asyncio.Task[None]] = set()
        self._renewed = asyncio.Event()
        self._examined = asyncio.Event()

    def look(self) -> None:
        """Starts reading the cluster, or goes on, because a page is shown."""
        self._looked_ms = self.clock.monotonic_ms()
        if not self._tasks:
            for loop in (self._sample, self._examine):
                task = asyncio.ensure_future(self._repeat(loop))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def ready(self, within_ms: int) -> bool:
        """Waits for the first sample. True if there is one."""
        if self.sample is None and not self.fault:
            await self.renewed(within_ms)
        return self.sample is not None

    async def renewed(self, within_ms: int) -> bool:
        """Waits for the next sample. False if there is none within the time."""
        return await self._happened(self._renewed, within_ms)

    async def examined(self, within_ms: int) -> bool:
        """Waits for the first examination. False if there is none within the time."""
        return self.facts is not None or await self._happened(self._examined, within_ms)

    async def refresh(self) -> None:
        """Reads the cluster at once, after a change of it. A failure is shown by the next page."""
        await self._sample()

    async def close(self) -> None:
        """Stops reading, and closes all connections."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.client.__aexit__()

    async def _happened(self, event: asyncio.Event, within_ms: int) -> bool:
        waiting = asyncio.ensure_future(event.wait())
        try:
            return await done_by(self.clock, self.clock.monotonic_ms() + within_ms, waiting)
        finally:
            waiting.cancel()

    async def _repeat(self, read: Callable[[], Coroutine[Any, Any, int]]) -> None:
        while self.clock.monotonic_ms() - self._looked_ms < IDLE_MS:
            started_ms = self.clock.monotonic_ms()
            pause_ms = await read()
            took_ms = self.clock.monotonic_ms() - started_ms
            await self.client.pause(max(pause_ms, took_ms * SLOWDOWN))

    async def _sample(self) -> int:
        """Reads a sample. Returns the pause before the next one."""
        try:
            now = await sample(self.client, internal=True)
        except UNREADABLE as error:
            self.fault = reason_of(error)
        else:
            self._add(now)
            self.fault = ""
        self._renewed.set()
        self._renewed.clear()
        return SAMPLE_MS

    def _add(self, now: ClusterSample) -> None:
        self.shown = view(self.sample, now)
        if self.sample is not None:
            rates = [rate for row in self.shown.topics if isinstance(rate := row["records_per_s"], float)]
            self.rates.append((now.now_ms, round(sum(rates), 1)))
        self.sample = now
        self.lags.append(LagPoint(now.now_ms, {facts.group.group: facts for facts in now.groups}))
        while len(self.lags) > 1 and sum(point.size for point in self.lags) > MAX_LAGS:
            self.lags.popleft()

    async def _examine(self) -> int:
        """Reads the health of the cluster and the sizes of topics. Returns the pause before the next time."""
        try:
            self.sizes = await topic_sizes(self.client)
            self.facts = await Examination(self.client, WATCHED_MS, HANGING_MS).facts()
            self.findings = findings(self.facts, DoctorLimits())
        except UNREADABLE as error:
            self.fault = reason_of(error)
        self._examined.set()
        self._examined.clear()
        return EXAMINE_MS


def reason_of(error: Exception) -> str:
    """Returns why a request failed, in words for the user."""
    return error.message if isinstance(error, CommandError | ProtocolError) else str(error)


async def topic_sizes(cluster: ClusterClient) -> dict[str, int]:
    """Returns the bytes of each topic, all replicas of brokers that answer together."""
    sizes: dict[str, int] = {}
    for answer in (await cluster.every(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)).values():
        if isinstance(answer, CommandError):
            continue
        for topic in (topic for entry in answer.results for topic in entry.topics):
            sizes[topic.name] = sizes.get(topic.name, 0) + sum(part.partition_size for part in topic.partitions)
    return sizes


def topic_rows(cluster: WatchedCluster) -> list[Row]:
    """Returns a row for each topic of the last sample: its partitions, records, rate, bytes, and the lag of its slowest
    group."""
    now, shown = cluster.sample, cluster.shown
    if now is None or shown is None:
        return []
    live = {row["topic"]: row for row in shown.topics}
    slowest = slowest_groups(now.groups)
    rows: list[Row] = []
    for topic in now.topics:
        name = topic.name or ""
        row = live.get(name, {})
        group, lag = slowest.get(name, (None, None))
        rows.append(
            {
                "topic": name,
                "internal": topic.is_internal,
                "partitions": len(topic.partitions),
                "replicas": max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
                "behind": sum(len(part.isr_nodes) < len(part.replica_nodes) for part in topic.partitions),
                "offline": sum(partition.leader_id < 0 for partition in topic.partitions),
                "records": row.get("records"),
                "rate": row.get("records_per_s"),
                "bytes": cluster.sizes.get(name),
                "group": group,
                "lag": lag,
                "error": row.get("error", ""),
            }
        )
    return rows


def slowest_groups(groups: Sequence[GroupFacts]) -> dict[str, tuple[str, int]]:
    """Returns, for each topic, the group with the largest lag in it."""
    slowest: dict[str, tuple[str, int]] = {}
    for facts in groups:
        lags: dict[str, int] = {}
        for place, lag in facts.lags.items():
            lags[place.topic] = lags.get(place.topic, 0) + lag
        for topic, lag in lags.items():
            if topic not in slowest or lag > slowest[topic][1]:
                slowest[topic] = (facts.group.group, lag)
    return slowest
