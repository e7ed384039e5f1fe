"""The settings of connections to other brokers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from broker.peers.address import Address
from broker.peers.backoff import Backoff
from protocol.handshake import Authenticator
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.peer_traffic import PeerTraffic
from protocol.pending import InFlightLimits

if TYPE_CHECKING:
    import ssl

SOFTWARE_NAME: Final = "odradek"

Dial: TypeAlias = Callable[[Address, Callable[[], asyncio.BufferedProtocol]], Awaitable[object]]
"""Opens a stream to an address for a protocol: TLS is another one of these, a simulated network as well. Raises OSError
or ValueError when there is nobody."""


async def dial_tcp(address: Address, protocol: Callable[[], asyncio.BufferedProtocol]) -> None:
    """Opens a plain connection to the first of the host's addresses that answers."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(protocol, address.host, address.port)
    stream: socket.socket | None = transport.get_extra_info("socket")
    if stream is not None:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a peer whose machine is gone says no farewell


def dial_tls(context: ssl.SSLContext) -> Dial:
    """Returns what opens connections with TLS."""

    async def dial(address: Address, protocol: Callable[[], asyncio.BufferedProtocol]) -> None:
        loop = asyncio.get_running_loop()
        name = address.host if context.check_hostname else ""
        await loop.create_connection(protocol, address.host, address.port, ssl=context, server_hostname=name)

    return dial


class Settings(NamedTuple):
    """How to connect, and how much to have under way."""

    client_id: str | None = SOFTWARE_NAME
    software_version: str = "unknown"
    """Letters, digits, dots and dashes (KIP-511)."""
    limits: InFlightLimits = InFlightLimits()
    """The limits of each connection."""
    backoff: Backoff = Backoff()
    """The pause between a connection that answered nothing and the next attempt."""
    connect_timeout_ms: int = 10_000
    """The time for a connection to be ready (socket.connection.setup.timeout.ms of Kafka's clients)."""
    max_idle_ms: int = 540_000
    """A connection that was idle for longer is not used again: less than the ten minutes after which brokers close one
    (connections.max.idle.ms), so that no request meets that end."""
    authenticators: tuple[Authenticator, ...] = ()
    dial: Dial = dial_tcp
    traffic: PeerTraffic | None = None
    """Counts what goes over the connections, where somebody reads it."""

    def hello(self) -> ApiVersionsRequest:
        return ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=self.software_version)
