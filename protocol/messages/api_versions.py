"""ApiVersions (18)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, int64


@message(ApiKey.API_VERSIONS)
class ApiVersionsRequest:
    """A client's first request: its software, the broker that it expects, and a query of the supported versions."""

    client_software_name: str = wire(versions="3+", default="")  # KIP-511
    client_software_version: str = wire(versions="3+", default="")  # KIP-511
    cluster_id: str | None = wire(versions="5+", nullable="5+", default=None)  # KIP-1242
    node_id: int32 = wire(versions="5+", default=-1)  # KIP-1242


@message(ApiKey.API_VERSIONS)
class ApiVersionsResponse:
    """The version ranges of every API, and the features of the cluster."""

    error_code: int16 = wire()
    api_keys: list[ApiVersion] = wire()
    throttle_time_ms: int32 = wire(versions="1+", default=0)  # KIP-124
    supported_features: list[SupportedFeatureKey] = wire(versions="3+", tag=0, default=IMPLICIT)  # KIP-584
    finalized_features_epoch: int64 = wire(versions="3+", tag=1, default=-1)  # KIP-584
    finalized_features: list[FinalizedFeatureKey] = wire(versions="3+", tag=2, default=IMPLICIT)  # KIP-584
    zk_migration_ready: bool = wire(versions="3+", tag=3, default=False)  # KIP-866


@struct
class ApiVersion:
    """The versions of an API that the broker supports, both ends included."""

    api_key: int16 = wire()
    min_version: int16 = wire()
    max_version: int16 = wire()


@struct
class SupportedFeatureKey:
    """The levels of a feature that the broker supports."""

    name: str = wire()
    min_version: int16 = wire()
    max_version: int16 = wire()


@struct
class FinalizedFeatureKey:
    """The finalized level of a feature in the cluster."""

    name: str = wire()
    max_version_level: int16 = wire()
    min_version_level: int16 = wire()
