"""The settings of connections to other brokers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from broker.peers.address import Address
from protocol.backoff import Backoff
from protocol.handshake import Authenticator
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.peer_traffic import PeerTraffic
from protocol.pending import InFlightLimits

if TYPE_CHECKING:
    import ssl

SOFTWARE_NAME: Final = "odradek"

Dial: TypeAlias = Callable[[Address, Callable[[], asyncio.BufferedProtocol]], Awaitable[object]]
"""Opens a stream to an address for a protocol: plain, with TLS, or over a simulated network. Raises OSError or
ValueError if it can't connect.
"""


async def dial_tcp(address: Address, protocol: Callable[[], asyncio.BufferedProtocol]) -> None:
    """Opens a plain connection to the first of the host's addresses that answers."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(protocol, address.host, address.port)
    stream: socket.socket | None = transport.get_extra_info("socket")
    if stream is not None:
        stream.setsockopt(
            socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1
        )  # finds a peer whose machine is gone without closing


def dial_tls(context: ssl.SSLContext) -> Dial:
    """Returns a function that opens connections with TLS."""

    async def dial(address: Address, protocol: Callable[[], asyncio.BufferedProtocol]) -> None:
        loop = asyncio.get_running_loop()
        name = address.host if context.check_hostname else ""
        await loop.create_connection(protocol, address.host, address.port, ssl=context, server_hostname=name)

    return dial


class Settings(NamedTuple):
    """The settings of a connection, and its limits on requests in flight."""

    client_id: str | None = SOFTWARE_NAME
    software_version: str = "unknown"
    """Letters, digits, dots and dashes (KIP-511)."""
    limits: InFlightLimits = InFlightLimits()
    """The limits of each connection."""
    backoff: Backoff = Backoff()
    """The pause before connecting again, if the last connection brought no answer."""
    connect_timeout_ms: int = 10_000
    """Timeout for a connection to become ready (socket.connection.setup.timeout.ms of Kafka's clients)."""
    max_idle_ms: int = 540_000
    """Idle time after which a connection isn't used again. Less than the ten minutes after which brokers close it
    (connections.max.idle.ms), so that no request is lost with it.
    """
    authenticators: tuple[Authenticator, ...] = ()
    dial: Dial = dial_tcp
    traffic: PeerTraffic | None = None
    """Counts the traffic of the connections; None if it isn't read."""

    def hello(self) -> ApiVersionsRequest:
        return ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=self.software_version)
