"""Selects the version of an API between two brokers: the highest that both support (KIP-35)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from client.errors import HandshakeFailed, UnsupportedVersion
from protocol.api_key import ApiKey
from protocol.codec import decode
from protocol.errors import ErrorCode, ProtocolError
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.schema import identity
from protocol.types import Buffer
from protocol.versions import ANY_VERSION, NONE, Versions

OWN_API_VERSIONS: Final = identity(ApiVersionsRequest).versions
CORRELATION_BYTES: Final = 4
"""Size of the header of an ApiVersions response, in all versions."""


class PeerVersions:
    """A peer's ApiVersions response: the versions of its APIs, and the levels of its cluster's features."""

    __slots__ = ("features", "ranges")

    def __init__(self, ranges: Mapping[int, Versions], features: Mapping[str, int]) -> None:
        self.ranges = ranges
        """The supported versions by API key."""
        self.features = features
        """The finalized feature levels (KIP-584) by feature name."""

    @classmethod
    def of(cls, response: ApiVersionsResponse) -> PeerVersions:
        ranges = {api.api_key: Versions(api.min_version, api.max_version) for api in response.api_keys}
        return cls(ranges, {level.name: level.max_version_level for level in response.finalized_features})

    def pick(self, peer: str, request: type, max_version: int = ANY_VERSION) -> int:
        """Returns the highest version of a request that both sides support, up to `max_version`. Raises
        UnsupportedVersion, which names both ranges."""
        key, own, _ = identity(request)
        theirs = self.ranges.get(key, NONE)
        highest = min(own.last, theirs.last, max_version)
        if highest < max(own.first, theirs.first):
            most = "" if max_version == ANY_VERSION else f", and {max_version} is the highest that the caller allows"
            api = ApiKey(key).name
            raise UnsupportedVersion(peer, f"speaks versions {theirs} of {api} ({key}), this side {own}{most}")
        return highest


def read_api_versions(frame: Buffer, version: int) -> ApiVersionsResponse:
    """Decodes the response to ApiVersions at `version`. A peer that doesn't support the version answers in version 0
    with UNSUPPORTED_VERSION (KIP-511)."""
    unsupported = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")
    if bytes(frame[CORRELATION_BYTES : CORRELATION_BYTES + 2]) == unsupported:
        version = 0
    response, end = decode(ApiVersionsResponse, version, frame, CORRELATION_BYTES)
    if end != len(frame):
        raise ProtocolError(f"ApiVersionsResponse v{version} ends before its frame", offset=end)
    return response


def downgraded(peer: str, response: ApiVersionsResponse, version: int) -> int:
    """Returns the version for the next ApiVersions request to a peer that doesn't support `version`: the highest that
    the peer's response names, or 0 if it names none, as before KIP-511. Raises HandshakeFailed if this side doesn't
    support that version, or it isn't lower."""
    own = [api for api in response.api_keys if api.api_key == ApiKey.API_VERSIONS]
    lower = min(own[0].max_version, OWN_API_VERSIONS.last) if own else 0
    lowest = own[0].min_version if own else 0
    if not max(lowest, OWN_API_VERSIONS.first) <= lower < version:
        theirs = Versions(own[0].min_version, own[0].max_version) if own else "unknown"
        reason = f"speaks versions {theirs} of ApiVersions, but not {version}; this side speaks {OWN_API_VERSIONS}"
        raise HandshakeFailed(peer, reason, ErrorCode.UNSUPPORTED_VERSION)
    return lower
