"""The cluster id in ZooKeeper. Brokers of other clusters don't register there."""

from __future__ import annotations

from programs.zookeeper import znodes
from programs.zookeeper.client import Conflict, ZookeeperClient
from programs.zookeeper.operations import Create
from programs.zookeeper.znodes import BadZnode
from protocol.errors import ErrorCode, KafkaError


def claim(client: ZookeeperClient, cluster_id: str) -> None:
    """Creates the persistent paths, and writes the cluster id if the ensemble is new or has lost its data. Raises
    KafkaError if it has another cluster's id."""
    client.make_paths(znodes.PERSISTENT)
    try:
        client.apply([Create(znodes.CLUSTER_ID, znodes.cluster_id_json(cluster_id))])
    except Conflict:
        registered = _stored_id(client)
        if registered != cluster_id:
            message = (
                f"zookeeper.connect: {znodes.CLUSTER_ID} is {registered}, and this broker's cluster is {cluster_id}"
            )
            raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, message) from None


def _stored_id(client: ZookeeperClient) -> str:
    node = client.get(znodes.CLUSTER_ID)
    try:
        return "gone" if node is None else znodes.cluster_id_of(node.data)
    except BadZnode as error:
        message = f"zookeeper.connect: {znodes.CLUSTER_ID} {error}"
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, message) from None
