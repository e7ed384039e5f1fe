"""DescribeConfigs (32)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int8, int16, int32


@message(ApiKey.DESCRIBE_CONFIGS)
class DescribeConfigsRequest:
    """Requests the configs of resources, such as topics, brokers and groups. Null keys request all."""

    resources: list[DescribeConfigsResource] = wire()
    include_synonyms: bool = wire(versions="1+", default=False)  # KIP-226
    include_documentation: bool = wire(versions="3+", default=False)  # KIP-569


@struct
class DescribeConfigsResource:
    """A resource (type 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group). Null keys request all."""

    resource_type: int8 = wire()
    resource_name: str = wire()
    configuration_keys: list[str] | None = wire(nullable="0+")


@message(ApiKey.DESCRIBE_CONFIGS)
class DescribeConfigsResponse:
    """Values with source, type, synonyms and documentation."""

    throttle_time_ms: int32 = wire(default=0)
    results: list[DescribeConfigsResult] = wire()


@struct
class DescribeConfigsResult:
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    resource_type: int8 = wire()
    resource_name: str = wire()
    configs: list[DescribeConfigsResourceResult] = wire()


@struct
class DescribeConfigsResourceResult:
    """A config; source 1 topic, 2 broker, 3 cluster default, 4 static file, 5 built in, 6 logger, 7 client metrics,
    8 group."""

    name: str = wire()
    value: str | None = wire(nullable="0+")
    read_only: bool = wire()
    is_default: bool = wire(versions="0", default=False)
    config_source: int8 = wire(versions="1+", default=-1)  # KIP-226
    is_sensitive: bool = wire()
    synonyms: list[DescribeConfigsSynonym] = wire(versions="1+", default=IMPLICIT)  # KIP-226
    config_type: int8 = wire(versions="3+", default=0)  # KIP-569
    documentation: str | None = wire(versions="3+", nullable="3+", default=None)  # KIP-569


@struct
class DescribeConfigsSynonym:
    """A source of a config's value, in order of precedence."""

    name: str = wire()
    value: str | None = wire(nullable="0+")
    source: int8 = wire()
