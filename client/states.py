"""The states of a connection to a peer, and their transitions."""

from __future__ import annotations

from enum import Enum
from typing import Final


class ConnectionState(Enum):
    """The state of a connection. Requests are sent only in READY; earlier requests wait for it."""

    CONNECTING = "connecting"
    NEGOTIATING = "negotiating"
    """The response to ApiVersions is awaited."""
    AUTHENTICATING = "authenticating"
    READY = "ready"
    CLOSING = "closing"
    """No more requests are sent and no responses are read, but written bytes may still be sent."""
    CLOSED = "closed"


class ConnectionEvent(Enum):
    """An event that moves a connection from one state to another."""

    CONNECTED = "connected"
    NEGOTIATED = "negotiated"
    AUTHENTICATED = "authenticated"
    CLOSE = "close"
    """This side closes the connection."""
    LOST = "lost"
    """The stream has ended, or could not be opened."""


NEXT: Final[dict[tuple[ConnectionState, ConnectionEvent], ConnectionState]] = {
    (ConnectionState.CONNECTING, ConnectionEvent.CONNECTED): ConnectionState.NEGOTIATING,
    (ConnectionState.NEGOTIATING, ConnectionEvent.NEGOTIATED): ConnectionState.AUTHENTICATING,
    (ConnectionState.AUTHENTICATING, ConnectionEvent.AUTHENTICATED): ConnectionState.READY,
    (ConnectionState.CONNECTING, ConnectionEvent.CLOSE): ConnectionState.CLOSING,
    (ConnectionState.NEGOTIATING, ConnectionEvent.CLOSE): ConnectionState.CLOSING,
    (ConnectionState.AUTHENTICATING, ConnectionEvent.CLOSE): ConnectionState.CLOSING,
    (ConnectionState.READY, ConnectionEvent.CLOSE): ConnectionState.CLOSING,
    (ConnectionState.CLOSING, ConnectionEvent.CONNECTED): ConnectionState.CLOSING,  # closed while connecting
    (ConnectionState.CLOSING, ConnectionEvent.CLOSE): ConnectionState.CLOSING,
    (ConnectionState.CLOSED, ConnectionEvent.CLOSE): ConnectionState.CLOSED,
    (ConnectionState.CONNECTING, ConnectionEvent.LOST): ConnectionState.CLOSED,
    (ConnectionState.NEGOTIATING, ConnectionEvent.LOST): ConnectionState.CLOSED,
    (ConnectionState.AUTHENTICATING, ConnectionEvent.LOST): ConnectionState.CLOSED,
    (ConnectionState.READY, ConnectionEvent.LOST): ConnectionState.CLOSED,
    (ConnectionState.CLOSING, ConnectionEvent.LOST): ConnectionState.CLOSED,
    (ConnectionState.CLOSED, ConnectionEvent.LOST): ConnectionState.CLOSED,
}


def after(state: ConnectionState, event: ConnectionEvent) -> ConnectionState:
    """Returns the next state. Raises ValueError, which names both, for an event that the state doesn't allow."""
    try:
        return NEXT[state, event]
    except KeyError:
        raise ValueError(f"a connection that is {state.value} cannot become {event.value}") from None
