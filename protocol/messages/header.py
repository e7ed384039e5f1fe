"""The headers in front of every request and response.

Requests of classic versions have header 1, of flexible versions header 2 (KIP-482); ControlledShutdown 0 alone had 0.
Responses of flexible versions have header 1, but ApiVersions always 0, as a client reads it before it knows (KIP-511).
"""

from __future__ import annotations

from protocol.schema import message, wire
from protocol.types import int16, int32

NO_API_KEY = -1
"""The key of headers, which belong to no API."""


@message(NO_API_KEY, versions="0-2", flexible="2+")
class RequestHeader:
    """The API key and version, the correlation id, and the client id."""

    request_api_key: int16 = wire()
    request_api_version: int16 = wire()
    correlation_id: int32 = wire()
    client_id: str | None = wire(versions="1+", nullable="1+", default=None, flexible=False)  # read before the version


@message(NO_API_KEY, versions="0-1", flexible="1+")
class ResponseHeader:
    """The correlation id of the request."""

    correlation_id: int32 = wire()
