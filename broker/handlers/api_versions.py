"""ApiVersions (18): lists the APIs and versions that this broker supports.

v1 adds the throttle time, v3 is flexible and brings the client's name and the features (KIP-511, KIP-584), v4 allows
features whose lowest version is 0, v5 the cluster and node that the client expects (KIP-1242). The answer's header is
never flexible, and a version that the broker does not know is answered in version 0, so that any client can read it.
"""

from __future__ import annotations

from broker.dispatch.api import Api, Apis
from broker.dispatch.call import Call
from broker.dispatch.host import Host
from broker.request.authorisation import PUBLIC
from coordinator.cluster.brokers.features import KRAFT_VERSION, SUPPORTED
from protocol.api_key import ApiKey
from protocol.codec import encode
from protocol.errors import ErrorCode
from protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from protocol.schema import since

CLIENT_SOFTWARE_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-")
FIRST_FEATURE_VERSION = since(ApiVersionsRequest, "client_software_name")
FIRST_ZERO_FEATURE_VERSION = 4
NO_NODE = -1


async def api_versions(call: Call[ApiVersionsRequest]) -> ApiVersionsResponse | bytes:
    """Returns the table of APIs, and the features of this broker and of the cluster."""
    request = call.request
    if call.version >= FIRST_FEATURE_VERSION:
        code = error_of(call.host, request)
        if code:
            return ApiVersionsResponse(error_code=code, api_keys=[])
        call.connection.client_software = (request.client_software_name, request.client_software_version)
    if call.host.quotas is not None:  # the answer may get a throttle time, which is not its first field
        return served(call.host, call.version)
    return body(call.host, call.version)


def body(host: Host, version: int) -> bytes:
    """Returns the encoded body, which is kept until the metadata changes, because every connection begins with this
    request."""
    offset, encoded = host.api_versions.get(version, (None, b""))
    if offset != host.image.offset:
        encoded = encode(served(host, version), version)
        host.api_versions[version] = host.image.offset, encoded
    return encoded


def error_of(host: Host, request: ApiVersionsRequest) -> ErrorCode:
    """Returns the error of a malformed client name, or of a wrong cluster or node (KIP-1242); NONE if there is none."""
    if not (is_software_name(request.client_software_name) and is_software_name(request.client_software_version)):
        return ErrorCode.INVALID_REQUEST
    if (request.cluster_id is None) != (request.node_id == NO_NODE):
        return ErrorCode.INVALID_REQUEST
    expected = (None, NO_NODE), (host.image.cluster_id, host.config.node_id)
    if (request.cluster_id, request.node_id) not in expected:
        return ErrorCode.REBOOTSTRAP_REQUIRED
    return ErrorCode.NONE


def served(host: Host, version: int) -> ApiVersionsResponse:
    image = host.image
    supported = [
        SupportedFeatureKey(name=name, min_version=levels.min_level, max_version=levels.max_level)
        for name, levels in SUPPORTED.items()
        if levels.min_level > 0 or version >= FIRST_ZERO_FEATURE_VERSION
    ]
    levels_in_force = {**image.features, KRAFT_VERSION: image.kraft_version}
    finalized = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in levels_in_force.items()
        if level > 0
    ]
    return ApiVersionsResponse(
        error_code=0,
        api_keys=[row for row in api_ranges(host.apis) if row.api_key not in host.unadvertised],
        supported_features=supported,
        finalized_features_epoch=image.offset,
        finalized_features=finalized,
    )


def api_ranges(apis: Apis) -> list[ApiVersion]:
    return [ApiVersion(api_key=key, min_version=first, max_version=last) for key, (first, last) in apis.ranges()]


def unsupported_version(apis: Apis) -> ApiVersionsResponse:
    """Returns the answer, in version 0, to an ApiVersions request that is newer than this broker: the versions that the
    client may use instead (KIP-511)."""
    own = [api_range for api_range in api_ranges(apis) if api_range.api_key == ApiKey.API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)


def is_software_name(text: str) -> bool:
    """True for letters, digits, dots and dashes, with a letter or digit at both ends."""
    return bool(text) and CLIENT_SOFTWARE_CHARACTERS.issuperset(text) and text[0] not in ".-" and text[-1] not in ".-"


API = Api(ApiVersionsRequest, ApiVersionsResponse, api_versions, authorize=PUBLIC, unsupported=unsupported_version)
