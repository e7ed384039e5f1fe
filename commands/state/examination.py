"""Reads the facts of a cluster that `odradek doctor` checks. If one part fails, the others are still read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from client.errors import RequestTimedOut, UnsupportedVersion
from commands.client.cluster_client import FAILURES, ClusterClient
from commands.errors import BrokerUnreachable, CommandError, raise_if
from commands.groups.facts import GroupFacts, all_places, group_facts, has_lag
from commands.groups.listing import GroupListing, GroupListings, list_groups
from commands.printing import Row
from commands.state.configs import config_of_topics
from commands.state.quorum import NOBODY, QuorumDescription, describe_quorum
from commands.state.transactions import hanging_rows
from protocol.errors import ErrorCode
from protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from protocol.types import TopicPartition

T = TypeVar("T")

MIN_ISR: Final = "min.insync.replicas"


class DiskFacts(NamedTuple):
    """A log directory of a broker, and the size of its volume; None if the broker doesn't return it."""

    broker: int
    path: str
    is_offline: bool
    total_bytes: int | None
    free_bytes: int | None


class GroupCourse(NamedTuple):
    """A group at two moments."""

    before: GroupFacts
    after: GroupFacts


class ClusterFacts(NamedTuple):
    """The facts of a cluster."""

    brokers: Sequence[DescribeClusterBroker] = ()
    topics: Sequence[MetadataResponseTopic] = ()
    min_isr: Mapping[str, int] = MappingProxyType({})
    disks: Sequence[DiskFacts] = ()
    quorum: QuorumDescription | None = None
    """The quorum; None without a KRaft quorum. Its leader is NOBODY if DescribeQuorum failed."""
    groups: Sequence[GroupCourse] = ()
    watched_ms: int = 0
    """The time between the two snapshots of groups."""
    hanging: Sequence[Row] = ()
    throttled_ms: int = 0
    """The longest throttling of an answer to this client."""
    unreachable: Mapping[int, str] = MappingProxyType({})
    """The brokers of the metadata that can't be reached, each with the reason."""
    unseen: Sequence[tuple[str, str]] = ()
    """The parts that could not be read, each with the reason."""

    @property
    def partitions(self) -> Iterator[tuple[TopicPartition, MetadataResponsePartition]]:
        for topic in self.topics:
            for partition in topic.partitions:
                yield TopicPartition(topic.name or "", partition.partition_index), partition


class Examination:
    """Reads the facts of a cluster."""

    def __init__(self, cluster: ClusterClient, watch_ms: int, hanging_ms: int) -> None:
        """Groups are read twice, `watch_ms` apart. A transaction that is open for `hanging_ms` counts as hanging."""
        self._cluster = cluster
        self._watch_ms = watch_ms
        self._hanging_ms = hanging_ms
        self._unseen: list[tuple[str, str]] = []
        self._unreachable: dict[int, str] = {}

    async def facts(self) -> ClusterFacts:
        """Returns all facts that can be read. Raises CommandError if no broker answers."""
        cluster = self._cluster
        topics = sorted((await cluster.metadata(None)).topics, key=lambda topic: topic.name or "")
        names = [topic.name or "" for topic in topics if not topic.error_code]
        brokers, min_isr, disks, quorum, hanging = await asyncio.gather(
            self._seen("brokers", self._brokers(), []),
            self._seen("topics' configs", self._min_isr(names), {}),
            self._disks(),
            self._seen("the controllers", self._quorum(), None),
            self._seen("transactions", hanging_rows(cluster, None, self._hanging_ms, skip_leaderless=True), []),
        )
        groups = await self._courses(topics)
        return ClusterFacts(
            brokers=brokers,
            topics=topics,
            min_isr=min_isr,
            disks=disks,
            quorum=quorum,
            groups=groups,
            watched_ms=self._watch_ms,
            hanging=hanging,
            throttled_ms=cluster.throttled_ms,
            unreachable=self._unreachable,
            unseen=self._unseen,
        )

    async def _seen(self, part: str, look: Awaitable[T], otherwise: T) -> T:
        """Returns the result of `look`. If it fails, returns `otherwise` and adds the part to `unseen`."""
        try:
            return await look
        except FAILURES as error:
            self._unseen.append((part, str(error)))
            return otherwise

    async def _brokers(self) -> list[DescribeClusterBroker]:
        request = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)
        answer = await self._cluster.any(request, DescribeClusterResponse)
        raise_if("the cluster", answer.error_code, answer.error_message)
        return sorted(answer.brokers, key=lambda broker: broker.broker_id)

    async def _min_isr(self, names: list[str]) -> dict[str, int]:
        values = await config_of_topics(self._cluster, names, MIN_ISR)
        return {name: int(value) for name, value in values.items()}

    async def _disks(self) -> list[DiskFacts]:
        nodes = await self._cluster.nodes()
        parts = await asyncio.gather(
            *(self._seen(f"log directories of broker {node}", self._disks_of(node), []) for node in nodes)
        )
        return [disk for part in parts for disk in part]

    async def _disks_of(self, node: int) -> list[DiskFacts]:
        try:
            answer = await self._cluster.node(node, DescribeLogDirsRequest(topics=[]), DescribeLogDirsResponse)
        except BrokerUnreachable as error:
            self._unreachable[node] = str(error)
            return []
        raise_if(f"broker {node}", answer.error_code)
        return [
            DiskFacts(
                node,
                entry.log_dir,
                bool(entry.error_code),
                entry.total_bytes if entry.total_bytes >= 0 else None,
                entry.usable_bytes if entry.usable_bytes >= 0 else None,
            )
            for entry in answer.results
        ]

    async def _quorum(self) -> QuorumDescription | None:
        try:
            return await describe_quorum(self._cluster)
        except UnsupportedVersion:
            return None  # a cluster with ZooKeeper
        except (RequestTimedOut, CommandError) as error:
            if any(word in str(error) for word in ("AUTHORIZATION", "SECURITY")):
                raise
            self._unseen.append(("the controllers", str(error)))
            return QuorumDescription(NOBODY, -1, -1, ())

    async def _courses(self, topics: Iterable[MetadataResponseTopic]) -> list[GroupCourse]:
        existing = all_places(topics)
        before = await self._groups(existing)
        # A broker that doesn't answer for a share partition costs seconds, and there is nothing to compare.
        unknown = {facts.group.group for facts in before if facts.lag is None}
        await self._cluster.pause(self._watch_ms)
        after = {facts.group.group: facts for facts in await self._groups(existing, unknown)}
        return [GroupCourse(facts, after[facts.group.group]) for facts in before if facts.group.group in after]

    async def _groups(self, existing: set[TopicPartition], left_out: Collection[str] = frozenset()) -> list[GroupFacts]:
        listings = await self._seen("groups", list_groups(self._cluster), GroupListings([], {}))
        parts = {part for part, _ in self._unseen}
        self._unseen += [
            (part, error)
            for node, error in listings.errors.items()
            if (part := f"groups of broker {node}") not in parts
        ]
        looks = [
            self._group(listing, existing)
            for listing in listings.groups
            if has_lag(listing) and listing.group not in left_out
        ]
        return [facts for facts in await asyncio.gather(*looks) if facts is not None]

    async def _group(self, listing: GroupListing, existing: set[TopicPartition]) -> GroupFacts | None:
        try:
            return await group_facts(self._cluster, listing, existing)
        except FAILURES as error:
            seen_before = any(part == f"group {listing.group}" for part, _ in self._unseen)
            if not seen_before and ErrorCode.GROUP_ID_NOT_FOUND.name not in str(error):  # deleted since it was listed
                self._unseen.append((f"group {listing.group}", str(error)))
            return None
