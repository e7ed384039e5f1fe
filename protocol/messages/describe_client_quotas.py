"""DescribeClientQuotas (48)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import float64, int8, int16, int32


@message(ApiKey.DESCRIBE_CLIENT_QUOTAS)
class DescribeClientQuotasRequest:
    """Requests the quotas of users, client ids and addresses that match (KIP-546)."""

    components: list[ComponentData] = wire()
    strict: bool = wire()


@struct
class ComponentData:
    """A filter on a component. Match type: 0 this name, 1 the default entity, 2 any entity with the component."""

    entity_type: str = wire()
    match_type: int8 = wire()
    match: str | None = wire(nullable="0+")


@message(ApiKey.DESCRIBE_CLIENT_QUOTAS)
class DescribeClientQuotasResponse:
    """Quota values by entity."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    entries: list[EntryData] | None = wire(nullable="0+")


@struct
class EntryData:
    entity: list[EntityData] = wire()
    values: list[ValueData] = wire()


@struct
class EntityData:
    """A component of an entity: type user, client-id or ip. A null name is the default entity."""

    entity_type: str = wire()
    entity_name: str | None = wire(nullable="0+")


@struct
class ValueData:
    key: str = wire()
    value: float64 = wire()
