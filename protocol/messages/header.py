"""The headers in front of every request and response.

Requests have header 1 in classic versions, header 2 in flexible versions (KIP-482), and header 0 only in
ControlledShutdown 0. Responses have header 0 in classic versions and header 1 in flexible versions. ApiVersions
responses always have header 0, because the client reads them before it knows the broker's versions (KIP-511).
"""

from __future__ import annotations

from protocol.schema import versioned, wire
from protocol.types import int16, int32

NO_API_KEY = -1
"""The key of headers, which belong to no API."""


@versioned(NO_API_KEY, versions="0-2", flexible="2+")
class RequestHeader:
    """The API key and version, the correlation id, and the client id."""

    request_api_key: int16 = wire()
    request_api_version: int16 = wire()
    correlation_id: int32 = wire()
    client_id: str | None = wire(versions="1+", nullable="1+", default=None, flexible=False)  # read before the version


@versioned(NO_API_KEY, versions="0-1", flexible="1+")
class ResponseHeader:
    """The correlation id of the request."""

    correlation_id: int32 = wire()
