"""Keeps a consumer's membership in its group while the consumer reads. Needs an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol


class GroupMembership(Protocol):
    """A membership in a group, of either kind."""

    async def keep_alive(self) -> None:
        """Sends heartbeats until it is cancelled. Raises the error that ends the membership."""

    async def leave(self) -> None: ...


@asynccontextmanager
async def heartbeats(
    member: GroupMembership, close: Callable[[], Awaitable[None]]
) -> AsyncIterator[Callable[[], None]]:
    """Sends heartbeats during the block, then calls `close` and leaves the group, also after an error. Yields a
    function that raises the error that ended the heartbeats."""
    sending = asyncio.ensure_future(member.keep_alive())

    def raise_lost() -> None:
        if sending.done():
            sending.result()

    try:
        yield raise_lost
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        try:
            await close()
        finally:
            await member.leave()
