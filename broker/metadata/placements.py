"""Tells the controllers in which of this broker's log directories its replicas are, where they left the choice to it.

What is not taken is told again, after a pause, until it is. Source: Kafka's AssignmentsManager (KIP-858).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import Final, TypeAlias

from broker.clock import Clock
from broker.logging import get_logger
from broker.peers.backoff import Backoff
from broker.peers.waiting import pause
from protocol.errors import KafkaError
from protocol.types import TopicPartition, Uuid

MAX_PLACES: Final = 2_250
"""Of one request (AssignReplicasToDirsRequest.MAX_ASSIGNMENTS_PER_REQUEST)."""

BACKOFF: Final = Backoff(initial_ms=100, max_ms=10_000)

Place: TypeAlias = tuple[TopicPartition, Uuid]

log = get_logger("broker.metadata")


class Placements:
    """What is still to be told: the last word on each replica counts."""

    def __init__(
        self, assign: Callable[[Iterable[Place]], Awaitable[None]], clock: Clock, draw: Callable[[], float]
    ) -> None:
        """`assign` tells some; it raises KafkaError where nobody has taken them. `draw` gives random numbers from 0 up
        to 1."""
        self._assign = assign
        self._clock = clock
        self._draw = draw
        self._untold: dict[TopicPartition, Uuid] = {}
        self._telling: asyncio.Task[None] | None = None

    def note(self, name: TopicPartition, directory_id: Uuid) -> None:
        """The replica is there. Those that are noted in one turn of the event loop are told together."""
        self._untold[name] = directory_id
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    def stop(self) -> None:
        """Tell no more."""
        if self._telling is not None:
            self._telling.cancel()

    async def _tell(self) -> None:
        failures = 0
        while self._untold:
            await pause(self._clock, BACKOFF.delay_ms(failures, self._draw()))
            places = list(islice(self._untold.items(), MAX_PLACES))
            try:
                await self._assign(places)
            except KafkaError as error:
                failures += 1
                if failures == 1:
                    log.warning("places of replicas were not taken yet", replicas=len(places), reason=str(error))
                continue
            failures = 0
            for name, directory_id in places:
                if self._untold.get(name) == directory_id:
                    del self._untold[name]
