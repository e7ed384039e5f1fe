"""Configs, quotas, features and producer ids in the metadata log."""

from __future__ import annotations

from protocol.schema import struct, versioned, wire
from protocol.types import float64, int8, int16, int32, int64


@versioned(4, versions="0", flexible="0+")
class ConfigRecord:
    """A config of a resource; null removes it. Resource types: 2 topic, 4 broker, 16 client metrics, 32 group."""

    resource_type: int8 = wire()
    resource_name: str = wire()
    name: str = wire()
    value: str | None = wire(nullable="0+")


@versioned(14, versions="0", flexible="0+")
class ClientQuotaRecord:
    """A quota of an entity, set or removed."""

    entity: list[EntityData] = wire()
    key: str = wire()
    value: float64 = wire()
    remove: bool = wire()


@struct
class EntityData:
    """A component of an entity: type user, client-id or ip. A null name is the default entity."""

    entity_type: str = wire()
    entity_name: str | None = wire(nullable="0+")


@versioned(12, versions="0", flexible="0+")
class FeatureLevelRecord:
    """A feature's finalized level. The level of metadata.version is the first record of every log and snapshot."""

    name: str = wire()
    feature_level: int16 = wire()


@versioned(15, versions="0", flexible="0+")
class ProducerIdsRecord:
    """The allocation of a block of producer ids to a broker, and the first id of the next block (KIP-730)."""

    broker_id: int32 = wire()
    broker_epoch: int64 = wire(default=-1)
    next_producer_id: int64 = wire()
