"""Why a request to another broker has no answer, one class for each thing that its caller may do about it."""

from __future__ import annotations

from protocol.errors import ErrorCode


class PeerError(Exception):
    """A request without an answer. `peer` is the address it was meant for.

    `sent` is False where the peer cannot have got the request: then it may be sent again, whatever it does.
    """

    def __init__(self, peer: str, message: str, *, sent: bool = False) -> None:
        super().__init__(peer, message)
        self.peer = peer
        self.message = message
        self.sent = sent

    def __str__(self) -> str:
        return f"{self.peer}: {self.message}"


class PeerUnavailable(PeerError):
    """There is no connection to the peer, or it was lost before the answer came. Another may be made."""


class RequestTimedOut(PeerError):
    """No answer came within the request's time. The peer may still carry the request out when `sent` is True."""


class ConnectionClosed(PeerError):
    """This side closed the connection before the answer came."""


class UnsupportedVersion(PeerError):
    """The peer speaks no version of the API that this side speaks and the caller allows. Nothing was sent."""


class HandshakeFailed(PeerError):
    """The peer refused this side, or the other way round, before any request. `code` is the error that the peer
    answered, if that is what it did. To connect again gives the same."""

    def __init__(self, peer: str, message: str, code: ErrorCode | None = None) -> None:
        super().__init__(peer, message)
        self.code = code
