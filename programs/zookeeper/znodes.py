"""The znodes of Kafka 0.8 to 1.1: their paths, and the JSON in them.

Source: kafka.zk.ZkData, kafka.utils.ZkUtils.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.topics.topic import PartitionRegistration

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
CLUSTER_ID: Final = "/cluster/id"
BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
CONFIG_CHANGES: Final = "/config/changes"
DELETE_TOPICS: Final = "/admin/delete_topics"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
PREFERRED_ELECTION: Final = "/admin/preferred_replica_election"
CONSUMERS: Final = "/consumers"
SEQUENCE_ID: Final = "/brokers/seqid"

PERSISTENT: Final = (
    "/cluster",
    CONSUMERS,
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    SEQUENCE_ID,
    "/isr_change_notification",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
    TOPIC_CONFIGS,
    "/config/clients",
    "/config/users",
    BROKER_CONFIGS,
)
"""The paths that Kafka with ZooKeeper creates when it starts."""

DEFAULT_ENTITY: Final = "<default>"
"""The znode with the defaults of all brokers."""

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
NO_JMX_PORT: Final = -1
MAX_DIGITS: Final = 10
"""Maximum number of digits of a number of 31 bits."""

MAX_TEXT_BYTES: Final = (1 << 15) - 1
"""Maximum number of bytes of a text in a request."""

FIRST_WITH_ENDPOINTS, FIRST_WITH_RACK, FIRST_WITH_PROTOCOLS, FIRST_WITH_FEATURES = 2, 3, 4, 5
"""Versions of a broker's JSON."""


class BadZnode(ValueError):
    """A znode with invalid content; the text says what is wrong."""


def encoded(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def read_json(data: bytes) -> object:
    """Returns the JSON of a znode. Raises BadZnode, also for unpaired surrogates, which JSON can escape but no request
    or record can contain."""
    try:
        value = json.loads(data)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise BadZnode(f"is not JSON: {error}") from None
    return value


def parsed(data: bytes) -> dict[str, object]:
    """Returns the JSON object of a znode. Raises BadZnode."""
    value = read_json(data)
    if not isinstance(value, dict):
        raise BadZnode("is not a JSON object")
    return value


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def topic_config_path(topic: str) -> str:
    return f"{TOPIC_CONFIGS}/{topic}"


def deletion_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


def offset_path(group: str, topic: str, partition: int) -> str:
    return f"{CONSUMERS}/{group}/offsets/{topic}/{partition}"


def uri(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.name}://{host}:{endpoint.port}"


def broker_json(endpoints: Sequence[Endpoint], rack: str | None, version: int, now_ms: int) -> bytes:
    """Returns the content of /brokers/ids/N. The oldest clients read only one host and port, those of the first
    PLAINTEXT listener."""
    plaintext = next((endpoint for endpoint in endpoints if endpoint.security_protocol == 0), None)
    value: dict[str, object] = {
        "jmx_port": NO_JMX_PORT,
        "timestamp": str(now_ms),
        "host": None if plaintext is None else plaintext.host,
        "version": version,
        "port": -1 if plaintext is None else plaintext.port,
    }
    if version >= FIRST_WITH_ENDPOINTS:
        value["endpoints"] = [uri(endpoint) for endpoint in endpoints]
    if version >= FIRST_WITH_RACK and rack is not None:
        value["rack"] = rack
    if version >= FIRST_WITH_PROTOCOLS:
        value["listener_security_protocol_map"] = {
            endpoint.name: SECURITY_PROTOCOLS[endpoint.security_protocol] for endpoint in endpoints
        }
    if version >= FIRST_WITH_FEATURES:
        value["features"] = {}
    return encoded(value)


def is_at(data: bytes, endpoints: Sequence[Endpoint]) -> bool:
    """True if a broker's znode names these addresses."""
    try:
        value = parsed(data)
    except BadZnode:
        return False
    if "endpoints" in value:
        return value["endpoints"] == [uri(endpoint) for endpoint in endpoints]
    address = value.get("host"), value.get("port")
    return any(address == (endpoint.host, endpoint.port) for endpoint in endpoints)


def controller_json(broker_id: int, now_ms: int) -> bytes:
    return encoded({"version": 1, "brokerid": broker_id, "timestamp": str(now_ms)})


def cluster_id_json(cluster_id: str) -> bytes:
    return encoded({"version": "1", "id": cluster_id})


def cluster_id_of(data: bytes) -> str:
    """Returns the id in /cluster/id. Raises BadZnode."""
    cluster_id = parsed(data).get("id")
    if not isinstance(cluster_id, str) or not cluster_id:
        raise BadZnode("has no id")
    return cluster_id


def topic_json(assignment: Mapping[int, Sequence[int]]) -> bytes:
    partitions = {str(index): list(replicas) for index, replicas in sorted(assignment.items())}
    return encoded({"version": 1, "partitions": partitions})


def assignment_of(data: bytes) -> dict[int, list[int]]:
    """Returns the replicas of each partition in a topic's znode. Raises BadZnode."""
    partitions = parsed(data).get("partitions")
    if not isinstance(partitions, dict) or not partitions:
        raise BadZnode("has no partitions")
    try:
        return {number(index): broker_ids(replicas) for index, replicas in partitions.items()}
    except BadZnode as error:
        raise BadZnode(f"partitions: {error}") from None


def state_json(partition: PartitionRegistration, controller_epoch: int) -> bytes:
    value = {
        "controller_epoch": controller_epoch,
        "leader": partition.leader,
        "version": 1,
        "leader_epoch": partition.leader_epoch,
        "isr": list(partition.isr),
    }
    return encoded(value)


def config_json(configs: Mapping[str, str]) -> bytes:
    return encoded({"version": 1, "config": dict(configs)})


def configs_of(data: bytes) -> dict[str, str]:
    """Returns the configs in a znode of /config. Raises BadZnode."""
    configs = parsed(data).get("config")
    if not isinstance(configs, dict):
        raise BadZnode("has no config")
    for name, value in configs.items():
        if not isinstance(value, str):
            raise BadZnode(f"config {name:.60} is not a text")
        if not is_short(name) or not is_short(value):
            raise BadZnode(f"config {name:.60} is too long")
    return configs


def change_json(kind: str, name: str) -> bytes:
    """Returns a notification of /config/changes, in version 2."""
    return encoded({"version": 2, "entity_path": f"{kind}/{name}"})


class Entity(NamedTuple):
    """The subject of a notification of /config/changes."""

    kind: str
    """topics, brokers, clients or users."""
    name: str

    @property
    def path(self) -> str:
        return f"/config/{self.kind}/{self.name}"


def entity_of(data: bytes) -> Entity:
    """Returns the entity of a notification: Kafka 0.8 wrote a text, 0.9 an object of version 1, later releases version
    2. Raises BadZnode."""
    value = read_json(data)
    if isinstance(value, str):
        return _entity("topics", value)
    if not isinstance(value, dict):
        raise BadZnode("is neither a topic nor a JSON object")
    if value.get("version") == 1:
        return _entity(value.get("entity_type"), value.get("entity_name"))
    kind, _, name = str(value.get("entity_path", "")).partition("/")
    return _entity(kind, name)


def _entity(kind: object, name: object) -> Entity:
    if not isinstance(kind, str) or not isinstance(name, str) or not is_component(kind) or not is_component(name):
        raise BadZnode("names no entity")
    if not is_short(name):
        raise BadZnode("has a name that is too long")
    return Entity(kind, name)


def reassignment_of(data: bytes) -> dict[tuple[str, int], list[int]]:
    """Returns the replicas that /admin/reassign_partitions asks for. Raises BadZnode."""
    return {
        (topic, partition): broker_ids(entry.get("replicas"))
        for topic, partition, entry in _named_partitions(parsed(data))
    }


def reassignment_json(reassignment: Mapping[tuple[str, int], Sequence[int]]) -> bytes:
    partitions = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in reassignment.items()
    ]
    return encoded({"version": 1, "partitions": partitions})


def election_of(data: bytes) -> list[tuple[str, int]]:
    """Returns the partitions that /admin/preferred_replica_election names. Raises BadZnode."""
    return [(topic, partition) for topic, partition, _ in _named_partitions(parsed(data))]


def _named_partitions(value: Mapping[str, object]) -> Iterable[tuple[str, int, dict[str, object]]]:
    partitions = value.get("partitions")
    if not isinstance(partitions, list):
        raise BadZnode("has no list of partitions")
    for entry in partitions:
        if not isinstance(entry, dict) or not isinstance(entry.get("topic"), str) or not is_short(entry["topic"]):
            raise BadZnode("has a partition without a topic")
        yield entry["topic"], number(entry.get("partition")), entry


def is_number(text: str) -> bool:
    """True if a text can be a partition's index or a broker's id."""
    return text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS


def number(value: object) -> int:
    """Returns a partition's index or a broker's id. Raises BadZnode."""
    if isinstance(value, str) and is_number(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise BadZnode(f"{_shown(value)} is not a number of 0 or more")
    return value


def broker_ids(value: object) -> list[int]:
    if not isinstance(value, list) or not value:
        raise BadZnode(f"{_shown(value)} is not a list of brokers")
    return [number(broker_id) for broker_id in value]


def is_short(text: str) -> bool:
    """True if a text fits into a request."""
    return len(text.encode()) <= MAX_TEXT_BYTES


def _shown(value: object) -> str:
    """Returns the beginning of a value; only its type if it has nested values, which can be deep."""
    is_one = value is None or isinstance(value, (str, int, float))
    return f"{value!r:.60}" if is_one else f"a {type(value).__name__}"


def is_component(text: str) -> bool:
    """True if a text can be a single path component: ZooKeeper rejects other characters, and `a/b` would be two
    components."""
    return (
        bool(text)
        and text not in (".", "..")
        and not any(
            letter == "/"
            or ord(letter) < 0x20
            or 0x7F <= ord(letter) < 0xA0
            or 0xD800 <= ord(letter) < 0xF900
            or ord(letter) >= 0xFFF0
            for letter in text
        )
    )
