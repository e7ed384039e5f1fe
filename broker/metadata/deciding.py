"""Runs the controller's decisions on requests with many entries in a thread, while the event loop serves clients.

Kafka's QuorumController decides in a thread of its own, one event after the other. Here only long decisions run in a
thread. Other decisions wait for it, so that the state doesn't change. When it ends, they come first, and then the
next long decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from broker.workers import Workers
from client.futures import retrieve
from protocol.errors import ErrorCode, KafkaError
from protocol.schema import fields_of

T = TypeVar("T")

MAX_ENTRIES_ON_LOOP: Final = 500
"""Maximum number of entries of a request that is decided on the event loop. Each takes ten to fifty microseconds."""


class LongDecisions:
    """Runs long decisions, one at a time."""

    def __init__(self) -> None:
        self._thread = Workers(1, "decisions")
        self._decided: asyncio.Event | None = None
        """Set when the thread has made its decision; None while there is none."""
        self._turn = asyncio.Lock()
        self._has_stopped = False

    @property
    def is_busy(self) -> bool:
        """True while the thread decides; then the state must not change."""
        return self._decided is not None

    async def over(self) -> None:
        """Returns once no long decision is being made."""
        while self._decided is not None:
            await self._decided.wait()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits until earlier long decisions are made. The block can then make one decision."""
        async with self._turn:
            await self.over()
            yield

    async def make(self, decision: Callable[[], T]) -> T:
        """Returns a decision, which a thread makes. Call it in `turn`. If the caller is cancelled, the thread
        continues, and the state must not change until it has ended. Raises NOT_CONTROLLER after `stop`.
        """
        if self._has_stopped:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this controller is stopping")
        decided = self._decided = asyncio.Event()
        making = self._thread.begin(decision)
        making.add_done_callback(retrieve)  # the caller may be gone
        try:
            decision_made = await asyncio.shield(making)
        finally:
            if making.done():
                self._end(decided)
            else:
                making.add_done_callback(lambda _: self._end(decided))
        if self._has_stopped:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this controller has stopped")
        return decision_made

    def _end(self, decided: asyncio.Event) -> None:
        self._decided = None
        decided.set()

    def stop(self) -> None:
        """Makes no more decisions."""
        self._has_stopped = True
        self._thread.abandon()


COST_OF_ENTRY: Final = {"filters": MAX_ENTRIES_ON_LOOP + 1}
"""Arrays whose entries are much more work than others: DeleteAcls compares a filter with many of the cluster's access
control entries, so a thread decides even a request with one entry."""

COUNTS: Final = {"num_partitions", "count"}
"""Fields of CreateTopics and CreatePartitions with the number of partitions to create, each of which is as much work as
an entry."""


def is_long(request: object) -> bool:
    """True for a request with more than MAX_ENTRIES_ON_LOOP entries, including nested entries and new partitions."""
    unseen, count = [request], 0
    while unseen and count <= MAX_ENTRIES_ON_LOOP:
        message = unseen.pop()
        for field in fields_of(type(message)):
            value = getattr(message, field.name)
            if field.kind.name == "array" and value:
                count += len(value) * COST_OF_ENTRY.get(field.name, 1)
                if field.kind.items is not None and field.kind.items.struct is not None:
                    unseen += value[:MAX_ENTRIES_ON_LOOP]
            elif field.name in COUNTS:
                count += max(value, 0)
    return count > MAX_ENTRIES_ON_LOOP
