"""AlterClientQuotas (49)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import float64, int16, int32


@message(ApiKey.ALTER_CLIENT_QUOTAS)
class AlterClientQuotasRequest:
    """Sets or removes quotas of users, client ids and addresses (KIP-546)."""

    entries: list[EntryData] = wire()
    validate_only: bool = wire()


@struct
class EntryData:
    """A quota entity, by its components, and the quotas to set or remove."""

    entity: list[EntityData] = wire()
    ops: list[OpData] = wire()


@struct
class EntityData:
    """A component of an entity: type user, client-id or ip. A null name is the default entity."""

    entity_type: str = wire()
    entity_name: str | None = wire(nullable="0+")


@struct
class OpData:
    """A quota, such as producer_byte_rate, to set or remove."""

    key: str = wire()
    value: float64 = wire()
    remove: bool = wire()


@message(ApiKey.ALTER_CLIENT_QUOTAS)
class AlterClientQuotasResponse:
    """The error code for each entity."""

    throttle_time_ms: int32 = wire(default=0)
    entries: list[ResponseEntryData] = wire()


@struct
class ResponseEntryData:
    """A quota entity, by its components, and the quotas to set or remove."""

    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    entity: list[EntityData] = wire()
