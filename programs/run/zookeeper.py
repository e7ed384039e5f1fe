"""Builds this broker's ZooKeeper façade; imported only if zookeeper.connect is set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.dispatch.broker import Broker
from coordinator.cluster.brokers.info import Endpoint
from programs.zookeeper import znodes
from programs.zookeeper.active import Active
from programs.zookeeper.carrying_out import Hands
from programs.zookeeper.client import ZookeeperClient, ZookeeperSettings
from programs.zookeeper.cluster_id import claim
from programs.zookeeper.election import ControllerElection
from programs.zookeeper.facade import Facade, FollowedControllers
from programs.zookeeper.offsets import ZookeeperOffsets
from programs.zookeeper.registration import Registration, Standing
from programs.zookeeper.session import ZookeeperSession
from programs.zookeeper.znodes import BadZnode
from protocol.errors import ErrorCode, KafkaError


class Zookeeper:
    """A ZooKeeper session from the broker's start to its stop."""

    def __init__(self, config: BrokerConfig, endpoints: Sequence[Endpoint], clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._registration = Registration(
            config.node_id, endpoints, config.broker_rack, config.odradek_zookeeper_broker_version
        )
        self._facade: Facade | None = None
        self._session = ZookeeperSession(ZookeeperSettings.of(config), self._znode_changed)

    def _znode_changed(self, path: str | None) -> None:
        if self._facade is not None:
            self._facade.znode_changed(path)

    async def open(self) -> str | None:
        """Connects. Returns the cluster id in ZooKeeper, None if it has none yet. Raises OSError, and KafkaError if
        this broker can't join that cluster."""
        await self._session.open()
        try:
            return await self._session.call(self._look_around)
        except BaseException:
            await self._session.close()
            raise

    def _look_around(self, client: ZookeeperClient) -> str | None:
        connect, node_id = self._config.zookeeper_connect, self._config.node_id
        if self._registration.look(client, watch=False) is Standing.TAKEN:
            message = (
                f"zookeeper.connect {connect}: {self._registration.path} belongs to another broker, at other "
                f"addresses; change this broker's node.id {node_id}, or wait until the other broker is gone"
            )
            raise KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, message)
        node = client.get(znodes.CLUSTER_ID)
        if node is None:
            self._refuse_foreign_topics(client)
            return None
        try:
            return znodes.cluster_id_of(node.data)
        except BadZnode as error:
            message = f"zookeeper.connect {connect}: {znodes.CLUSTER_ID} {error}"
            raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, message) from error

    def _refuse_foreign_topics(self, client: ZookeeperClient) -> None:
        """Raises KafkaError if a cluster without an id, older than 0.10.1, has topics: they would be taken for outdated
        topics of this cluster, and removed."""
        topics = client.children(znodes.TOPICS)
        led = client.children_of([znodes.partitions_path(topic) for topic in topics])
        if foreign := [topic for topic in topics if led[znodes.partitions_path(topic)]]:
            message = (
                f"zookeeper.connect {self._config.zookeeper_connect}: a cluster without an id has topics there, "
                f"{', '.join(sorted(foreign)[:3])}; choose another path, such as {self._config.zookeeper_connect}/new"
            )
            raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, message)

    def begin(self, broker: Broker) -> None:
        """Registers the broker, and keeps the registry up to date from now on."""
        broker.zookeeper_offsets = ZookeeperOffsets(self._session, broker.image, self._config.offset_metadata_max_bytes)
        hands = Hands(broker.image, broker.controller, broker.topics)
        election = ControllerElection(self._config.node_id)
        active = Active(broker.image, hands)
        as_of_ms = broker.image_as_of_ms
        controllers = None if as_of_ms is None else FollowedControllers(lambda: broker.node.is_in_touch, as_of_ms)
        self._facade = Facade(
            self._session, self._registration, election, active, self._clock, broker.image.cluster_id, controllers
        )
        broker.loader.subscribe(self._facade.changed)
        self._facade.begin()

    async def claim(self, cluster_id: str) -> None:
        """Writes the cluster id, if ZooKeeper has none. Raises KafkaError if ZooKeeper has another cluster's id, and
        OSError."""
        await self._session.call(partial(claim, cluster_id=cluster_id))

    async def close(self) -> None:
        """Closes the session, which removes the broker's ephemeral znodes at once."""
        if self._facade is not None:
            await self._facade.end()
        await self._session.close()
