"""The requests of a connection to a peer: pending ones, their outcomes, and how many may be in flight."""

from __future__ import annotations

from typing import Final, NamedTuple

from protocol.api_key import ApiKey
from protocol.client_codec import ClientCodec
from protocol.schema import identity

MAX_RESPONSE_BYTES: Final = 128 * 1024 * 1024
"""The largest answer is a Fetch's: fetch.max.bytes (55 MB by default), and beyond it a first batch however large."""


class InFlightLimits(NamedTuple):
    """How much of a connection's traffic may be under way at once."""

    max_in_flight: int = 100
    """Requests that were sent and not answered."""
    max_in_flight_bytes: int = 32 * 1024 * 1024
    """Their bytes. A request goes out while the others have fewer, so that the largest has its turn as well."""
    max_response_bytes: int = MAX_RESPONSE_BYTES


class Pending:
    """A request that has not come to its end: the handle by which its maker knows it."""

    __slots__ = (
        "abandoned", "codec", "correlation_id", "deadline_ms", "due_ms", "kind", "max_version", "request", "response",
        "size", "timeout_ms",
    )  # fmt: skip

    def __init__(
        self, request: object, response: type | None, *, max_version: int, deadline_ms: int, timeout_ms: int
    ) -> None:
        """`response` is None for a request that no answer follows."""
        self.request: object = request
        """None once it was sent: its records may be large."""
        self.kind = type(request)
        self.response = response
        self.max_version = max_version
        self.deadline_ms = deadline_ms
        self.timeout_ms = timeout_ms
        self.abandoned = False
        """True when nobody waits for it any more; once sent it keeps its place among the answers."""
        self.correlation_id = -1
        """Negative until it is sent."""
        self.codec: ClientCodec | None = None
        self.size = 0
        self.due_ms = deadline_ms
        """When the peer is taken for gone, once this is the oldest request."""

    @property
    def sent(self) -> bool:
        return self.correlation_id >= 0

    @property
    def name(self) -> str:
        """The request's class, and its version once that is decided."""
        return self.kind.__name__ if self.codec is None else f"{self.kind.__name__} v{self.codec.version}"


class RequestOutcome(NamedTuple):
    """A request's end: its answer (None where there is none by design), or the error in place of it."""

    pending: Pending
    response: object
    error: Exception | None = None


def check_answered(request: object, response: type | None) -> None:
    """Raises ValueError when an answer is expected that never comes, or the other way round: only a Produce with acks=0
    has none."""
    is_silent = identity(type(request)).key == ApiKey.PRODUCE and getattr(request, "acks", None) == 0
    if is_silent != (response is None):
        raise ValueError(f"{type(request).__name__} is {'never' if is_silent else 'always'} answered")
