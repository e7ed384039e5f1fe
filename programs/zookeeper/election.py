"""The election of the active broker, which publishes the registry and carries out the inputs of old tools. The broker
that creates /controller is elected.

Source: KafkaZkClient.registerControllerAndIncrementControllerEpoch.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple

from programs.zookeeper import znodes
from programs.zookeeper.client import Conflict, Znode, ZookeeperClient
from programs.zookeeper.operations import CheckVersion, Create, Delete, Operation, Write

MAX_EPOCH: Final = (1 << 31) - 1
"""Largest epoch: old clients read 31 bits."""


class Term(NamedTuple):
    """The term in which this broker is active."""

    epoch: int
    version: int
    """The version of /controller_epoch. Every multi checks it, so that a multi of an earlier term changes nothing."""
    session_id: int

    @property
    def fence(self) -> Operation:
        return CheckVersion(znodes.CONTROLLER_EPOCH, self.version)


class ControllerElection:
    """This broker's part in the elections."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id

    def stand(self, client: ZookeeperClient, now_ms: int) -> Term | None:
        """Returns this broker's term; None while another broker is active. Watches for the end of the term."""
        node = client.get(znodes.CONTROLLER, watch=True)
        if node is None:
            self._run(client, now_ms)
            node = client.get(znodes.CONTROLLER, watch=True)
        session_id = client.session_id
        if node is None or session_id is None or node.owner != session_id:
            return None
        epoch = self._epoch(client)
        return Term(_number(epoch), epoch.version, session_id)

    def resign(self, client: ZookeeperClient) -> None:
        """Ends this broker's term, if it has one, so that another broker can be elected. Raises Conflict."""
        epoch = self._epoch(client)
        node = client.get(znodes.CONTROLLER)
        if node is not None and node.owner == client.session_id:
            client.apply([CheckVersion(znodes.CONTROLLER_EPOCH, epoch.version), Delete(znodes.CONTROLLER)])

    def _run(self, client: ZookeeperClient, now_ms: int) -> None:
        before = self._epoch(client)
        controller = Create(znodes.CONTROLLER, znodes.controller_json(self._broker_id, now_ms), ephemeral=True)
        epoch = Write(znodes.CONTROLLER_EPOCH, str(_number(before) + 1).encode(), before.version)
        try:
            client.apply([controller, epoch])
        except Conflict:
            return  # another broker was first

    def _epoch(self, client: ZookeeperClient) -> Znode:
        node = client.get(znodes.CONTROLLER_EPOCH)
        if node is None:
            with suppress(Conflict):  # another broker was first
                client.apply([Create(znodes.CONTROLLER_EPOCH, b"0")])
            node = client.get(znodes.CONTROLLER_EPOCH)
        if node is None:
            raise Conflict(f"{znodes.CONTROLLER_EPOCH} is repeatedly created and deleted")
        return node


def _number(epoch: Znode) -> int:
    """Returns the epoch; 0 if the content is invalid: the znode's version still distinguishes terms."""
    text = epoch.data.decode(errors="replace")
    number = int(text) if znodes.is_number(text) else 0
    return number if number < MAX_EPOCH else 0
