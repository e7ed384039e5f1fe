"""Decisions on requests of many entries, made by a thread while the event loop serves others.

Kafka's QuorumController decides in a thread of its own, one event after the other. Here only long decisions are made in
a thread; the other decisions wait for it, so that the state stays as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from broker.workers import Workers
from protocol.errors import ErrorCode, KafkaError
from protocol.schema import fields_of

T = TypeVar("T")

MAX_ENTRIES_ON_LOOP: Final = 500
"""The entries of a request up to which its decision is made on the event loop: ten to fifty microseconds for each."""


class LongDecisions:
    """Makes long decisions, one at a time."""

    def __init__(self) -> None:
        self._thread = Workers(1, "decisions")
        self._decided: asyncio.Event | None = None
        """Set when the decision that the thread makes is made; None while there is none."""
        self._has_stopped = False

    @property
    def is_busy(self) -> bool:
        """True while a decision is being made: the state must stay as it is."""
        return self._decided is not None

    async def over(self) -> None:
        """Returns once no long decision is being made."""
        while self._decided is not None:
            await self._decided.wait()

    async def make(self, decision: Callable[[], T]) -> T:
        """Returns a decision, which a thread makes. None may be being made. A caller that is cancelled leaves the
        thread at work: the state must stay as it is until the thread has ended. Raises NOT_CONTROLLER after `stop`."""
        if self._has_stopped:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this controller stops")
        decided = self._decided = asyncio.Event()
        making = self._thread.begin(decision)
        try:
            return await asyncio.shield(making)
        finally:
            if making.done():
                self._end(decided)
            else:
                making.add_done_callback(lambda _: self._end(decided))

    def _end(self, decided: asyncio.Event) -> None:
        self._decided = None
        decided.set()

    def stop(self) -> None:
        """Makes no more decisions."""
        self._has_stopped = True
        self._thread.abandon()


def is_long(request: object) -> bool:
    """True for a request of more than MAX_ENTRIES_ON_LOOP entries, nested ones too."""
    unseen, count = [request], 0
    while unseen and count <= MAX_ENTRIES_ON_LOOP:
        message = unseen.pop()
        for field in fields_of(type(message)):
            value = getattr(message, field.name)
            if field.kind.name == "array" and value:
                count += len(value)
                if field.kind.items is not None and field.kind.items.struct is not None:
                    unseen += value[:MAX_ENTRIES_ON_LOOP]
    return count > MAX_ENTRIES_ON_LOOP
