"""IncrementalAlterConfigs (44)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32


@message(ApiKey.INCREMENTAL_ALTER_CONFIGS)
class IncrementalAlterConfigsRequest:
    """Sets, deletes, appends to or subtracts from single configs (KIP-339)."""

    resources: list[AlterConfigsResource] = wire()
    validate_only: bool = wire()


@struct
class AlterConfigsResource:
    resource_type: int8 = wire()
    resource_name: str = wire()
    configs: list[AlterableConfig] = wire()


@struct
class AlterableConfig:
    """A change. Operation: 0 set, 1 delete, 2 append to a list, 3 subtract from a list."""

    name: str = wire()
    config_operation: int8 = wire()
    value: str | None = wire(nullable="0+")


@message(ApiKey.INCREMENTAL_ALTER_CONFIGS)
class IncrementalAlterConfigsResponse:
    """The error code for each resource."""

    throttle_time_ms: int32 = wire(default=0)
    responses: list[AlterConfigsResourceResponse] = wire()


@struct
class AlterConfigsResourceResponse:
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    resource_type: int8 = wire()
    resource_name: str = wire()
