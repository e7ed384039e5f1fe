"""Broker: the parts of a broker that handlers use, put together by server.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

from broker.clock import Clock
from broker.config.live import LiveConfig
from broker.disks.work import DiskWork
from broker.dispatch.api import Apis
from broker.dispatch.host import Forwarding, Host
from broker.fetch.fetches import Fetches
from broker.fetch.sessions import FetchSessions
from broker.metadata.node import Node
from broker.metadata.opening import Metadata
from broker.replica.moves import Moves
from broker.replica.replicas import Replicas
from broker.replica.throttle import moves_throttle
from broker.replica.topics import DEFAULT_COUNT, OwnTopic
from broker.request.context import Context
from broker.request.record_work import RecordWork
from broker.request.timeouts import Timeouts
from broker.request.turns import Turns
from broker.shards.environment import Environment
from broker.shards.groups import GroupCoordinator
from broker.shards.hosting import KeyCoordinator
from broker.shards.markers import MarkerWriter
from broker.shards.shares import ShareCoordinator
from broker.shards.transactions import TransactionCoordinator
from broker.share.groups import ShareGroups
from coordinator.cluster.controller import Asker
from coordinator.cluster.producer_ids import ProducerIdPool
from protocol.errors import ErrorCode, error_code
from protocol.lazy import lazy
from storage.logs import Logs

if TYPE_CHECKING:
    from broker.metadata.quorum_node import QuorumNode
    from broker.security import outbound
    from broker.shards import anywhere, connections
    from broker.shards.anywhere import Anywhere
    from broker.telemetry import telemetry
    from broker.telemetry.telemetry import Telemetry
    from protocol.messages.create_topics import CreatableTopic
    from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
    from protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
else:  # a broker that is alone, without telemetry, needs none of it
    anywhere = lazy("broker.shards.anywhere")
    connections = lazy("broker.shards.connections")
    outbound = lazy("broker.security.outbound")
    telemetry = lazy("broker.telemetry.telemetry")

GROUP, TRANSACTION, SHARE = range(3)
"""The types of a key of FindCoordinator."""


class OldOffsets(Protocol):
    """The offsets of version 0, which ZooKeeper has (programs/zookeeper/offsets.py)."""

    async def commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        """Writes offsets."""
        ...

    async def fetch(self, group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
        """Returns a group's offsets."""
        ...


class Broker(Host):
    """One running broker, as its handlers see it."""

    def __init__(
        self,
        live_config: LiveConfig,
        clock: Clock,
        metadata: Metadata,
        logs: Logs,
        apis: Apis,
        lead_quorum: Callable[[], QuorumNode] | None = None,
        forwarding: Forwarding | None = None,
    ) -> None:
        self.forwarding = forwarding
        super().__init__(live_config, clock, metadata.cluster, apis, lead_quorum)
        self.node: Node = metadata.node
        self.broker_id = self.node.node_id
        self.logs = logs
        self.replicas = Replicas(self.image)
        self.disk_work = DiskWork(logs, clock)
        self.moves = Moves(logs, self.node, clock, self.disk_work, moves_throttle(clock, live_config))
        self.producer_ids = ProducerIdPool(self.node.allocate_producer_ids)
        environment = Environment(clock, live_config, self.loader, self.replicas, self.topics, lambda: self.anywhere)
        self.groups = GroupCoordinator(environment)
        self.marker_writer = MarkerWriter(environment, self.groups)
        self.transactions = TransactionCoordinator(environment, self.producer_ids, self.marker_writer)
        self.shares = ShareCoordinator(environment)
        self.coordinators: dict[int, KeyCoordinator] = {
            GROUP: self.groups,
            TRANSACTION: self.transactions,
            SHARE: self.shares,
        }
        """The coordinators, by the key type of FindCoordinator."""
        self.share_groups = ShareGroups(environment, self.groups, self.shares, self.disk_work.workers)
        self.zookeeper_offsets: OldOffsets | None = None
        """The offsets of requests of version 0, with zookeeper.connect."""
        self.record_work = RecordWork()
        slots = self.config.max_incremental_fetch_session_cache_slots
        self.timeouts = Timeouts(clock)
        """Expires parked requests."""
        sessions = FetchSessions(slots, lambda: int.from_bytes(os.urandom(4)) >> 1)
        self.fetches = Fetches(live_config, self.replicas, self.image, sessions, clock, self.disk_work, self.timeouts)

    @cached_property
    def telemetry(self) -> Telemetry:
        """The telemetry of clients; made at its first use."""
        used = telemetry.Telemetry(self.share_groups.environment, os.urandom)
        for receiver, queue in used.queues.items():
            self.limited_lines[f"pushes to the {receiver} dropped without a line"] = queue.lines
        return used

    @cached_property
    def anywhere(self) -> Anywhere:
        """The client for partitions that other brokers lead; a broker that is alone makes none."""
        connect = partial(connections.Connections, outbound.broker_settings, self.loader, self.live_config, self.clock)
        return anywhere.Anywhere(connect)

    @property
    def has_anywhere(self) -> bool:
        """True once a request was sent to another broker's partitions."""
        return "anywhere" in vars(self)

    @property
    def has_telemetry(self) -> bool:
        """True once a client, or a scrape, has used it."""
        return "telemetry" in vars(self)

    async def auto_create_topics(self, names: Sequence[str], context: Context, turns: Turns) -> Mapping[str, ErrorCode]:
        """Creates topics for the client of a request, within its quota, and returns the errors of topics that could not
        be created."""
        internal = {coordinator.topic.name: coordinator.topic for coordinator in self.coordinators.values()}

        def creatable(name: str) -> CreatableTopic:
            topic = internal[name].creatable(self.config) if name in internal else self._auto_created(name)
            return topic.requested()

        topics = await turns.map(creatable, names)
        quota = self.mutation_quotas.find(context, is_strict=True)
        response = await self.topics.create_own(topics, Asker(context.requester, quota=quota))
        return {topic.name: error_code(topic.error_code) for topic in response.topics if topic.error_code}

    def _auto_created(self, name: str) -> OwnTopic:
        """Returns a topic with the partitions and replicas that this broker's options set. The controller's defaults
        apply to a number that is not set here (DefaultAutoTopicCreationManager of 4.3)."""
        config, is_set = self.config, self.config.explicit
        return OwnTopic(
            name,
            config.num_partitions if "num.partitions" in is_set else DEFAULT_COUNT,
            config.default_replication_factor if "default.replication.factor" in is_set else DEFAULT_COUNT,
        )
