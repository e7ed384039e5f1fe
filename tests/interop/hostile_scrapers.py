"""Hostile scrapers, in a separate process.

python -m tests.interop.hostile_scrapers HOST:PORT KIND SECONDS
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

AT_ONCE: Final = 1_000
REQUEST: Final = b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n"
PAUSE_S: Final = 0.1
"""Pause after a rejected connection: all scrapers together open ten thousand connections a second."""

Attack = Callable[[str, int], Awaitable[None]]


async def half_open(host: str, port: int) -> None:
    """Sends nothing, or half of a word, for as long as possible."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"GET /metr")
    await reader.read()
    writer.close()


async def slow(host: str, port: int) -> None:
    """Sends its request a byte at a time."""
    _, writer = await asyncio.open_connection(host, port)
    for at in range(len(REQUEST)):
        writer.write(REQUEST[at : at + 1])
        await writer.drain()
        await asyncio.sleep(PAUSE_S)
    writer.close()


async def never_reading(host: str, port: int) -> None:
    """Requests a page, and doesn't read it."""
    _, writer = await asyncio.open_connection(host, port, limit=1)
    writer.write(REQUEST)
    await writer.drain()
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(12)
    writer.close()


async def all_at_once(host: str, port: int) -> None:
    """Requests a page and reads it, again and again."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(REQUEST)
    await reader.read()
    writer.close()


async def huge(host: str, port: int) -> None:
    """Sends headers without end."""
    _, writer = await asyncio.open_connection(host, port)
    writer.write(b"GET /metrics HTTP/1.1\r\n")
    while True:
        writer.write(b"X-Header: %b\r\n" % (b"x" * 8_000))
        await writer.drain()


async def silent_connects(host: str, port: int) -> None:
    """Connects and disconnects."""
    _, writer = await asyncio.open_connection(host, port)
    writer.close()


ATTACKS: Final[Mapping[str, Attack]] = {
    "half-open": half_open,
    "slow": slow,
    "never-reading": never_reading,
    "all-at-once": all_at_once,
    "huge": huge,
    "connects": silent_connects,
}


async def again_and_again(attack: Attack, host: str, port: int) -> None:
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await attack(host, port)
        await asyncio.sleep(PAUSE_S)


async def main(address: str, kind: str, seconds: float) -> None:
    host, _, port = address.rpartition(":")
    attackers = [asyncio.ensure_future(again_and_again(ATTACKS[kind], host, int(port))) for _ in range(AT_ONCE)]
    await asyncio.wait(attackers, timeout=seconds)
    for attacker in attackers:
        attacker.cancel()
    await asyncio.wait(attackers)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
