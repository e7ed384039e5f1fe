"""The registration of this broker in /brokers/ids, which lasts as long as its session."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from coordinator.cluster.brokers.info import Endpoint
from programs.zookeeper import znodes
from programs.zookeeper.client import Conflict, Znode, ZookeeperClient
from programs.zookeeper.cluster_id import claim
from programs.zookeeper.operations import Create


class Standing(Enum):
    """The state of a broker's id in /brokers/ids."""

    FREE = auto()
    OURS = auto()
    STALE = auto()
    """Registered by an earlier session of this broker that has not expired."""
    TAKEN = auto()


class Registration:
    """This broker's znode in the broker registry."""

    def __init__(self, broker_id: int, endpoints: Sequence[Endpoint], rack: str | None, version: int) -> None:
        self.path = znodes.broker_path(broker_id)
        self._endpoints = endpoints
        self._rack = rack
        self._version = version

    def look(self, client: ZookeeperClient, *, watch: bool = True) -> Standing:
        """Returns the state of the id."""
        return self._standing(client, client.get(self.path, watch=watch))

    def _standing(self, client: ZookeeperClient, node: Znode | None) -> Standing:
        if node is None:
            return Standing.FREE
        if node.owner and node.owner == client.session_id:
            return Standing.OURS
        return Standing.STALE if znodes.is_at(node.data, self._endpoints) else Standing.TAKEN

    def keep(self, client: ZookeeperClient, cluster_id: str, now_ms: int) -> tuple[Standing, bool]:
        """Registers the broker, unless this session already has. Returns the state of the id, and True if it was
        registered now. Raises KafkaError if the ensemble belongs to another cluster, Conflict if the path is
        missing."""
        standing = self.look(client)
        if standing is not Standing.FREE:
            return standing, False
        claim(client, cluster_id)
        data = znodes.broker_json(self._endpoints, self._rack, self._version, now_ms)
        try:
            client.apply([Create(self.path, data, ephemeral=True)])
        except Conflict:
            standing = self.look(client)
            if standing is Standing.FREE:
                raise
            return standing, False
        return self.look(client), True
