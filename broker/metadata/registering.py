"""Registers this controller with the active controller: its endpoints, and the features that it supports (KIP-919).

Source: Kafka's ControllerRegistrationManager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from broker.clock import Clock, pause
from broker.logging import get_logger
from coordinator.cluster.brokers.activation import CONTROLLER_REGISTRATION_VERSION
from coordinator.cluster.brokers.info import ControllerRegistration
from coordinator.cluster.changes import Delta
from coordinator.cluster.controller import Controller
from coordinator.cluster.loader import MetadataLoader
from protocol.backoff import Backoff
from protocol.errors import KafkaError
from protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    Feature,
    Listener,
)

BACKOFF: Final = Backoff(initial_ms=100, max_ms=60_000, jitter=0.02)
"""The pause after a failed request (ControllerRegistrationManager.DEFAULT_EXPONENTIAL_BACKOFF)."""

logger = get_logger(__name__)


class Registering:
    """Keeps this controller registered while it runs."""

    def __init__(
        self,
        own: ControllerRegistration,
        loader: MetadataLoader,
        active: Controller,
        clock: Clock,
        draw: Callable[[], float],
    ) -> None:
        """`active` is the active controller, here or in another process; `draw` returns random numbers from 0 to 1."""
        self._own = own
        self._image = loader.image
        self._active = active
        self._clock = clock
        self._draw = draw
        self._task: asyncio.Task[None] | None = None
        loader.subscribe(self._check)

    def _check(self, _: Delta) -> None:
        if self._task is None and self._is_due:
            self._task = asyncio.get_running_loop().create_task(self._register())

    @property
    def _is_due(self) -> bool:
        if self._image.metadata_version < CONTROLLER_REGISTRATION_VERSION:
            return False
        registered = self._image.controllers.get(self._own.controller_id)
        return registered is None or registered.incarnation_id != self._own.incarnation_id

    async def _register(self) -> None:
        """Sends the registration until the image has it."""
        failures = 0
        try:
            while self._is_due:
                try:
                    await self._active.submit(self._request(), ControllerRegistrationResponse)
                except KafkaError as error:
                    failures += 1
                    if failures == 1:
                        logger.warning("the active controller does not register this controller", reason=str(error))
                await pause(self._clock, BACKOFF.delay_ms(failures or 1, self._draw()))
        finally:
            self._task = None

    def _request(self) -> ControllerRegistrationRequest:
        return ControllerRegistrationRequest(
            controller_id=self._own.controller_id,
            incarnation_id=self._own.incarnation_id,
            zk_migration_ready=False,
            listeners=[
                Listener(
                    name=endpoint.name,
                    host=endpoint.host,
                    port=endpoint.port,
                    security_protocol=endpoint.security_protocol,
                )
                for endpoint in self._own.endpoints
            ],
            features=[
                Feature(name=name, min_supported_version=levels.min_level, max_supported_version=levels.max_level)
                for name, levels in self._own.features.items()
            ],
        )

    def stop(self) -> None:
        """Sends no more requests."""
        if self._task is not None:
            self._task.cancel()
