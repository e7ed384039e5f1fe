"""Reports to the controllers the log directories that this broker has chosen for its replicas.

A report is repeated, after a pause, until a controller accepts it. Source: Kafka's AssignmentsManager (KIP-858).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import Final, TypeAlias

from broker.clock import Clock, pause
from broker.logging import get_logger
from protocol.backoff import Backoff
from protocol.errors import KafkaError
from protocol.types import TopicPartition, Uuid

MAX_PLACEMENTS: Final = 2_250
"""Maximum number of placements in a request (AssignReplicasToDirsRequest.MAX_ASSIGNMENTS_PER_REQUEST)."""

BACKOFF: Final = Backoff(initial_ms=100, max_ms=10_000)

Placement: TypeAlias = tuple[TopicPartition, Uuid]
"""A replica, and the id of its log directory."""

log = get_logger(__name__)


class Placements:
    """The placements that are not reported yet; the latest of each replica."""

    def __init__(
        self, assign: Callable[[Iterable[Placement]], Awaitable[None]], clock: Clock, draw: Callable[[], float]
    ) -> None:
        """`assign` reports placements, and raises KafkaError if no controller accepts them. `draw` returns random
        numbers from 0 up to 1.
        """
        self._assign = assign
        self._clock = clock
        self._draw = draw
        self._unreported: dict[TopicPartition, Uuid] = {}
        self._task: asyncio.Task[None] | None = None

    def note(self, name: TopicPartition, directory_id: Uuid) -> None:
        """Queues the log directory of a replica. Placements that are queued in one turn of the event loop are sent in
        one request.
        """
        self._unreported[name] = directory_id
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._report())

    def stop(self) -> None:
        """Sends no more reports."""
        if self._task is not None:
            self._task.cancel()

    async def _report(self) -> None:
        failures = 0
        while self._unreported:
            await pause(self._clock, BACKOFF.delay_ms(failures, self._draw()))
            placements = list(islice(self._unreported.items(), MAX_PLACEMENTS))
            try:
                await self._assign(placements)
            except KafkaError as error:
                failures += 1
                if failures == 1:
                    log.warning(
                        "no controller has accepted the log directories of replicas yet",
                        replicas=len(placements),
                        reason=str(error),
                    )
                continue
            failures = 0
            for name, directory_id in placements:
                if self._unreported.get(name) == directory_id:
                    del self._unreported[name]
