"""Draws the fields of requests: usual values by Kafka's names of fields, and now and then an extreme of the type."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from protocol.schema import Field, Kind, fields_of, identity
from protocol.types import NO_UUID
from tests.fuzz.vocabulary import STRANGE_IDS, STRANGE_NAMES, STRANGE_TOPICS, Focus, Vocabulary

T = TypeVar("T")

EXTREMES: Final[Mapping[str, tuple[object, ...]]] = {
    "bool": (False, True),
    "int8": (-128, -2, -1, 0, 1, 2, 3, 127),
    "int16": (-32768, -2, -1, 0, 1, 2, 32767),
    "int32": (-(1 << 31), -2, -1, 0, 1, 2, 100, 1 << 20, (1 << 31) - 1),
    "int64": (-(1 << 63), -2, -1, 0, 1, 2, 1 << 31, 1 << 40, (1 << 63) - 1),
    "uint16": (0, 1, 65535),
    "uint32": (0, 1, (1 << 32) - 1),
    "float64": (0.0, -1.0, float("inf"), float("nan")),
    "string": (*STRANGE_NAMES, "y" * 5000, "\U0001f600", "a,b", "*"),
    "bytes": (b"", b"\x00", b"\xff" * 10, bytes(100), b"\x00\x01\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x00"),
    "uuid": STRANGE_IDS,
}
NAMES: Final = frozenset({
    "name", "topic", "topic_name", "topic_names", "group_id", "group_ids", "groups", "groups_names", "transactional_id",
    "transactional_ids", "v3_and_below_transactional_id", "resource_name", "key", "coordinator_keys",
})  # fmt: skip
"""Fields that name objects of a broker."""

HUGE_ARRAY, LARGE_ARRAY = 300, 20
SUBSCRIPTION: Final = b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"
CONFIGS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("retention.ms", ("-1", "60000", "0", "-2", "x", "")),
    ("cleanup.policy", ("delete", "compact", "compact,delete", "", "nothing")),
    ("max.message.bytes", ("1048588", "100", "0", "-1")),
    ("segment.bytes", ("1048576", "1", "2147483647")),
    ("min.insync.replicas", ("1", "2", "0")),
    ("compression.type", ("producer", "gzip", "lz4", "x")),
    ("message.timestamp.type", ("CreateTime", "LogAppendTime", "x")),
    ("delete.retention.ms", ("1", "-1")),
    ("share.auto.offset.reset", ("earliest", "latest", "x")),
    ("share.record.lock.duration.ms", ("15000", "1", "x")),
    ("consumer.session.timeout.ms", ("45000", "1")),
    ("streams.num.standby.replicas", ("0", "1", "-1")),
    ("streams.assignor.name", ("sticky", "x")),
    ("log.retention.ms", ("-1", "x")),
    ("metrics", ("org.apache.kafka.", "*")),
    ("interval.ms", ("100", "x")),
    ("nonsense", ("1", "")),
    ("", ("",)),
)


class Draw:
    """Draws values for one request about one focus."""

    def __init__(self, rng: random.Random, vocabulary: Vocabulary, focus: Focus | None = None) -> None:
        self.rng = rng
        self.vocabulary = vocabulary
        self.focus = focus or Focus.draw(rng, vocabulary)

    # Whole requests.

    def request(self, cls: type, version: int) -> Any:
        """Returns a request of a version, drawn field by field."""
        return self.struct(cls, version, cls.__name__)

    def struct(self, cls: type, version: int, path: str) -> Any:
        if "topic" in cls.__name__.lower() or cls.__name__ in ("PartitionData", "Cursor"):
            focus = self.focus
            if self.rng.random() < 0.3:
                self.focus = focus.on(self.rng.choice(self.vocabulary.topics))
        return cls(
            **{
                field.name: self.field(cls, field, version)
                for field in fields_of(cls)
                if version in field.wire.versions
            }
        )

    def field(self, cls: type, field: Field, version: int) -> Any:
        """Returns a random value for a field, sometimes null if the field allows it."""
        if version in field.wire.nullable and self.rng.random() < (0.4 if field.wire.default is None else 0.06):
            return None
        return self.value(cls, field.name, field.kind, version)

    def value(self, cls: type, name: str, kind: Kind, version: int) -> Any:
        if kind.items is not None:
            return self.array(cls, name, kind.items, version)
        if kind.struct is not None:
            return self.struct(kind.struct, version, name)
        if self.rng.random() < self.focus.wildness:
            return self.extreme(name, kind)
        usual = BY_PLACE.get((cls.__name__, name)) or BY_NAME.get(name)
        return usual(self) if usual is not None else self.extreme(name, kind)

    def extreme(self, name: str, kind: Kind) -> Any:
        if kind.name == "records":
            return self.rng.choice(self.vocabulary.batches)
        if name in CAPPED and self.rng.random() < 0.95:
            return BY_NAME[name](self)
        value = self.rng.choice(EXTREMES[kind.name])
        if isinstance(value, int) and BY_NAME.get(name) is Draw.producer:
            return self.vocabulary.own_producer(value)
        return self.vocabulary.own(value) if isinstance(value, str) and name in NAMES else value

    def array(self, cls: type, name: str, items: Kind, version: int) -> list[Any]:
        if name in SELDOM and self.rng.random() < 0.7:
            return []
        count = self.rng.choice((0, 1, 1, 1, 1, 1, 1, 2, 2, 3)) if self.rng.random() < 0.9 else 1
        if self.rng.random() < self.focus.wildness / 8:
            count = self.rng.choice((LARGE_ARRAY, HUGE_ARRAY))
            return [self.value(cls, name, items, version)] * count
        values = [self.value(cls, name, items, version) for _ in range(count)]
        if values and self.rng.random() < 0.08:
            values.append(self.rng.choice(values))
        return values

    # What fields are about.

    def one(self, *values: T) -> T:
        return self.rng.choice(values)

    def topic(self) -> str:
        chance = self.rng.random()
        if chance < 0.8:
            return self.focus.topic
        if chance < 0.88:
            return self.rng.choice(self.vocabulary.topics)
        if chance < 0.92:
            return self.rng.choice(self.vocabulary.internal)
        return self.vocabulary.own(self.rng.choice(STRANGE_TOPICS))

    def topic_id(self) -> bytes:
        chance = self.rng.random()
        ids = self.vocabulary.topic_ids
        if chance < 0.9:
            return ids.get(self.focus.topic if chance < 0.8 else self.rng.choice(self.vocabulary.topics), NO_UUID)
        return self.rng.choice(STRANGE_IDS)

    def new_topic(self) -> str:
        return f"{self.vocabulary.prefix}-{self.rng.randrange(6)}" if self.rng.random() < 0.7 else self.topic()

    def group(self) -> str:
        chance = self.rng.random()
        if chance < 0.85:
            return self.focus.group.name
        if chance < 0.93:
            return self.rng.choice(self.vocabulary.groups).name
        strange = map(self.vocabulary.own, STRANGE_NAMES)
        return self.one(f"{self.vocabulary.prefix}-group-{self.rng.randrange(3)}", *strange)

    def member(self) -> str:
        chance = self.rng.random()
        if chance < 0.8:
            return self.focus.member.member_id
        if chance < 0.9:
            group = self.rng.choice(self.vocabulary.groups)
            return group.members[0].member_id if group.members else ""
        return self.one("", "member-1", "AAAAAAAAAAAAAAAAAAAAAA", "x" * 40)

    def member_epoch(self) -> int:
        epoch = self.focus.member.epoch
        return epoch if self.rng.random() < 0.7 else self.one(0, -1, -2, epoch - 1, epoch + 1, 5, -3)

    def instance(self) -> str | None:
        return self.focus.member.instance_id if self.rng.random() < 0.6 else self.one("static-1", "static-2", "")

    def transactional(self) -> str:
        chance = self.rng.random()
        if chance < 0.85:
            return self.focus.transactional.name
        if chance < 0.92:
            return self.rng.choice(self.vocabulary.transactionals).name
        return self.one("", self.vocabulary.own("absent"))

    def producer(self) -> int:
        chance = self.rng.random()
        if chance < 0.85:
            return self.focus.transactional.producer_id
        if chance < 0.92:
            return self.rng.choice(self.vocabulary.transactionals).producer_id
        return self.vocabulary.own_producer(self.one(-1, 0))

    def producer_epoch(self) -> int:
        epoch = self.focus.transactional.epoch
        return epoch if self.rng.random() < 0.8 else self.one(epoch - 1, epoch + 1, -1, 0, 32767)

    def internal_topic(self) -> str:
        """Returns a name for a repartition topic or a changelog."""
        return (
            f"{self.vocabulary.prefix}-{self.rng.randrange(3)}-changelog" if self.rng.random() < 0.8 else self.topic()
        )

    def partition(self) -> int:
        return self.one(0, 0, 0, 0, 1, 1, 2, 5, -1)

    def resource_type(self) -> int:
        return self.one(2, 2, 2, 2, 4, 8, 16, 32, 0, 1, 3)

    def resource(self) -> str:
        return self.one(self.topic(), self.topic(), self.group(), "1", "", "2")

    def coordinator_key(self) -> str:
        kind = self.rng.randrange(3)
        if kind == 0:
            return self.group()
        return self.transactional() if kind == 1 else self.one(f"{self.group()}:x:0", "g:AAAAAAAAAAAAAAAAAAAAAA:0")


def one_of(*values: Any) -> Callable[[Draw], Any]:
    return lambda draw: draw.rng.choice(values)


OFFSET = one_of(0, 0, 0, 1, 2, 3, 5, 9, -1, 1000)
EPOCH = one_of(-1, -1, -1, -1, 0, 0, 1, -2)
NONE_OF_US = one_of(-1, -1, -1, -1, 1, 2, -2)
BROKERS = one_of(1, 1, 1, 2, -1, 0)
SOON_MS = one_of(0, 1, 10, 50)

BY_NAME: Final[Mapping[str, Callable[[Draw], Any]]] = {
    "acknowledge_types": one_of(0, 1, 1, 1, 2, 3, 4, 5, -1),
    "acks": one_of(-1, -1, -1, 1, 1, 2),
    "allow_auto_topic_creation": one_of(False, False, False, True),
    "batch_size": one_of(1, 10, 500, 500, 0),
    "broker_id": one_of(2, 3, 99, -1),
    "broker_ids": BROKERS,
    "client_software_name": one_of("fuzz", "fuzz-1.0", "", "-", "a b"),
    "client_software_version": one_of("1", "1.0", "", "."),
    "cluster_id": one_of("another", ""),
    "committed_leader_epoch": EPOCH,
    "committed_metadata": one_of("", "m", "m" * 100, "m" * 5000),
    "committed_offset": OFFSET,
    "commit_timestamp": one_of(-1, 0, 1_600_000_000_000),
    "config_operation": one_of(0, 0, 0, 1, 2, 3, 4, 9),
    "configuration_keys": lambda draw: draw.rng.choice(CONFIGS)[0],
    "coordinator_epoch": one_of(0, 0, 1, -1),
    "coordinator_keys": Draw.coordinator_key,
    "count": one_of(1, 2, 3, 4, 0, -1, 2, 3, 1, 2),
    "current_leader_epoch": EPOCH,
    "delivery_complete_count": one_of(0, 1, -1),
    "delivery_count": one_of(0, 1, 2, 5),
    "delivery_state": one_of(0, 0, 2, 4, 1, 3),
    "duration_filter": one_of(-1, 0, 1 << 40),
    "election_type": one_of(0, 0, 1),
    "entity_type": one_of("client-id", "client-id", "user", "ip", "", "Client-Id"),
    "endpoint_type": one_of(1, 1, 1, 2, 0),
    "feature": one_of(
        "metadata.version", "group.version", "share.version", "streams.version", "transaction.version", ""
    ),
    "fetch_offset": OFFSET,
    "first_offset": OFFSET,
    "generation_id": Draw.member_epoch,
    "generation_id_or_member_epoch": Draw.member_epoch,
    "group_id": Draw.group,
    "group_ids": Draw.group,
    "group_instance_id": Draw.instance,
    "groups": Draw.group,
    "groups_names": Draw.group,
    "host": one_of("*", "127.0.0.1"),
    "high_watermark": OFFSET,
    "index": Draw.partition,
    "instance_id": Draw.instance,
    "isolation_level": one_of(0, 0, 1, 1),
    "key": Draw.coordinator_key,
    "key_type": one_of(0, 0, 1, 1, 2, 3),
    "last_fetched_epoch": EPOCH,
    "last_offset": one_of(0, 1, 2, 3, 4, 5, 9, 1000, -1),
    "leader_epoch": one_of(0, 0, 0, 1, -1, 5),
    "log_start_offset": one_of(-1, -1, 0, 5),
    "max_bytes": one_of(1 << 20, 1 << 20, 1 << 20, 0, 1, 100),
    "max_num_offsets": one_of(1, 1, 2, 10, 0),
    "max_records": one_of(1, 2, 10, 500, 0),
    "max_version_level": one_of(0, 1, 2, 3, 21, 100),
    "max_wait_ms": SOON_MS,
    "member_epoch": Draw.member_epoch,
    "mechanism": one_of(1, 2, 0, 3),
    "member_id": Draw.member,
    "metadata": one_of(SUBSCRIPTION, SUBSCRIPTION, b"", b"\x00"),
    "assignment": one_of(b"", b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff", b"x"),
    "min_bytes": one_of(0, 0, 1, 1, 100, -1),
    "name": Draw.topic,
    "node_id": BROKERS,
    "num_partitions": one_of(1, 1, 2, 3, -1, 0, -2, 1, 2),
    "offset": one_of(0, 0, 1, 2, -1, 1000, -2),
    "partition": Draw.partition,
    "partition_index": Draw.partition,
    "partition_indexes": Draw.partition,
    "partition_max_bytes": one_of(1 << 20, 1 << 20, 1 << 20, 0, 1, 100),
    "partitions": Draw.partition,
    "path": one_of("/nowhere", "", "relative"),
    "pattern_type_filter": one_of(1, 2, 3, 4),
    "process_id": one_of("process", "process", "another", ""),
    "producer_epoch": Draw.producer_epoch,
    "producer_id": Draw.producer,
    "producer_id_filters": Draw.producer,
    "protocol_name": one_of("range", "range", "roundrobin", ""),
    "protocol_type": one_of("consumer", "consumer", "consumer", "connect", ""),
    "rack_id": one_of("", "rack-1"),
    "reason": one_of("", "because", "r" * 300),
    "rebalance_timeout_ms": one_of(50, 100),
    "records": lambda draw: draw.rng.choice(draw.vocabulary.batches),
    "replica_directory_id": one_of(NO_UUID),
    "replica_epoch": one_of(-1, 0, 1),
    "replica_id": NONE_OF_US,
    "replicas": BROKERS,
    "replication_factor": one_of(1, 1, 1, -1, 0),
    "resource_name": Draw.resource,
    "resource_type": Draw.resource_type,
    "resource_types": Draw.resource_type,
    "response_partition_limit": one_of(2000, 1, 2, 0),
    "retention_time_ms": one_of(-1, 0, 1000),
    "server_assignor": one_of("uniform", "range", "absent", ""),
    "session_epoch": one_of(-1, -1, -1, 0, 1, 2, 5),
    "session_id": lambda draw: draw.rng.choice(draw.vocabulary.sessions),
    "session_timeout_ms": one_of(600_000, 600_000, 300_000, 1, 1 << 30),
    "share_acquire_mode": one_of(0, 0, 1, 2),
    "share_session_epoch": one_of(0, 0, 1, 2, 3, -1),
    "start_offset": OFFSET,
    "state_epoch": one_of(0, 1, 2, -1),
    "state_filters": one_of("Ongoing", "Empty", "CompleteCommit", "absent", ""),
    "states_filter": one_of("Stable", "Empty", "stable", "absent", ""),
    "subscribed_topic_names": Draw.topic,
    "subtopology_id": one_of("0", "0", "0", "1", ""),
    "subscribed_topic_regex": lambda draw: draw.one(f"{draw.focus.topic}.*", "", "(", "absent.*"),
    "timeout_ms": one_of(5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 0, -1),
    "timestamp": one_of(-1, -1, -2, -2, -3, -4, -5, -6, 0, 1_500_000_000_001, 1 << 45),
    "topic": Draw.topic,
    "topic_id": Draw.topic_id,
    "topic_name": Draw.topic,
    "topic_names": Draw.topic,
    "transaction_timeout_ms": one_of(60_000, 60_000, 1, 0, -1, 1 << 30),
    "transaction_version": one_of(0, 1, 2),
    "transactional_id": Draw.transactional,
    "transactional_ids": Draw.transactional,
    "transactional_id_pattern": one_of("", ".*", "(", "absent.*"),
    "types_filter": one_of("classic", "consumer", "share", "streams", "Consumer", "absent"),
    "upgrade_type": one_of(1, 2, 3, 0),
    "v3_and_below_producer_epoch": Draw.producer_epoch,
    "v3_and_below_producer_id": Draw.producer,
    "v3_and_below_transactional_id": Draw.transactional,
    "value": lambda draw: draw.rng.choice(draw.rng.choice(CONFIGS)[1]),
}

INDEX_OF_A_TOPIC = one_of(0, 0, 0, 0, 1, -1)

BY_PLACE: Final[Mapping[tuple[str, str], Callable[[Draw], Any]]] = {
    ("StreamsGroupHeartbeatRequest", "rebalance_timeout_ms"): one_of(60_000, 600_000),
    ("StreamsGroupHeartbeatRequest", "shutdown_application"): one_of(*[False] * 9, True),
    ("StreamsGroupHeartbeatRequest", "endpoint_information_epoch"): one_of(0, 0, 1, -1),
    ("Topology", "epoch"): one_of(0, 0, 0, 0, 1, -1),
    ("Subtopology", "source_topics"): Draw.topic,
    ("Subtopology", "repartition_sink_topics"): Draw.internal_topic,
    ("Subtopology", "source_topic_regex"): lambda draw: draw.one(f"{draw.focus.topic}.*", "", "("),
    ("TopicInfo", "name"): Draw.internal_topic,
    ("TopicInfo", "partitions"): one_of(0, 0, 2, 1, 3),
    ("TopicInfo", "replication_factor"): one_of(0, 1, 1, -1),
    ("KeyValue", "key"): lambda draw: draw.rng.choice(CONFIGS)[0],
    ("CopartitionGroup", "source_topics"): INDEX_OF_A_TOPIC,
    ("CopartitionGroup", "source_topic_regex"): INDEX_OF_A_TOPIC,
    ("CopartitionGroup", "repartition_source_topics"): INDEX_OF_A_TOPIC,
    ("Endpoint", "host"): one_of("127.0.0.1", "localhost", ""),
    ("Endpoint", "port"): one_of(9092, 0, 65535),
    ("UnregisterControllerRequest", "controller_id"): one_of(1, 1, 2, 3000, -1),
    ("ConsumerGroupHeartbeatRequest", "rebalance_timeout_ms"): one_of(60_000, 600_000),
    ("CreatableTopic", "name"): Draw.new_topic,
    ("CreatableTopicConfig", "name"): lambda draw: draw.rng.choice(CONFIGS)[0],
    ("AlterableConfig", "name"): lambda draw: draw.rng.choice(CONFIGS)[0],
    ("JoinGroupRequestProtocol", "name"): one_of("range", "range", "roundrobin", "", "sticky"),
    ("ProduceRequest", "transactional_id"): Draw.transactional,
    ("ReplicaState", "replica_id"): NONE_OF_US,
    ("ComponentData", "match"): Draw.group,
    ("ComponentData", "match_type"): one_of(0, 0, 1, 2, 3),
    ("EntityData", "entity_name"): Draw.group,
    ("SaslHandshakeRequest", "mechanism"): one_of("PLAIN", "SCRAM-SHA-512", "", "plain"),
    ("OpData", "key"): one_of(
        "producer_byte_rate", "consumer_byte_rate", "request_percentage", "connection_creation_rate"
    ),
    ("OpData", "value"): one_of(0.0, 1.0, 1e6, 1e300, -1.0),
    ("ScramCredentialUpsertion", "name"): Draw.group,
    ("ScramCredentialUpsertion", "iterations"): one_of(4096, 8192, 4095, 16385, 0),
    ("ScramCredentialDeletion", "name"): Draw.group,
}

CAPPED: Final = frozenset({"max_wait_ms", "rebalance_timeout_ms", "num_partitions", "count"})
"""Fields whose extremes make a broker wait for that long, or create thousands of files: extremes are drawn rarely."""


SELDOM: Final = frozenset({
    "source_topic_regex", "repartition_sink_topics", "repartition_source_topics", "state_changelog_topics",
    "copartition_groups", "topic_configs",
})  # fmt: skip
"""Lists of a topology that are empty in most requests: most topologies with all of them are invalid."""


def versions_of(cls: type) -> range:
    """Returns all versions of a request."""
    first, last = identity(cls).versions
    return range(first, last + 1)
