"""Quotas of users, client ids and addresses (KIP-546): lists and changes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from commands.client.cluster_client import ClusterClient
from commands.errors import explain, raise_if
from commands.printing import Row
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

DEFAULT: Final = "<default>"
"""The word in place of a name that stands for all entities without a quota of their own."""

ENTITIES: Final = ("user", "client-id", "ip")
EXACTLY, THE_DEFAULT, ANY_NAME = range(3)


async def quota_rows(cluster: ClusterClient, named: Mapping[str, str]) -> list[Row]:
    """Returns a row for each entity with quotas, or for the named entities only. Raises CommandError."""
    components = [
        ComponentData(
            entity_type=entity,
            match_type=THE_DEFAULT if name == DEFAULT else EXACTLY,
            match=None if name == DEFAULT else name,
        )
        for entity, name in named.items()
    ]
    request = DescribeClientQuotasRequest(components=components, strict=False)
    answer = await cluster.any(request, DescribeClientQuotasResponse)
    raise_if("quotas", answer.error_code, answer.error_message)
    rows: list[Row] = [
        {
            **{part.entity_type: DEFAULT if part.entity_name is None else part.entity_name for part in entry.entity},
            "quotas": {value.key: value.value for value in sorted(entry.values, key=lambda value: value.key)},
        }
        for entry in answer.entries or ()
    ]
    return sorted(rows, key=str)


async def alter_quotas(
    cluster: ClusterClient, named: Mapping[str, str], changes: Mapping[str, float | None], *, dry_run: bool = False
) -> list[Row]:
    """Sets quotas of an entity; None removes a quota. Returns a row with the result."""
    operations = [
        OpData(key=key, value=0.0 if value is None else value, remove=value is None) for key, value in changes.items()
    ]
    entity = [
        EntityData(entity_type=kind, entity_name=None if name == DEFAULT else name) for kind, name in named.items()
    ]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=operations)], validate_only=dry_run)
    answer = await cluster.controller(request, AlterClientQuotasResponse)
    return [
        {**named, "error": explain(result.error_code, result.error_message)}
        if result.error_code
        else {**named, "result": "would be changed" if dry_run else "changed"}
        for result in answer.entries
    ]
