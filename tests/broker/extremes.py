"""Valid requests, except for one number, which is the minimum or the maximum of its type.

They are made from the schemas, so that every served API is covered: each number and each flag of a request, in each
version. The tables here have plausible values for the other fields, by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from protocol.schema import Field, Kind, fields_of
from tests.broker.asking import batch

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSIGNED = {"uint16": 16, "uint32": 32}

TOPIC = "extremes"
STRINGS: Mapping[str, str | None] = {
    "topic": TOPIC,
    "name": TOPIC,
    "topic_name": TOPIC,
    "topic_names": TOPIC,
    "source_topics": TOPIC,
    "repartition_sink_topics": TOPIC,
    "group_id": "group",
    "groups": "group",
    "groups_names": "group",
    "group_ids": "group",
    "member_id": "member",
    "key": "group",
    "coordinator_keys": "group",
    "transactional_id": "transactional",
    "transactional_ids": "transactional",
    "v3_and_below_transactional_id": "transactional",
    "protocol_type": "consumer",
    "protocol_name": "range",
    "instance_id": None,
    "group_instance_id": None,
    "server_assignor": None,
    "subscribed_topic_regex": None,
    "subscribed_topic_names": TOPIC,
    "states_filter": "Stable",
    "types_filter": "classic",
    "state_filters": "Ongoing",
    "client_software_name": "test",
    "client_software_version": "1",
    "cluster_id": None,
    "principal": "User:a",
    "principal_filter": "User:a",
    "host": "*",
    "host_filter": "*",
    "resource_name": TOPIC,
    "configuration_keys": "retention.ms",
    "feature": "share.version",
}
"""Texts by field name; all other texts are empty."""

NUMBERS: Mapping[str, int] = {
    "acks": -1,
    "timeout_ms": 100,
    "replica_id": -1,
    "replica_epoch": -1,
    "max_bytes": 1 << 20,
    "partition_max_bytes": 1 << 20,
    "session_epoch": -1,
    "current_leader_epoch": -1,
    "last_fetched_epoch": -1,
    "max_num_offsets": 1,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "retention_time_ms": -1,
    "transaction_timeout_ms": 10_000,
    "producer_id": -1,
    "producer_epoch": -1,
    "max_records": 10,
    "max_ranges": 10,
    "batch_size": 10,
    "num_partitions": -1,
    "replication_factor": -1,
    "count": 2,
    "response_partition_limit": 10,
    "committed_leader_epoch": -1,
    "commit_timestamp": -1,
    "duration_filter": -1,
    "max_version_level": 1,
    "upgrade_type": 1,
    "endpoint_type": 1,
    "resource_type": 2,
    "resource_types": 2,
    "resource_type_filter": 2,
    "resource_pattern_type": 3,
    "pattern_type_filter": 3,
    "operation": 3,
    "permission_type": 3,
    "permission_type_filter": 3,
    "election_type": 0,
    "broker_id": 7,
    "broker_ids": 1,
    "replicas": 1,
    "acknowledge_types": 1,
    "delivery_count": 1,
}
"""Numbers by field name; all other numbers are 0. With these numbers no request has to wait."""

IN_A_TRANSACTION: Mapping[str, object] = {
    "producer_id": 0,
    "producer_epoch": 0,
    "v3_and_below_producer_id": 0,
    "v3_and_below_producer_epoch": 0,
}
SHARING: Mapping[str, object] = {"group_id": "sharing"}
STREAMING: Mapping[str, object] = {"group_id": "streaming"}
SPECIAL: Mapping[str, Mapping[str, object]] = {
    "CreateTopicsRequest": {"name": "absent", "validate_only": True},
    "CreatableTopic": {"name": "absent"},
    "JoinGroupRequest": {"group_id": "classic", "member_id": ""},
    "ConsumerGroupHeartbeatRequest": {"member_epoch": 1},
    "ShareGroupHeartbeatRequest": {**SHARING, "member_epoch": 1},
    "StreamsGroupHeartbeatRequest": {**STREAMING, "member_epoch": 1},
    "ShareFetchRequest": SHARING,
    "ShareAcknowledgeRequest": {**SHARING, "share_session_epoch": 1},
    "InitializeShareGroupStateRequest": SHARING,
    "ReadShareGroupStateRequest": SHARING,
    "WriteShareGroupStateRequest": SHARING,
    "DeleteShareGroupStateRequest": SHARING,
    "ReadShareGroupStateSummaryRequest": SHARING,
    "DescribeShareGroupOffsetsRequestGroup": SHARING,
    "AlterShareGroupOffsetsRequest": SHARING,
    "DescribeShareGroupRecordsRequest": SHARING,
    "DeleteShareGroupOffsetsRequest": SHARING,
    "AddPartitionsToTxnRequest": IN_A_TRANSACTION,
    "AddPartitionsToTxnTransaction": IN_A_TRANSACTION,
    "AddOffsetsToTxnRequest": IN_A_TRANSACTION,
    "EndTxnRequest": IN_A_TRANSACTION,
    "TxnOffsetCommitRequest": IN_A_TRANSACTION,
    "WritableTxnMarker": IN_A_TRANSACTION,
}
"""The fields of a class that need other values: an existing group or producer, a missing name."""

EMPTY: Mapping[str, frozenset[str]] = {
    "CreateTopicsRequest": frozenset({"assignments", "configs"}),
    "CreatePartitionsRequest": frozenset({"assignments"}),
    "FetchRequest": frozenset({"forgotten_topics_data"}),
    "ShareFetchRequest": frozenset({"forgotten_topics_data"}),
}
"""Lists that would contradict the rest of the request. Their own numbers are tested with one entry in the list."""

INDEXES = ("partition", "partition_index", "index")
"""Fields that name a partition. Each topic has two partitions, and the second gets the extreme number."""

Step = str | int
Path = tuple[Step, ...]


class Extreme(NamedTuple):
    """A request in one version, with one changed number."""

    request: type
    version: int
    path: Path
    value: int

    def __str__(self) -> str:
        return f"{self.request.__name__} v{self.version} {'.'.join(map(str, self.path))} = {self.value}"

    def build(self, topic_id: bytes) -> Any:
        """Returns the request, for a topic with this id."""
        changed = plausible(self.request, self.version, topic_id, holding(self.path))
        put(changed, self.path, self.value)
        return changed


def extremes(request: type, version: int) -> Iterator[Extreme]:
    """Returns all requests of this class with one extreme number each."""
    for path, kind in numbers(request, version):
        for value in values(kind):
            yield Extreme(request, version, path, value)


def values(kind: str) -> tuple[int, ...]:
    if kind == "bool":
        return (0, 1)
    if kind in UNSIGNED:
        return (0, (1 << UNSIGNED[kind]) - 1)
    least = -1 << (BITS[kind] - 1)
    return (least, least + 1, -2, -1, 0, -least - 1)


def holding(path: Path) -> frozenset[str]:
    """Returns the lists on the path to a number, which must have an entry."""
    return frozenset(step for step in path if isinstance(step, str))


def numbers(cls: type, version: int, above: Path = ()) -> Iterator[tuple[Path, str]]:
    """Returns the paths of the numbers and flags of a message in this version."""
    for field in fields_of(cls):
        if version not in field.wire.versions:
            continue
        kind, path = field.kind, (*above, field.name)
        if kind.name == "array":
            assert kind.items is not None
            kind = kind.items
            path = (*path, len(indexes(kind)))
        if kind.struct is not None:
            yield from numbers(kind.struct, version, path)
        elif kind.name in BITS or kind.name in UNSIGNED or kind.name == "bool":
            yield path, kind.name


def plausible(cls: type, version: int, topic_id: bytes, filled: frozenset[str] = frozenset()) -> Any:
    """Returns a valid request; optional lists have an entry only if they are in `filled`."""
    empty = EMPTY.get(cls.__name__, frozenset()) - filled
    return built(cls, version, topic_id, empty)


def built(cls: type, version: int, topic_id: bytes, empty: frozenset[str]) -> Any:
    made, special = cls(), SPECIAL.get(cls.__name__, {})
    for field in fields_of(cls):
        if version in field.wire.versions:
            setattr(made, field.name, value_of(field, field.kind, version, topic_id, empty))
            if field.name in special:
                setattr(made, field.name, special[field.name])
    return made


def indexes(kind: Kind) -> list[str]:
    """Returns the name of the field that has a partition's number, if the kind has one."""
    return [] if kind.struct is None else [field.name for field in fields_of(kind.struct) if field.name in INDEXES]


def value_of(field: Field, kind: Kind, version: int, topic_id: bytes, empty: frozenset[str]) -> Any:
    name = field.name
    if kind.name == "array":
        assert kind.items is not None
        if name in empty:
            return []
        one = value_of(field, kind.items, version, topic_id, empty)
        if not (named := indexes(kind.items)):
            return [one]
        other = value_of(field, kind.items, version, topic_id, empty)
        setattr(other, named[0], 1)
        return [one, other]
    if kind.struct is not None:
        return built(kind.struct, version, topic_id, empty)
    if kind.name == "string":
        text = STRINGS.get(name, "")
        return text if text is not None or version in field.wire.nullable else ""
    if kind.name == "records":
        return batch(b"a")
    return {"bytes": b"", "uuid": topic_id, "bool": False, "float64": 0.0}.get(kind.name, NUMBERS.get(name, 0))


def put(request: Any, path: Path, value: int) -> None:
    *way, last = path
    at = request
    for step in way:
        at = at[step] if isinstance(step, int) else getattr(at, step)
    if isinstance(last, int):
        at[last] = value
    else:
        setattr(at, last, bool(value) if isinstance(getattr(at, last), bool) else value)


def without_answer(request: Any) -> bool:
    """True for a Produce with acks=0, which gets no answer."""
    return getattr(request, "acks", None) == 0
