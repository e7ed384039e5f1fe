"""The client quotas of an image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from coordinator.cluster.changes import QuotaChanged
from coordinator.cluster.security.quota_limits import Entity, QuotaLimits, address_limits
from protocol.metadata_records.settings import ClientQuotaRecord, EntityData

NO_QUOTAS: Final[Mapping[str, float]] = MappingProxyType({})


class EntityPart(Protocol):
    """A part of an entity, in a record or in a request."""

    entity_type: str
    entity_name: str | None


def entity_of(parts: Iterable[EntityPart]) -> Entity:
    """Returns the entity of these parts; of two parts of the same type the last counts, as in Kafka's map."""
    by_type = {part.entity_type: part.entity_name for part in parts}
    return tuple(sorted(by_type.items(), key=lambda part: part[0]))


def record_of(entity: Entity, key: str, value: float | None) -> ClientQuotaRecord:
    """Returns the record that sets a quota, or removes it if `value` is None."""
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=value is None)


class Quotas:
    """The quotas of entities, by their keys, such as producer_byte_rate."""

    def __init__(self, quotas: Mapping[Entity, Mapping[str, float]] | None = None) -> None:
        self._quotas = {entity: dict(values) for entity, values in (quotas or {}).items()}
        self._limits: dict[str, QuotaLimits] = {}
        """The limits that were computed since the last change, by key."""

    def __len__(self) -> int:
        """The number of entities with quotas."""
        return len(self._quotas)

    def of(self, entity: Entity) -> Mapping[str, float]:
        """Returns the quotas of an entity."""
        return self._quotas.get(entity, NO_QUOTAS)

    def limits(self, key: str) -> QuotaLimits:
        """Returns the limits of clients for a key. Valid until the next change."""
        if key not in self._limits:
            self._limits[key] = QuotaLimits(self._quotas, key)
        return self._limits[key]

    def address_limits(self, key: str) -> dict[str | None, float]:
        """Returns the limits of addresses for a key; None is the default."""
        return address_limits(self._quotas, key)

    def items(self) -> Iterable[tuple[Entity, Mapping[str, float]]]:
        """Returns the entities with their quotas."""
        return self._quotas.items()

    def copy(self) -> Quotas:
        return Quotas(self._quotas)

    def records(self) -> Iterator[ClientQuotaRecord]:
        """Yields the records that set these quotas."""
        return (record_of(entity, key, value) for entity, values in self.items() for key, value in values.items())

    def apply(self, record: ClientQuotaRecord) -> QuotaChanged:
        """Sets or removes a quota."""
        entity = entity_of(record.entity)
        self._limits.clear()
        if not record.remove:
            self._quotas.setdefault(entity, {})[record.key] = record.value
        elif entity in self._quotas:
            self._quotas[entity].pop(record.key, None)
            if not self._quotas[entity]:
                del self._quotas[entity]
        return QuotaChanged(entity, record.key)
