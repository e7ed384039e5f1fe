"""Which version of an API two brokers speak with each other: the highest that both have (KIP-35)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from protocol.api_key import ApiKey
from protocol.codec import decode
from protocol.errors import ErrorCode, ProtocolError
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.peer_errors import HandshakeFailed, UnsupportedVersion
from protocol.schema import ANY_VERSION, NONE, Versions, identity
from protocol.types import Buffer

OWN_API_VERSIONS: Final = identity(ApiVersionsRequest).versions
CORRELATION_BYTES: Final = 4
"""The whole header of an answer to ApiVersions, in all its versions."""


class PeerVersions:
    """A peer's answer to ApiVersions: the versions of its APIs, and the levels of its cluster's features."""

    __slots__ = ("features", "ranges")

    def __init__(self, ranges: Mapping[int, Versions], features: Mapping[str, int]) -> None:
        self.ranges = ranges
        """By API key."""
        self.features = features
        """The finalized levels (KIP-584), by the feature's name."""

    @classmethod
    def of(cls, response: ApiVersionsResponse) -> PeerVersions:
        ranges = {api.api_key: Versions(api.min_version, api.max_version) for api in response.api_keys}
        return cls(ranges, {level.name: level.max_version_level for level in response.finalized_features})

    def pick(self, peer: str, request: type, max_version: int = ANY_VERSION) -> int:
        """Returns the highest version of a request that both sides speak, up to `max_version`. Raises
        UnsupportedVersion, with the ranges of both, when there is none."""
        key, own, _ = identity(request)
        theirs = self.ranges.get(key, NONE)
        highest = min(own.last, theirs.last, max_version)
        if highest < max(own.first, theirs.first):
            most = "" if max_version == ANY_VERSION else f", and {max_version} is the highest that the caller allows"
            api = ApiKey(key).name
            raise UnsupportedVersion(peer, f"speaks versions {theirs} of {api} ({key}), this side {own}{most}")
        return highest


def read_api_versions(frame: Buffer, version: int) -> ApiVersionsResponse:
    """Returns the answer to ApiVersions at `version`. A peer that does not know that version answers in version 0 with
    UNSUPPORTED_VERSION (KIP-511)."""
    unsupported = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")
    if bytes(frame[CORRELATION_BYTES : CORRELATION_BYTES + 2]) == unsupported:
        version = 0
    response, end = decode(ApiVersionsResponse, version, frame, CORRELATION_BYTES)
    if end != len(frame):
        raise ProtocolError(f"ApiVersionsResponse v{version} ends before its frame", offset=end)
    return response


def downgraded(peer: str, response: ApiVersionsResponse, version: int) -> int:
    """Returns the version in which to ask a peer again that did not know `version` of ApiVersions: its highest, as it
    says, or 0 where it says nothing, as brokers before KIP-511 do. Raises HandshakeFailed when this side does not speak
    that version, or it is not lower."""
    own = [api for api in response.api_keys if api.api_key == ApiKey.API_VERSIONS]
    lower = min(own[0].max_version, OWN_API_VERSIONS.last) if own else 0
    lowest = own[0].min_version if own else 0
    if not max(lowest, OWN_API_VERSIONS.first) <= lower < version:
        theirs = Versions(own[0].min_version, own[0].max_version) if own else "unknown"
        reason = f"speaks versions {theirs} of ApiVersions, but not {version}; this side speaks {OWN_API_VERSIONS}"
        raise HandshakeFailed(peer, reason, ErrorCode.UNSUPPORTED_VERSION)
    return lower
