"""AlterClientQuotas (49)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import float64, int16, int32


@message(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    """Sets or removes quotas of users, client ids and addresses (KIP-546)."""

    entries: list[EntryData] = wire()
    validate_only: bool = wire()


@struct
class EntryData:
    """A quota entity, as its parts, and what to set or remove for it."""

    entity: list[EntityData] = wire()
    ops: list[OpData] = wire()


@struct
class EntityData:
    """One part of an entity: type user, client-id or ip; a null name is the default entity."""

    entity_type: str = wire()
    entity_name: str | None = wire(nullable="0+")


@struct
class OpData:
    """One quota, such as producer_byte_rate, set to a value or removed."""

    key: str = wire()
    value: float64 = wire()
    remove: bool = wire()


@message(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    """Whether each entity's quotas were changed."""

    throttle_time_ms: int32 = wire(default=0)
    entries: list[ResponseEntryData] = wire()


@struct
class ResponseEntryData:
    """A quota entity, as its parts, and what to set or remove for it."""

    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    entity: list[EntityData] = wire()
