"""Compares every message in every version, both ways, with kafka-python's codec, which compiles Kafka's own JSON
schemas."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import kafka.protocol
import pytest
from kafka.protocol.api_message import ApiMessage

from protocol.api_key import ApiKey
from protocol.codec import decode, encode
from protocol.messages import messages_of
from protocol.schema import Field, Kind, fields_of, identity
from tests.protocol.messages.samples import samples, versions_of

UNKNOWN_TO_KAFKA_PYTHON = {
    ApiKey.LEADER_AND_ISR: "0-7",
    ApiKey.STOP_REPLICA: "0-4",
    ApiKey.UPDATE_METADATA: "0-8",
    ApiKey.CONTROLLED_SHUTDOWN: "0-3",
    ApiKey.API_VERSIONS: "5",
    ApiKey.TXN_OFFSET_COMMIT: "6",
    ApiKey.CREATE_DELEGATION_TOKEN: "0-3",
    ApiKey.RENEW_DELEGATION_TOKEN: "0-2",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "0-2",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "0-3",
    ApiKey.DELETE_GROUPS: "3",
    ApiKey.VOTE: "0-2",
    ApiKey.BEGIN_QUORUM_EPOCH: "0-1",
    ApiKey.END_QUORUM_EPOCH: "0-1",
    ApiKey.ALTER_PARTITION: "2-3",
    ApiKey.ENVELOPE: "0",
    ApiKey.FETCH_SNAPSHOT: "0-1",
    ApiKey.BROKER_REGISTRATION: "0-4",
    ApiKey.BROKER_HEARTBEAT: "0-2",
    ApiKey.UNREGISTER_BROKER: "0",
    ApiKey.ALLOCATE_PRODUCER_IDS: "0",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "0-1",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "0-1",
    ApiKey.CONTROLLER_REGISTRATION: "0",
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "0",
    ApiKey.PUSH_TELEMETRY: "0",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: "0",
    ApiKey.SHARE_GROUP_HEARTBEAT: "1",
    ApiKey.SHARE_GROUP_DESCRIBE: "1",
    ApiKey.SHARE_FETCH: "1-2",
    ApiKey.SHARE_ACKNOWLEDGE: "1-2",
    ApiKey.ADD_RAFT_VOTER: "0-1",
    ApiKey.REMOVE_RAFT_VOTER: "0",
    ApiKey.UPDATE_RAFT_VOTER: "0",
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: "0",
    ApiKey.READ_SHARE_GROUP_STATE: "0",
    ApiKey.WRITE_SHARE_GROUP_STATE: "0-1",
    ApiKey.DELETE_SHARE_GROUP_STATE: "0",
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: "0-1",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "0-1",
    ApiKey.STREAMS_GROUP_DESCRIBE: "0-1",
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: "0-1",
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: "0",
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: "0",
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: "0",
    ApiKey.UNREGISTER_CONTROLLER: "0",
    ApiKey.DESCRIBE_SHARE_GROUP_RECORDS: "0",
}
"""API → the versions that kafka-python lacks. They are compared with kio or Kafka's own classes instead."""

RENAMED = {
    ("TxnOffsetCommitRequest", "generation_id_or_member_epoch"): "generation_id",  # 4.4's new name
    ("MetadataResponse", "cluster_authorized_operations"): "authorized_operations",
    ("MetadataResponseTopic", "topic_authorized_operations"): "authorized_operations",
    ("DescribeClusterResponse", "cluster_authorized_operations"): "authorized_operations",
}
"""(message or struct, field) → its name in kafka-python, if that is not Kafka's newest name."""
AUTHORIZED_OPERATIONS = frozenset(
    {*(key for key in RENAMED if "authorized" in key[1]), ("DescribedGroup", "authorized_operations")}
)
"""The fields that kafka-python converts to sets of bits."""


def _subclasses(cls: type) -> Iterator[type]:
    child: type
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)


def _theirs() -> dict[str, Any]:
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name and "generate" not in module.name:
            importlib.import_module(module.name)
    return {cls.__name__: cls for cls in _subclasses(ApiMessage)}


THEIRS = _theirs()


def is_in_kafka_python(cls: type, version: int) -> bool:
    theirs = THEIRS.get(cls.__name__)
    return theirs is not None and version <= theirs.max_version


COMPARED = [
    pytest.param(cls, version, id=f"{cls.__name__}-{version}")
    for api in ApiKey
    for cls in messages_of(api)[1:]
    for version in versions_of(cls)
    if is_in_kafka_python(cls, version)
]


def to_theirs(value: Any, cls: Any, version: int, *, flexible: bool) -> Any:
    """Converts our message to theirs, field by field; leaves out a tagged field that has its default, as on the
    wire."""
    default = type(value)()
    given = {}
    for field in fields_of(type(value)):
        ours = getattr(value, field.name)
        if version not in field.wire.versions:
            continue
        if flexible and version in field.wire.tagged and ours == getattr(default, field.name):
            continue
        name = theirs_name(type(value), field)
        if (type(value).__name__, field.name) in AUTHORIZED_OPERATIONS:
            given[name] = {bit for bit in range(32) if ours >> bit & 1}
        else:
            given[name] = convert(ours, field.kind, cls._struct.fields[name], version, flexible=flexible)
    return cls(version=version, **given)


def theirs_name(cls: type, field: Field) -> str:
    return RENAMED.get((cls.__name__, field.name), field.name)


def convert(value: Any, kind: Kind, theirs: Any, version: int, *, flexible: bool) -> Any:
    if value is None:
        return None
    if kind.struct is not None:
        return to_theirs(value, theirs.data_class, version, flexible=flexible)
    if kind.items is not None and kind.items.struct is not None:
        return [to_theirs(item, theirs.data_class, version, flexible=flexible) for item in value]
    if kind.items is not None and kind.items.name == "uuid":
        return [UUID(bytes=item) for item in value]
    return UUID(bytes=value) if kind.name == "uuid" else value


def from_theirs(theirs: Any, cls: type, version: int) -> Any:
    """Converts their message to ours. A struct in a tag that was not sent is None in their message, and has all
    defaults in ours."""
    given = {}
    for field in fields_of(cls):
        value = getattr(theirs, theirs_name(cls, field), None) if version in field.wire.versions else None
        if isinstance(value, set):  # authorised operations, which they take apart
            value = sum(-(2**31) if bit == 31 else 1 << bit for bit in value)
        if version in field.wire.versions and (value is not None or version in field.wire.nullable):
            given[field.name] = back(value, field.kind, version)
    return cls(**given)


def back(value: Any, kind: Kind, version: int) -> Any:
    if value is None:
        return None
    if kind.struct is not None:
        return from_theirs(value, kind.struct, version)
    if kind.items is not None:
        return [back(item, kind.items, version) for item in value]
    if kind.name == "uuid":
        return UUID(str(value)).bytes
    return bytes(value) if kind.name in ("bytes", "records") else value


@pytest.mark.parametrize(("cls", "version"), COMPARED)
def test_bytes_equal_those_of_kafka_python(cls: type, version: int) -> None:
    for value in samples(cls, version):
        ours = encode(value, version)
        theirs = to_theirs(value, THEIRS[cls.__name__], version, flexible=version in identity(cls).flexible)
        assert ours == theirs.encode(version=version)
        assert decode(cls, version, ours) == (value, len(ours))


@pytest.mark.parametrize(("cls", "version"), COMPARED)
def test_kafka_python_reads_what_we_write(cls: type, version: int) -> None:
    for value in samples(cls, version):
        ours = encode(value, version)
        theirs = ApiMessage.decode.__func__(
            THEIRS[cls.__name__], ours, version=version
        )  # their own may guess at errors
        assert from_theirs(theirs, cls, version) == value


def test_the_table_of_what_kafka_python_lacks_is_exact() -> None:
    lacking = {}
    for api in ApiKey:
        cls = messages_of(api).request
        missing = [version for version in versions_of(cls) if not is_in_kafka_python(cls, version)]
        if missing:
            lacking[api] = f"{missing[0]}-{missing[-1]}" if len(missing) > 1 else f"{missing[0]}"
    assert lacking == UNKNOWN_TO_KAFKA_PYTHON
