"""The errors of requests to other brokers. Each class allows the caller a different reaction."""

from __future__ import annotations

from protocol.errors import ErrorCode


class PeerError(Exception):
    """A request without a response. `peer` is the address of the other broker.

    `sent` is False if the peer can't have received the request, so that any request may be sent again.
    """

    def __init__(self, peer: str, message: str, *, sent: bool = False) -> None:
        super().__init__(peer, message)
        self.peer = peer
        self.message = message
        self.sent = sent

    def __str__(self) -> str:
        return f"{self.peer}: {self.message}"


class PeerUnavailable(PeerError):
    """No connection to the peer, or a connection that was lost before the response. The caller may connect again."""


class RequestTimedOut(PeerError):
    """A request without a response within its timeout. If `sent` is True, the peer may still process it."""


class ConnectionClosed(PeerError):
    """A request on a connection that this side closed before the response."""


class UnsupportedVersion(PeerError):
    """An API without a version that both sides support and the caller allows. The request was not sent."""


class HandshakeFailed(PeerError):
    """A handshake in which one side rejected the other, before any request. `code` is the peer's error code, if it
    returned an error. A new connection would fail too."""

    def __init__(self, peer: str, message: str, code: ErrorCode | None = None) -> None:
        super().__init__(peer, message)
        self.code = code
