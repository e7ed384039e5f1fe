"""Control requests that change a broker: they advance its time, maintain its logs, and create a test's resources.

Methods raise RequestError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from broker.clock import Clock
from broker.dispatch.broker import Broker
from programs.control.fields import Fields
from programs.control.http import ControlAnswer, ControlRequest, RequestError, content_of
from programs.control.maintenance import Maintenance
from programs.control.server import ControlConnection
from programs.control.setting_up import add_acl, add_user, create_topic, delete_topic
from programs.control.travelling import TravellingClock, TravellingLoop
from protocol.errors import KafkaError

MAX_JOURNEY_MS: Final = 100 * 366 * 24 * 3_600_000
"""Maximum journey, a century, so that times stay far below 64 bits."""


class Doing:
    """Carries out control requests that change the broker."""

    def __init__(self, broker: Broker, maintenance: Maintenance, random_bytes: Callable[[int], bytes]) -> None:
        self._broker = broker
        self._maintenance = maintenance
        self._random_bytes = random_bytes

    async def clock(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Returns the broker's time."""
        return ControlAnswer(200, clock_content(self._broker.clock))

    async def travel(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Advances time. At the end it runs retention and file deletion once more, so that all that is due has
        happened."""
        fields = Fields(content_of(request))
        distance_ms = fields.number("advance_ms", at_most=MAX_JOURNEY_MS)
        fields.end()
        loop = asyncio.get_running_loop()
        if distance_ms is None:
            raise RequestError(400, 'advance_ms is missing, as in {"advance_ms": 604800000}')
        if not isinstance(loop, TravellingLoop):
            raise RequestError(409, "the event loop of this process can only use the machine's clock")
        timers = await loop.travel(distance_ms, self._look_after_logs)
        return ControlAnswer(200, {**clock_content(self._broker.clock), "timers": timers})

    async def _look_after_logs(self) -> None:
        await self._maintenance.apply_retention(None)
        await self._maintenance.delete_files()

    async def retention(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Applies retention to logs."""
        return ControlAnswer(200, {"partitions": await self._maintenance.apply_retention(topic_in(request))})

    async def compaction(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Cleans compacted topics."""
        return ControlAnswer(200, {"partitions": await self._maintenance.compact(topic_in(request))})

    async def flush(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Flushes all logs."""
        Fields(content_of(request)).end()
        return ControlAnswer(200, {"partitions": await self._maintenance.flush()})

    async def create_topic(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Creates a topic."""
        return ControlAnswer(201, await decided(create_topic(self._broker, Fields(content_of(request)))))

    async def delete_topic(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Deletes a topic."""
        return ControlAnswer(200, await decided(delete_topic(self._broker, request.path[-1])))

    async def add_user(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Sets a user's SCRAM password."""
        fields = Fields(content_of(request))
        return ControlAnswer(201, await decided(add_user(self._broker, fields, self._random_bytes)))

    async def add_acl(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Adds an access control entry."""
        return ControlAnswer(201, await decided(add_acl(self._broker, Fields(content_of(request)))))


async def decided(request: Awaitable[dict[str, object]]) -> dict[str, object]:
    """Returns the controller's answer. Raises RequestError if the controller rejects the whole request."""
    try:
        return await request
    except KafkaError as error:
        raise RequestError(409, str(error)) from None


def topic_in(request: ControlRequest) -> str | None:
    """Returns the topic that a request names; None for all topics."""
    fields = Fields(content_of(request))
    topic = fields.text("topic")
    fields.end()
    return topic


def clock_content(clock: Clock) -> dict[str, object]:
    """Returns the broker's time for JSON."""
    ahead_ms = clock.ahead_ns // 1_000_000 if isinstance(clock, TravellingClock) else 0
    return {"now_ms": clock.now_ms(), "monotonic_ms": clock.monotonic_ms(), "travelled_ms": ahead_ms}
