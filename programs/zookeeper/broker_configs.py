"""The dynamic configs of brokers in /config/brokers, which the active broker publishes. Runs in the session's thread.

A tool reads all configs of a broker, and writes all of them again with its changes: a config that is missing in the
znode is removed. Passwords are neither written to nor read from these znodes, because every client may read them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from broker.config.layers import is_sensitive
from broker.logging import get_logger
from coordinator.cluster.configs.resource import DEFAULT_BROKER, ConfigResource, ResourceType
from coordinator.cluster.image import Image
from programs.zookeeper import znodes
from programs.zookeeper.client import ZookeeperClient, ZookeeperRefused
from programs.zookeeper.election import Term
from programs.zookeeper.operations import Create, Write
from programs.zookeeper.plan import Known, is_same

OF_THE_CLUSTER: Final = "min.insync.replicas"
"""A default of all brokers that the controller itself sets (KIP-966). It is hidden, so that no old tool removes it."""

logger = get_logger(__name__)


def entity_name(resource: ConfigResource) -> str:
    """Returns the name of a broker's znode."""
    return resource.name or znodes.DEFAULT_ENTITY


def shown(image: Image, resource: ConfigResource) -> dict[str, str]:
    """Returns the configs of a resource that may be published."""
    configs = image.configs(resource)
    if resource.type is not ResourceType.BROKER:
        return dict(configs)
    hidden = OF_THE_CLUSTER if resource == DEFAULT_BROKER else None
    return {name: value for name, value in configs.items() if name != hidden and not is_sensitive(name)}


def shown_brokers(image: Image, names: Collection[str]) -> dict[str, dict[str, str]]:
    """Returns the configs of brokers, by the names of their znodes."""
    resources = {name: "" if name == znodes.DEFAULT_ENTITY else name for name in names}
    return {name: shown(image, ConfigResource(ResourceType.BROKER, own)) for name, own in resources.items()}


class BrokerConfigs:
    """The znodes of brokers' configs, as last read or written."""

    def __init__(self) -> None:
        self._registered: dict[str, Known] = {}

    def load(self, client: ZookeeperClient) -> None:
        """Reads all znodes again; an unreadable znode is left unchanged."""
        paths = [f"{znodes.BROKER_CONFIGS}/{name}" for name in client.children(znodes.BROKER_CONFIGS)]
        nodes = client.get_all(paths, refused=set())
        self._registered = {
            path.rpartition("/")[2]: Known(node.data, node.version) for path, node in nodes.items() if node is not None
        }

    def names(self) -> set[str]:
        """Returns the brokers that have a znode."""
        return {name for name in self._registered if name == znodes.DEFAULT_ENTITY or znodes.is_number(name)}

    def publish(
        self, client: ZookeeperClient, term: Term, configs: Mapping[str, Mapping[str, str]], pending: Collection[str]
    ) -> None:
        """Publishes the configs, except for the znodes in `pending`, which have a tool's input. Raises Conflict."""
        for name, operation in self._operations(configs, pending):
            try:
                client.apply([term.fence, operation])
            except ZookeeperRefused as error:
                logger.warning("configs of a broker are not published", znode=operation.path, reason=str(error))
            else:
                version = operation.version + 1 if isinstance(operation, Write) else 0
                self._registered[name] = Known(operation.data, version)

    def _operations(
        self, configs: Mapping[str, Mapping[str, str]], pending: Collection[str]
    ) -> Iterator[tuple[str, Create | Write]]:
        for name, target in configs.items():
            path, znode, data = (
                f"{znodes.BROKER_CONFIGS}/{name}",
                self._registered.get(name),
                znodes.config_json(target),
            )
            if name in pending or (znode is None and not target):
                continue
            if znode is None:
                yield name, Create(path, data)
            elif not is_same(path, znode.data, data):
                yield name, Write(path, data, znode.version)

    def wrote(self, name: str, data: bytes, version: int) -> None:
        """Records a write that was made elsewhere."""
        self._registered[name] = Known(data, version)
