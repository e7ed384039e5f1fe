"""Links to brokers on an event loop, for commands that send several requests at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from typing import TypeVar

from broker.clock import SystemClock, pause
from broker.peers import Address, Peer, Peers, Settings
from broker.peers.settings import dial_tcp, dial_tls
from commands.client.cluster_client import draw
from commands.client.connecting import Destination

T = TypeVar("T")


class LoopLinks:
    """Links on the running event loop."""

    def __init__(self, destination: Destination) -> None:
        settings = peer_settings(destination)
        self.clock = SystemClock()
        self.bootstrap = [Peer(address, settings, self.clock, draw) for address in destination.bootstrap]
        self._nodes = Peers(settings, self.clock, draw)

    def place(self, addresses: Mapping[int, Address]) -> None:
        self._nodes.place(addresses)

    def node(self, node: int) -> Peer:
        return self._nodes.node(node)

    async def together(self, awaitables: Iterable[Awaitable[T]]) -> list[T]:
        return list(await asyncio.gather(*awaitables))

    async def pause(self, delay_ms: int) -> None:
        await pause(self.clock, delay_ms)

    async def close(self) -> None:
        await asyncio.gather(self._nodes.close(), *(peer.close() for peer in self.bootstrap))


def peer_settings(destination: Destination) -> Settings:
    """Returns the outbound client's settings."""
    return Settings(
        client_id=destination.client_id,
        connect_timeout_ms=destination.connect_timeout_ms,
        authenticators=destination.authenticators,
        dial=dial_tcp if destination.tls is None else dial_tls(destination.tls),
    )
