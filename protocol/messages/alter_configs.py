"""AlterConfigs (33)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32


@message(ApiKey.ALTER_CONFIGS)
class AlterConfigsRequest:
    """Replaces all dynamic configs of resources by the request's configs."""

    resources: list[AlterConfigsResource] = wire()
    validate_only: bool = wire()


@struct
class AlterConfigsResource:
    """A resource (type 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group) and all of its new configs."""

    resource_type: int8 = wire()
    resource_name: str = wire()
    configs: list[AlterableConfig] = wire()


@struct
class AlterableConfig:
    """A config and its new value. Null removes the override."""

    name: str = wire()
    value: str | None = wire(nullable="0+")


@message(ApiKey.ALTER_CONFIGS)
class AlterConfigsResponse:
    """The error code for each resource."""

    throttle_time_ms: int32 = wire(default=0)
    responses: list[AlterConfigsResourceResponse] = wire()


@struct
class AlterConfigsResourceResponse:
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    resource_type: int8 = wire()
    resource_name: str = wire()
