"""The environment of a fetcher: its broker, the cluster, the clock and the disks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from broker.clock import Clock
from broker.config.live import LiveConfig
from broker.disks.work import DiskWork
from broker.metadata.node import Node
from broker.replica.partition import Partition
from broker.replica.throttle import ReplicationThrottle, names
from client.address import Address
from coordinator.cluster.image import Image
from coordinator.replication.fetcher import FetcherOptions, FollowerIdentity
from coordinator.replication.states import FollowedPartition

R = TypeVar("R")


class LeaderConnection(Protocol):
    """A connection to a leader; `client.pool.Peer` is one."""

    @property
    def address(self) -> Address:
        """The address of the leader."""
        ...

    async def send(self, request: object, response: type[R], *, timeout_ms: int, max_dials: int | None = None) -> R:
        """Returns the answer to a request. Raises PeerError, ProtocolError."""
        ...

    def abort(self) -> None:
        """Closes at once, for good."""
        ...


Connect: TypeAlias = Callable[[Address, str], LeaderConnection]
"""Makes a connection from an address and a client id."""


class ReplicationEnvironment(NamedTuple):
    """This broker, the cluster, the clock and the disks."""

    image: Image
    node: Node
    config: LiveConfig
    clock: Clock
    disk_work: DiskWork
    connect: Connect
    """Opens the connection of a fetcher. Fetchers don't share connections, because a waiting fetch delays the requests
    after it.
    """
    throttle: ReplicationThrottle
    """The throttle of this broker's reads from leaders."""

    @property
    def identity(self) -> FollowerIdentity:
        """This broker's identity for leaders."""
        return FollowerIdentity(self.node.node_id, self.node.broker_epoch)

    @property
    def timeout_ms(self) -> int:
        """The timeout of a leader's answer."""
        return max(self.config.effective.replica_socket_timeout_ms, 1)

    def is_throttled(self, partition: Partition) -> bool:
        """True if follower.replication.throttled.replicas has this broker's replica."""
        replicas = partition.config.follower_replication_throttled_replicas
        return bool(replicas) and names(replicas, partition.name.partition, self.node.node_id)

    def must_wait(self, followed: FollowedPartition[Partition]) -> bool:
        """True if this replica is throttled and the throttled replicas exceed their limit."""
        return self.throttle.is_on and self.is_throttled(followed.replica) and self.throttle.is_exceeded

    def note_throttled(self, partition: Partition, size_bytes: int) -> None:
        """Counts the bytes of a replica if it is throttled."""
        if self.is_throttled(partition):
            self.throttle.record(size_bytes)

    def options(self) -> FetcherOptions:
        """Returns the current options."""
        config = self.config.effective
        return FetcherOptions(
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            partition_max_bytes=config.replica_fetch_max_bytes,
            backoff_ms=config.replica_fetch_backoff_ms,
        )

    def address(self, leader_id: int) -> Address | None:
        """Returns the address of a broker for other brokers; None if the metadata doesn't have it."""
        broker = self.image.brokers.get(leader_id)
        endpoint = None if broker is None else broker.endpoint(self.config.effective.inter_broker_listener)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)
