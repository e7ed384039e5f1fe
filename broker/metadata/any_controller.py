"""The active controller, in this process or in another one, as the broker of a node with both roles uses it.

While the controller in this process leads, requests need no connection. A request that meets a change of the leader is
sent to the next leader, until its timeout.
"""

from __future__ import annotations

from typing import Final, TypeVar

from broker.clock import Clock, pause
from broker.metadata.elected_controller import ElectedController
from broker.metadata.local_controller import LocalController
from broker.metadata.remote_controller import RemoteController
from coordinator.cluster.controller import THIS_BROKER, Asker
from protocol.errors import ErrorCode, KafkaError

R = TypeVar("R")

RETRY_MS: Final = 20
"""The pause before a request whose controller no longer leads is sent to the next leader."""


class AnyController:
    """A `coordinator.cluster.controller.Controller`; see its docstrings there."""

    def __init__(self, own: ElectedController, others: RemoteController, clock: Clock, timeout_ms: int) -> None:
        """`others` raises NOT_CONTROLLER once `own` leads. A request is not sent again after `timeout_ms`."""
        self._own = own
        self._others = others
        self._clock = clock
        self._timeout_ms = timeout_ms

    @property
    def has_renounced(self) -> bool:
        return False

    @property
    def active(self) -> LocalController | None:
        return self._own.active

    async def submit(self, request: object, response: type[R], asker: Asker = THIS_BROKER) -> R:
        ends_ms = self._clock.monotonic_ms() + self._timeout_ms
        while True:
            await self._own.settled()
            controller = self._own if self._own.leads else self._others
            try:
                return await controller.submit(request, response, asker)
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER or self._clock.monotonic_ms() >= ends_ms:
                    raise
            await pause(self._clock, RETRY_MS)
