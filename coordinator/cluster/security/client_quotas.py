"""Decides on AlterClientQuotas, and answers DescribeClientQuotas (KIP-546).

Source: Kafka's ClientQuotaControlManager, QuotaConfig and ClientQuotasImage.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from coordinator.cluster.image import Image
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.cluster.rejections import MAX_RECORDS, error_message, too_large
from coordinator.cluster.security.quota_limits import CLIENT_ID, IP, USER, Entity
from coordinator.cluster.security.quotas import entity_of, record_of
from coordinator.engine.result import Ticket, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.messages import alter_client_quotas as alter
from protocol.messages import describe_client_quotas as describe


class QuotaRange(NamedTuple):
    """The valid values of a quota: the maximum, and whether they must be whole numbers."""

    largest: float
    type_name: str
    whole: bool = True


LONG: Final = QuotaRange(2.0**63, "LONG")
INT: Final = QuotaRange(2.0**31 - 1, "INT")
DOUBLE: Final = QuotaRange(math.inf, "DOUBLE", whole=False)

USER_QUOTAS: Final[Mapping[str, QuotaRange]] = {
    "producer_byte_rate": LONG,
    "consumer_byte_rate": LONG,
    "request_percentage": DOUBLE,
    "controller_mutation_rate": DOUBLE,
}
IP_QUOTAS: Final[Mapping[str, QuotaRange]] = {"connection_creation_rate": INT}

FRACTION: Final = 1e-6
"""The largest deviation of a value that counts as a whole number."""


def invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def host_names(request: alter.AlterClientQuotasRequest) -> set[str]:
    """Returns the hosts and addresses that the request names as IP entities."""
    parts = (part for entry in request.entries for part in entry.entity)
    return {part.entity_name for part in parts if part.entity_type == IP and part.entity_name}


def alter_client_quotas(
    image: Image,
    request: alter.AlterClientQuotasRequest,
    ticket: Ticket[alter.AlterClientQuotasResponse],
    resolvable: Container[str],
) -> ClusterResult:
    """Returns the decision, which alters all of an entity's quotas or none; `resolvable` has the addresses and hosts
    that exist."""
    records: list[MetadataRecord] = []
    errors: dict[Entity, KafkaError | None] = {}
    for entry in request.entries:
        entity = entity_of(entry.entity)
        try:
            if (alterations := _alterations(entry)) is None or entity in errors:
                raise invalid(f"Ignoring duplicate entity {_text(entity)}")
            _check_entity(entity, resolvable)
            records += _records(entity, alterations, image.quotas.of(entity))
            errors[entity] = None
        except KafkaError as error:
            errors[entity] = error.detached()
    if len(records) > MAX_RECORDS:
        raise too_large()
    entries = [_entry(entity, error) for entity, error in errors.items()]
    return answered(ticket, alter.AlterClientQuotasResponse(entries=entries), () if request.validate_only else records)


def _alterations(entry: alter.EntryData) -> dict[str, float | None] | None:
    """Returns the new value of each quota, None to remove it. Returns None if a quota is named twice."""
    alterations = {op.key: None if op.remove else op.value for op in entry.ops}
    return alterations if len(alterations) == len(entry.ops) else None


def _text(entity: Entity) -> str:
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def _check_entity(entity: Entity, resolvable: Container[str]) -> None:
    if not entity:
        raise invalid("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise invalid(f"Empty {kind} not supported")
    kinds = dict(entity)
    if IP in kinds and len(kinds) > 1:
        message = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        raise invalid(message)
    host = kinds.get(IP)
    if host is not None and host not in resolvable:
        raise invalid(f"{host} is not a valid IP or resolvable host.")


def _records(
    entity: Entity, alterations: Mapping[str, float | None], current: Mapping[str, float]
) -> list[MetadataRecord]:
    """Returns the records of the changes. Raises KafkaError."""
    ranges = IP_QUOTAS if IP in dict(entity) else USER_QUOTAS
    records: list[MetadataRecord] = []
    for key, value in alterations.items():
        if value is None:
            if key in current:
                records.append(record_of(entity, key, None))
            continue
        _check_value(ranges, key, value)
        if current.get(key) != value:
            records.append(record_of(entity, key, value))
    return records


def _check_value(ranges: Mapping[str, QuotaRange], key: str, value: float) -> None:
    permitted = ranges.get(key)
    if permitted is None:
        raise invalid(f"Invalid configuration key {key}")
    if value <= 0:
        raise invalid(f"Quota {key} must be greater than 0")
    if value > permitted.largest:
        raise invalid(f"Proposed value for {key} is too large for {_article(permitted)}.")
    if permitted.whole and math.fmod(value, 1.0) > FRACTION:
        raise invalid(f"{key} cannot be a fractional value.")


def _article(permitted: QuotaRange) -> str:
    return f"an {permitted.type_name}" if permitted.type_name == "INT" else f"a {permitted.type_name}"


def _entry(entity: Entity, error: KafkaError | None) -> alter.ResponseEntryData:
    code, message = (ErrorCode.NONE, None) if error is None else (error.code, error_message(error))
    parts = [alter.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return alter.ResponseEntryData(error_code=code, error_message=message, entity=parts)


def rejected_alteration(request: alter.AlterClientQuotasRequest, error: KafkaError) -> alter.AlterClientQuotasResponse:
    """Returns the response that rejects every entry of a request."""
    entries = [
        alter.ResponseEntryData(error_code=error.code, error_message=error_message(error), entity=entry.entity)
        for entry in request.entries
    ]
    return alter.AlterClientQuotasResponse(entries=entries)


class Match(IntEnum):
    """The ways in which a filter matches a part of an entity."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


class EntityFilter:
    """The filter of a DescribeClientQuotas request."""

    def __init__(self, request: describe.DescribeClientQuotasRequest) -> None:
        """Parses the filter. Raises KafkaError(INVALID_REQUEST), or UNSUPPORTED_VERSION for an unknown entity type."""
        self._names: dict[str, str | None] = {}
        self._any: set[str] = set()
        self._strict = request.strict
        for component in request.components:
            self._add(component)
        kinds = self._names.keys() | self._any
        if IP in kinds and len(kinds) > 1:
            message = (
                "Invalid entity filter component combination. IP filter component should not be used with user or "
                "clientId filter component."
            )
            raise invalid(message)

    def _add(self, component: describe.ComponentData) -> None:
        kind, name = component.entity_type, component.match
        if not kind:
            raise invalid("Invalid empty entity type.")
        if kind in self._names or kind in self._any:
            raise invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if component.match_type not in Match._value2member_map_:
            raise invalid(f"Unknown match type {component.match_type}")
        match = Match(component.match_type)
        if match is Match.EXACT and name is None:
            raise invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if match is not Match.EXACT and name is not None:
            raise invalid(f"Request specified MATCH_TYPE_{match.name}, but also specified a match string.")
        if match is Match.SPECIFIED:
            self._any.add(kind)
        else:
            self._names[kind] = name

    def matches(self, entity: Entity) -> bool:
        """True if the filter matches the entity."""
        parts = dict(entity)
        if self._strict and len(parts) != len(self._names) + len(self._any):
            return False
        named = all(kind in parts and parts[kind] == name for kind, name in self._names.items())
        return named and self._any <= parts.keys()


def described(entity: Entity, values: Mapping[str, float]) -> describe.EntryData:
    """Returns the quotas of an entity as DescribeClientQuotas returns them."""
    return describe.EntryData(
        entity=[describe.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        values=[describe.ValueData(key=key, value=value) for key, value in values.items()],
    )
