"""The settings of connections to brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from client.address import Address
from client.connection import OutboundConnection
from client.handshake import Authenticator
from client.pending import InFlightLimits
from client.traffic import PeerTraffic
from protocol.backoff import Backoff
from protocol.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    import ssl

SOFTWARE_NAME: Final = "odradek"
SOFTWARE_VERSION: Final = "unknown"


class Settings(NamedTuple):
    """The settings of a connection, and its limits on requests in flight."""

    client_id: str | None = SOFTWARE_NAME
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
    tls: ssl.SSLContext | None = None
    """The TLS context; None connects without TLS."""
    traffic: PeerTraffic | None = None
    """Counts the traffic of the connections; None if it isn't read."""

    def connection(self, address: Address) -> OutboundConnection:
        """Returns the protocol of a new connection."""
        return OutboundConnection(
            str(address),
            client_id=self.client_id,
            hello=ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION),
            authenticators=self.authenticators,
            limits=self.limits,
        )
