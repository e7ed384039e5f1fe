"""ListConfigResources (74)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int8, int16, int32


@message(ApiKey.LIST_CONFIG_RESOURCES)
class ListConfigResourcesRequest:
    """Requests the resources that have configs, by type (KIP-1142; version 0 lists client metrics, KIP-1000)."""

    resource_types: list[int8] = wire(versions="1+", default=IMPLICIT)  # KIP-1142


@message(ApiKey.LIST_CONFIG_RESOURCES)
class ListConfigResourcesResponse:
    """Names and types of the resources."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    config_resources: list[ConfigResource] = wire()


@struct
class ConfigResource:
    resource_name: str = wire()
    resource_type: int8 = wire(versions="1+", default=16)  # KIP-1142
