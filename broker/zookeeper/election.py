"""The one broker that keeps the registry and acts on the inputs of old tools: whoever makes /controller.

Source: KafkaZkClient.registerControllerAndIncrementControllerEpoch.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from broker.zookeeper import znodes
from broker.zookeeper.client import Conflict, Znode, ZookeeperClient
from broker.zookeeper.operations import CheckVersion, Create, Delete, Operation, Write


class Term(NamedTuple):
    """The time in which this broker is the active one."""

    epoch: int
    version: int
    """Of /controller_epoch: every multi checks it, so that one of an earlier term changes nothing."""
    session_id: int

    @property
    def fence(self) -> Operation:
        return CheckVersion(znodes.CONTROLLER_EPOCH, self.version)


class ControllerElection:
    """This broker's part in the elections."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id

    def stand(self, client: ZookeeperClient, now_ms: int) -> Term | None:
        """Returns this broker's term, None while another is active; watches for the end of either."""
        node = client.get(znodes.CONTROLLER, watch=True)
        if node is None:
            self._run(client, now_ms)
            node = client.get(znodes.CONTROLLER, watch=True)
        session_id = client.session_id
        if node is None or session_id is None or node.owner != session_id:
            return None
        epoch = self._epoch(client)
        return Term(_number(epoch), epoch.version, session_id)

    def resign(self, client: ZookeeperClient, term: Term) -> None:
        """Ends this broker's term, so that another can be elected. Raises Conflict where it has ended."""
        client.apply([term.fence, Delete(znodes.CONTROLLER)])

    def _run(self, client: ZookeeperClient, now_ms: int) -> None:
        before = self._epoch(client)
        controller = Create(znodes.CONTROLLER, znodes.controller_json(self._broker_id, now_ms), ephemeral=True)
        epoch = Write(znodes.CONTROLLER_EPOCH, str(_number(before) + 1).encode(), before.version)
        try:
            client.apply([controller, epoch])
        except Conflict:
            return  # another was first

    def _epoch(self, client: ZookeeperClient) -> Znode:
        node = client.get(znodes.CONTROLLER_EPOCH)
        if node is None:
            with suppress(Conflict):  # another was first
                client.apply([Create(znodes.CONTROLLER_EPOCH, b"0")])
            node = client.get(znodes.CONTROLLER_EPOCH)
        if node is None:
            raise Conflict(f"{znodes.CONTROLLER_EPOCH} comes and goes")
        return node


def _number(epoch: Znode) -> int:
    try:
        return int(epoch.data)
    except ValueError:
        return 0  # somebody wrote over it: the znode's version still tells terms apart
