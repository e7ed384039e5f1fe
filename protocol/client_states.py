"""The life of a connection to a peer: which states there are, and which may follow which."""

from __future__ import annotations

from enum import Enum
from typing import Final


class ConnectionState(Enum):
    """Where a connection stands. Requests go out in READY alone, those made before wait for it."""

    CONNECTING = "connecting"
    NEGOTIATING = "negotiating"
    """ApiVersions is under way."""
    AUTHENTICATING = "authenticating"
    READY = "ready"
    CLOSING = "closing"
    """Nothing is read or sent any more; what was written before may still go out."""
    CLOSED = "closed"


class ConnectionEvent(Enum):
    """An event that moves a connection from one state to another."""

    CONNECTED = "connected"
    NEGOTIATED = "negotiated"
    AUTHENTICATED = "authenticated"
    CLOSE = "close"
    """This side is done with the connection, or with the peer."""
    LOST = "lost"
    """The stream has ended, or never began."""


NEXT: Final[dict[tuple[ConnectionState, ConnectionEvent], ConnectionState]] = {
    (ConnectionState.CONNECTING, ConnectionEvent.CONNECTED): ConnectionState.NEGOTIATING,
    (ConnectionState.NEGOTIATING, ConnectionEvent.NEGOTIATED): ConnectionState.AUTHENTICATING,
    (ConnectionState.AUTHENTICATING, ConnectionEvent.AUTHENTICATED): ConnectionState.READY,
    (ConnectionState.CONNECTING, ConnectionEvent.CLOSE): ConnectionState.CLOSING,
    (ConnectionState.NEGOTIATING, ConnectionEvent.CLOSE): ConnectionState.CLOSING,
    (ConnectionState.AUTHENTICATING, ConnectionEvent.CLOSE): ConnectionState.CLOSING,
    (ConnectionState.READY, ConnectionEvent.CLOSE): ConnectionState.CLOSING,
    (ConnectionState.CLOSING, ConnectionEvent.CONNECTED): ConnectionState.CLOSING,  # closed while it was being made
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
    """Returns the state that follows. Raises ValueError with both names when no state may follow."""
    try:
        return NEXT[state, event]
    except KeyError:
        raise ValueError(f"a connection that is {state.value} cannot become {event.value}") from None
