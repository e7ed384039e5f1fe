"""The controller in this process, which decides while this node leads the quorum.

Each time that this node is elected, a new `LocalController` starts from the committed image: decisions that were not
committed are dropped with the controller that made them. Source: Kafka's QuorumController.claim and renounce.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from broker.logging import get_logger
from broker.metadata.local_controller import LocalController
from broker.metadata.replicated_log import ReplicatedLog
from coordinator.cluster.controller import THIS_BROKER, Asker
from coordinator.quorum.ready import LeaderAndRole
from coordinator.quorum.roles import Role
from protocol.errors import ErrorCode, KafkaError

R = TypeVar("R")

logger = get_logger(__name__)


class ElectedController:
    """A `coordinator.cluster.controller.Controller`, active or standby."""

    def __init__(
        self, log: ReplicatedLog, activate: Callable[[], LocalController], resign: Callable[[int], None]
    ) -> None:
        """`activate` returns a controller that has written its first records; `resign` resigns as the leader of an
        epoch."""
        self._log = log
        self._activate = activate
        self._resign = resign
        self.active: LocalController | None = None
        """The controller that decides; None while another node leads."""
        self._epoch = -1
        """The epoch in which this node leads; -1 if another node leads."""
        self._turned: asyncio.Future[None] | None = None
        """Done once this node's controller has become active, or no longer leads; None if nothing waits for it."""

    @property
    def leads(self) -> bool:
        """True if this node leads the quorum. Its controller is active once the records before its epoch are
        committed."""
        return self._epoch >= 0

    @property
    def is_active(self) -> bool:
        """True if this node leads the quorum, and its controller decides."""
        return self.active is not None

    @property
    def has_renounced(self) -> bool:
        return self.active is None or self.active.has_renounced

    def led(self, leader: LeaderAndRole) -> None:
        """Becomes active once all records before the leader's own are committed and applied, or drops what is not
        committed because this node no longer leads."""
        epoch = leader.epoch if leader.role is Role.LEADER else -1
        if epoch == self._epoch:
            return
        self._renounce()
        self._epoch = epoch
        self._turn()
        if epoch >= 0:
            self._log.when_committed(leader.epoch_start_offset + 1, lambda error: self._claim(epoch, error))

    def _claim(self, epoch: int, error: KafkaError | None) -> None:
        if error is not None or epoch != self._epoch:
            return
        try:
            self.active = self._activate()
        except Exception as failure:  # another node may succeed
            logger.error("the controller could not become active", epoch=epoch, exc_info=failure)
            self._resign(epoch)
            return
        logger.info("active controller", epoch=epoch)
        self._turn()

    def _turn(self) -> None:
        turned, self._turned = self._turned, None
        if turned is not None and not turned.done():
            turned.set_result(None)

    async def settled(self) -> None:
        """Returns once this node's controller is active, or no longer leads."""
        while self.leads and self.active is None:
            if self._turned is None:
                self._turned = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._turned)

    def _renounce(self) -> None:
        active, self.active = self.active, None
        error = KafkaError(ErrorCode.NOT_CONTROLLER, "another node leads the quorum")
        self._log.abandon(error)
        if active is not None:
            active.renounce(error)
            logger.info("no longer the active controller", epoch=self._epoch)

    async def stop(self) -> None:
        """Ends the controller's duties."""
        self._renounce()
        self._epoch = -1
        self._turn()

    async def submit(self, request: object, response: type[R], asker: Asker = THIS_BROKER) -> R:
        active = self.active
        if active is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return await active.submit(request, response, asker)
