"""The life of a connection to a peer: which states there are, and which may follow which."""

from __future__ import annotations

from enum import Enum
from typing import Final


class State(Enum):
    """Where a connection stands. Requests go out in READY alone, those made before wait for it."""

    CONNECTING = "connecting"
    NEGOTIATING = "negotiating"
    """ApiVersions is under way."""
    AUTHENTICATING = "authenticating"
    READY = "ready"
    CLOSING = "closing"
    """Nothing is read or sent any more; what was written before may still go out."""
    CLOSED = "closed"


class Event(Enum):
    """What moves a connection from one state to another."""

    CONNECTED = "connected"
    NEGOTIATED = "negotiated"
    AUTHENTICATED = "authenticated"
    CLOSE = "close"
    """This side is done with the connection, or with the peer."""
    LOST = "lost"
    """The stream has ended, or never began."""


NEXT: Final[dict[tuple[State, Event], State]] = {
    (State.CONNECTING, Event.CONNECTED): State.NEGOTIATING,
    (State.NEGOTIATING, Event.NEGOTIATED): State.AUTHENTICATING,
    (State.AUTHENTICATING, Event.AUTHENTICATED): State.READY,
    (State.CONNECTING, Event.CLOSE): State.CLOSING,
    (State.NEGOTIATING, Event.CLOSE): State.CLOSING,
    (State.AUTHENTICATING, Event.CLOSE): State.CLOSING,
    (State.READY, Event.CLOSE): State.CLOSING,
    (State.CLOSING, Event.CONNECTED): State.CLOSING,  # closed while it was being made
    (State.CLOSING, Event.CLOSE): State.CLOSING,
    (State.CLOSED, Event.CLOSE): State.CLOSED,
    (State.CONNECTING, Event.LOST): State.CLOSED,
    (State.NEGOTIATING, Event.LOST): State.CLOSED,
    (State.AUTHENTICATING, Event.LOST): State.CLOSED,
    (State.READY, Event.LOST): State.CLOSED,
    (State.CLOSING, Event.LOST): State.CLOSED,
    (State.CLOSED, Event.LOST): State.CLOSED,
}


def after(state: State, event: Event) -> State:
    """The state that follows; ValueError names both where nothing may."""
    try:
        return NEXT[state, event]
    except KeyError:
        raise ValueError(f"a connection that is {state.value} cannot become {event.value}") from None
