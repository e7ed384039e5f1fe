"""Compares every message in every version, both ways, with kio's codec: a generated class for each message and
version."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from enum import Enum
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from protocol.api_key import ApiKey
from protocol.codec import decode, encode
from protocol.messages import messages_of
from protocol.schema import Kind, fields_of
from tests.protocol.messages.samples import samples, versions_of

UNKNOWN_TO_KIO = {
    ApiKey.PRODUCE: "0-2",
    ApiKey.FETCH: "0-3",
    ApiKey.LIST_OFFSETS: "0",
    ApiKey.LEADER_AND_ISR: "0-7",
    ApiKey.STOP_REPLICA: "0-4",
    ApiKey.UPDATE_METADATA: "0-8",
    ApiKey.CONTROLLED_SHUTDOWN: "0-3",
    ApiKey.OFFSET_COMMIT: "0-1",
    ApiKey.OFFSET_FETCH: "0",
    ApiKey.API_VERSIONS: "5",
    ApiKey.CREATE_TOPICS: "0-1",
    ApiKey.DELETE_TOPICS: "0",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "0-1",
    ApiKey.WRITE_TXN_MARKERS: "0",
    ApiKey.TXN_OFFSET_COMMIT: "6",
    ApiKey.DESCRIBE_ACLS: "0",
    ApiKey.CREATE_ACLS: "0",
    ApiKey.DELETE_ACLS: "0",
    ApiKey.DESCRIBE_CONFIGS: "0",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "0",
    ApiKey.DESCRIBE_LOG_DIRS: "0",
    ApiKey.CREATE_DELEGATION_TOKEN: "0",
    ApiKey.RENEW_DELEGATION_TOKEN: "0",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "0",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "0",
    ApiKey.DELETE_GROUPS: "3",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "1",
    ApiKey.STREAMS_GROUP_DESCRIBE: "1",
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: "0",
    ApiKey.UNREGISTER_CONTROLLER: "0",
    ApiKey.DESCRIBE_SHARE_GROUP_RECORDS: "0",
}
"""API → the versions that kio lacks: those that Kafka 4.0 removed or 4.4 adds."""

RENAMED = {
    ("TxnOffsetCommitRequest", "generation_id_or_member_epoch"): "generation_id",  # 4.4's new name
    ("StreamsGroupHeartbeatResponse", "acceptable_recovery_lag_legacy"): "acceptable_recovery_lag",  # likewise
    ("DirectoryData", "id"): "id_",
    ("ResponseDirectoryData", "id"): "id_",
}
"""(message or struct, field) → its name in kio, if that is not Kafka's newest name."""

SIDES = ((EntityType.request, 0), (EntityType.response, 1))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def kio_versions(api: ApiKey) -> Any:
    name = api_key_map.get(int(api))
    return schema_name_map[name] if name else {}


def classes_of(api: ApiKey) -> tuple[type, type]:
    """Returns the classes of an API's request and response."""
    messages = messages_of(api)
    return messages.request, messages.response


COMPARED = [
    pytest.param(
        classes_of(api)[side], version, kio_versions(api)[version][kind], id=f"{api.name}-{kind.name}-{version}"
    )
    for api in ApiKey
    for kind, side in SIDES
    for version in versions_of(classes_of(api)[side])
    if version in kio_versions(api)
]


def load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def from_kio(theirs: Any, cls: type, version: int) -> Any:
    """Converts their entity to our message; kio's names of time fields lack "_ms"."""
    given = {}
    for field in fields_of(cls):
        if version in field.wire.versions:
            name = RENAMED.get((cls.__name__, field.name), field.name)
            value = getattr(theirs, name if hasattr(theirs, name) else name.removesuffix("_ms"))
            given[field.name] = back(value, field.kind, version)
    return cls(**given)


def back(value: Any, kind: Kind, version: int) -> Any:
    if kind.struct is not None and value is not None:
        return from_kio(value, kind.struct, version)
    if kind.items is not None and value is not None:
        return [back(item, kind.items, version) for item in value]
    if kind.name == "uuid":
        return bytes(16) if value is None else value.bytes
    return plain(value, kind)


def plain(value: Any, kind: Kind) -> Any:
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(milliseconds=1)
    if isinstance(value, Enum):
        return value.value
    return -1 if value is None and kind.name == "int64" else value


def written_by_kio(entity: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


@pytest.mark.parametrize(("cls", "version", "path"), COMPARED)
def test_kio_reads_what_we_write_and_writes_the_same_bytes(cls: type, version: int, path: str) -> None:
    read = entity_reader(load(path))
    for value in samples(cls, version):
        ours = encode(value, version)
        entity, size = read(ours, 0)
        assert size == len(ours)
        assert from_kio(entity, cls, version) == value
        theirs = written_by_kio(entity)
        assert theirs == ours
        assert decode(cls, version, theirs) == (value, len(theirs))


def test_the_table_of_what_kio_lacks_is_exact() -> None:
    lacking = {}
    for api in ApiKey:
        missing = [version for version in versions_of(messages_of(api).request) if version not in kio_versions(api)]
        if missing:
            lacking[api] = f"{missing[0]}-{missing[-1]}" if len(missing) > 1 else f"{missing[0]}"
    assert lacking == UNKNOWN_TO_KIO
