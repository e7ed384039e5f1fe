"""Pending requests of a connection to a peer, their outcomes, and the limits of requests in flight."""

from __future__ import annotations

from typing import Final, NamedTuple

from client.codec import ClientCodec
from protocol.api_key import ApiKey
from protocol.schema import identity

MAX_RESPONSE_BYTES: Final = 128 * 1024 * 1024
"""Largest response. Fetch responses are largest: up to fetch.max.bytes (55 MB by default), plus a larger first
batch."""


class InFlightLimits(NamedTuple):
    """The limits on a connection's requests in flight and on its responses."""

    max_in_flight: int = 100
    """Maximum number of sent requests without a response."""
    max_in_flight_bytes: int = 32 * 1024 * 1024
    """The next request is sent while the requests in flight have fewer bytes than this. So a larger request is sent,
    too."""
    max_response_bytes: int = MAX_RESPONSE_BYTES


class Pending:
    """A request that has not ended. The caller keeps it as a handle."""

    __slots__ = (
        "abandoned", "codec", "correlation_id", "deadline_ms", "due_ms", "kind", "max_version", "request", "response",
        "size", "timeout_ms",
    )  # fmt: skip

    def __init__(
        self, request: object, response: type | None, *, max_version: int, deadline_ms: int, timeout_ms: int
    ) -> None:
        """Takes None as `response` for a request that gets no response."""
        self.request: object = request
        """The request; None after it was sent, because its records may be large."""
        self.kind = type(request)
        self.response = response
        self.max_version = max_version
        self.deadline_ms = deadline_ms
        self.timeout_ms = timeout_ms
        self.abandoned = False
        """True if no caller waits for the response. A sent request keeps its place in flight."""
        self.correlation_id = -1
        """The correlation id; -1 before the request is sent."""
        self.codec: ClientCodec | None = None
        self.size = 0
        self.due_ms = deadline_ms
        """The time at which the connection fails, if this is the oldest request."""

    @property
    def sent(self) -> bool:
        return self.correlation_id >= 0

    @property
    def name(self) -> str:
        """The name of the request's class, with its version once that is selected."""
        return self.kind.__name__ if self.codec is None else f"{self.kind.__name__} v{self.codec.version}"


class RequestOutcome(NamedTuple):
    """The outcome of a request: its response (None for a request that gets none), or an error."""

    pending: Pending
    response: object
    error: Exception | None = None


def check_answered(request: object, response: type | None) -> None:
    """Raises ValueError if `response` is None for a request that gets a response, or the other way round. Only a
    Produce with acks=0 gets no response."""
    is_silent = identity(type(request)).key == ApiKey.PRODUCE and getattr(request, "acks", None) == 0
    if is_silent != (response is None):
        raise ValueError(f"{type(request).__name__} is {'never' if is_silent else 'always'} answered")
