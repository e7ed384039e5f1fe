"""Sends the same admin requests to Odradek and to Apache Kafka: the answers have the same codes and messages.

Only default messages may differ, because clients have their own text for a code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from protocol.messages import alter_configs as whole
from protocol.messages import alter_partition_reassignments as reassign
from protocol.messages import create_partitions as grow
from protocol.messages import create_topics as create
from protocol.messages import delete_topics as delete
from protocol.messages import describe_topic_partitions as describe
from protocol.messages import elect_leaders as elect
from protocol.messages import incremental_alter_configs as alter
from protocol.messages import list_config_resources as resources
from protocol.messages import list_partition_reassignments as reassigning
from protocol.messages import unregister_broker as unregister
from protocol.messages import update_features as features
from protocol.types import NO_UUID
from tests.coordinator.cluster.given import creatable
from tests.interop.brokers import ApacheKafka, Odradek
from tests.wire import WireClient

pytestmark = pytest.mark.odradek_only

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
# What Kafka says where there is nothing to say; it has these words of its client's.
BARE = {
    "Leader election not needed for topic partition.",
    "This server does not host this topic-partition.",
    "This server does not host this topic ID.",
}


class Step(NamedTuple):
    """A request of the script."""

    name: str
    request: object
    response: type[Any]
    version: int


def creating(name: str, *topics: create.CreatableTopic, validate_only: bool = False, version: int = 7) -> Step:
    request = create.CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, validate_only=validate_only)
    return Step(name, request, create.CreateTopicsResponse, version)


def growing(name: str, *growths: tuple[str, int, list[list[int]] | None], validate_only: bool = False) -> Step:
    topics = [
        grow.CreatePartitionsTopic(
            name=topic,
            count=count,
            assignments=None
            if by_hand is None
            else [grow.CreatePartitionsAssignment(broker_ids=one) for one in by_hand],
        )
        for topic, count, by_hand in growths
    ]
    request = grow.CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only)
    return Step(name, request, grow.CreatePartitionsResponse, 3)


def altering(name: str, *alterations: tuple[int, str, Sequence[tuple[int, str, str | None]]]) -> Step:
    resources = [
        alter.AlterConfigsResource(
            resource_type=kind,
            resource_name=resource,
            configs=[
                alter.AlterableConfig(name=key, config_operation=operation, value=value)
                for operation, key, value in changes
            ],
        )
        for kind, resource, changes in alterations
    ]
    request = alter.IncrementalAlterConfigsRequest(resources=resources, validate_only=False)
    return Step(name, request, alter.IncrementalAlterConfigsResponse, 1)


def replacing(name: str, kind: int, resource: str, configs: dict[str, str | None]) -> Step:
    new_configs = [whole.AlterableConfig(name=key, value=value) for key, value in configs.items()]
    replacement = whole.AlterConfigsResource(resource_type=kind, resource_name=resource, configs=new_configs)
    request = whole.AlterConfigsRequest(resources=[replacement], validate_only=False)
    return Step(name, request, whole.AlterConfigsResponse, 2)


def electing(name: str, kind: int, partitions: Sequence[tuple[str, list[int]]] | None) -> Step:
    topics = (
        None if partitions is None else [elect.TopicPartitions(topic=topic, partitions=at) for topic, at in partitions]
    )
    request = elect.ElectLeadersRequest(election_type=kind, topic_partitions=topics)
    return Step(name, request, elect.ElectLeadersResponse, 2)


def reassigned(name: str, *moves: tuple[str, int, list[int] | None], may_change: bool = True) -> Step:
    topics = [
        reassign.ReassignableTopic(
            name=topic, partitions=[reassign.ReassignablePartition(partition_index=index, replicas=replicas)]
        )
        for topic, index, replicas in moves
    ]
    request = reassign.AlterPartitionReassignmentsRequest(topics=topics, allow_replication_factor_change=may_change)
    return Step(name, request, reassign.AlterPartitionReassignmentsResponse, 1)


def updating(feature: str, level: int, upgrade_type: int) -> Step:
    key = features.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type)
    request = features.UpdateFeaturesRequest(feature_updates=[key], validate_only=True)
    name = f"{feature} to {level} as {upgrade_type}"
    return Step(name, request, features.UpdateFeaturesResponse, 1)


def describing(name: str, *topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Step:
    request = describe.DescribeTopicPartitionsRequest(
        topics=[describe.TopicRequest(name=topic) for topic in topics],
        response_partition_limit=limit,
        cursor=None if cursor is None else describe.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return Step(name, request, describe.DescribeTopicPartitionsResponse, 0)


def deleting(name: str, *names: str, topic_ids: Sequence[bytes] = ()) -> Step:
    states = [delete.DeleteTopicState(name=topic, topic_id=NO_UUID) for topic in names]
    states += [delete.DeleteTopicState(name=None, topic_id=topic_id) for topic_id in topic_ids]
    return Step(name, delete.DeleteTopicsRequest(topics=states, timeout_ms=10_000), delete.DeleteTopicsResponse, 6)


BAD_CONFIGS: list[dict[str, str | None]] = [
    {"no.such": "1"},
    {"retention.ms": "x"},
    {"retention.ms": None},
    {"cleanup.policy": "bogus"},
    {"cleanup.policy": ""},
    {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
    {"segment.bytes": "5"},
    {"remote.storage.enable": "true"},
    {"compression.type": "zip"},
    {"min.insync.replicas": "0"},
]

BAD_HANDS: list[dict[int, list[int]]] = [{0: [2]}, {0: [1, 1]}, {1: [1]}, {0: []}]

SCRIPT = (
    creating("a topic", creatable("a", 2, 1)),
    *(creating(f"it again, v{version}", creatable("a", 2, 1), version=version) for version in (4, 5, 7)),
    creating("a validation", creatable("v", 1, 1, {"retention.ms": "1000"}), validate_only=True),
    creating("dots", creatable("a.b", 1, 1)),
    *(
        creating(f"a bad name: {name[:10]!r}", creatable(name, 1, 1))
        for name in ("a_b", "bad name", "", ".", "..", "x" * 250, "__cluster_metadata")
    ),
    creating("a name twice", creatable("twice", 1, 1), creatable("twice", 1, 1)),
    *(
        creating(f"bad counts: {partitions}, {factor}", creatable("counts", partitions, factor))
        for partitions, factor in ((0, 1), (-2, 1), (1, 0), (1, -2), (1, 3))
    ),
    creating("too many", creatable("big", 10_001, 1)),
    creating("too many together", creatable("big", 9_999, 1), creatable("bigger", 5, 1), validate_only=True),
    creating("by hand", creatable("hand", assignments={0: [1], 1: [1]})),
    *(
        creating(f"badly by hand: {assignments}", creatable("bad-hand", assignments=assignments))
        for assignments in BAD_HANDS
    ),
    creating("by hand and counted", creatable("bad-hand", 2, assignments={0: [1]})),
    creating("by hand and replicated", creatable("bad-hand", -1, 1, assignments={0: [1]})),
    *(creating(f"bad configs: {configs}", creatable("configured", 1, 1, configs)) for configs in BAD_CONFIGS),
    growing("more partitions", ("a", 3, None)),
    growing("no more partitions", ("a", 3, None), ("a.b", 0, None), ("absent", 3, None), ("hand", 3, [[1]])),
    growing("more by hand", ("a", 5, [[1]]), ("a.b", 2, [[2]]), ("hand", 4, [[]])),
    growing("a topic grown twice", ("a", 7, None), ("a", 8, None)),
    growing("a validation of growth", ("a", 10, None), validate_only=True),
    altering("two configs", (TOPIC, "a", [(SET, "retention.ms", "5"), (APPEND, "cleanup.policy", "compact")])),
    altering("subtraction", (TOPIC, "a", [(SUBTRACT, "cleanup.policy", "delete")])),
    altering("an absent topic", (TOPIC, "absent", [(SET, "retention.ms", "5")])),
    altering("the topic of no name", (TOPIC, "", [(SET, "retention.ms", "5")])),
    altering("a bad topic name", (TOPIC, "bad name", [(SET, "retention.ms", "5")])),
    altering("an unknown type", (99, "z", [])),
    altering("a resource twice", (TOPIC, "a", [(SET, "flush.ms", "5")]), (TOPIC, "a", [(SET, "flush.ms", "5")])),
    altering("a config twice", (TOPIC, "a", [(SET, "flush.ms", "5"), (SET, "flush.ms", "6")])),
    altering("no value", (TOPIC, "a", [(SET, "flush.ms", None)])),
    altering("an unknown config", (TOPIC, "a", [(SET, "no.such", "1")])),
    altering("an unknown config removed", (TOPIC, "a", [(DELETE, "no.such", None)])),
    altering("appending to a number", (TOPIC, "a", [(APPEND, "retention.ms", "5")])),
    altering("a good and a bad one", (TOPIC, "a", [(SET, "max.message.bytes", "5"), (SET, "flush.ms", "z")])),
    altering("a bad format", (TOPIC, "a", [(SET, "follower.replication.throttled.replicas", "x")])),
    altering("min.insync.replicas", (TOPIC, "a", [(SET, "min.insync.replicas", "2")])),
    altering("of all brokers", (BROKER, "", [(SET, "min.insync.replicas", "2")])),
    altering("no more of all brokers", (BROKER, "", [(DELETE, "min.insync.replicas", None)])),
    altering("of a broker", (BROKER, "1", [(SET, "min.insync.replicas", "2")])),
    *(
        altering(f"broker {name!r}", (BROKER, name, [(SET, "log.retention.ms", "5555555")]))
        for name in ("", "1", "7", "-1", "x")
    ),
    altering("a broker's bad value", (BROKER, "1", [(SET, "log.cleaner.threads", "x")])),
    altering("a broker's unknown config", (BROKER, "1", [(SET, "no.such", "x")])),
    altering("a broker's fixed config", (BROKER, "1", [(SET, "node.id", "5")])),
    altering("a group", (GROUP, "g", [(SET, "consumer.session.timeout.ms", "50000")])),
    altering("a group out of bounds", (GROUP, "g", [(SET, "consumer.session.timeout.ms", "1")])),
    altering("a group's unknown config", (GROUP, "g", [(SET, "no.such", "1")])),
    altering("the group of no name", (GROUP, "", [(SET, "consumer.session.timeout.ms", "50000")])),
    altering("metrics", (CLIENT_METRICS, "m", [(SET, "interval.ms", "60000")])),
    altering("metrics too often", (CLIENT_METRICS, "m", [(SET, "interval.ms", "6")])),
    altering("metrics of no name", (CLIENT_METRICS, "", [(SET, "interval.ms", "60000")])),
    altering("metrics' unknown config", (CLIENT_METRICS, "m", [(SET, "no.such", "1")])),
    replacing("all configs", TOPIC, "a", {"retention.ms": "7"}),
    replacing("all configs of an absent topic", TOPIC, "absent", {"retention.ms": "7"}),
    replacing("all configs, one without value", TOPIC, "a", {"retention.ms": None}),
    replacing("all configs, one unknown", TOPIC, "a", {"no.such": "7"}),
    replacing("all configs of an unknown type", 99, "x", {}),
    Step(
        "configured resources",
        resources.ListConfigResourcesRequest(resource_types=[TOPIC, BROKER, CLIENT_METRICS, GROUP]),
        resources.ListConfigResourcesResponse,
        1,
    ),
    electing("preferred leaders", 0, [("a", [0, 9]), ("absent", [0])]),
    electing("any leader", 1, [("a", [0])]),
    electing("an unknown election", 5, [("a", [0])]),
    reassigned("as it is", ("a", 0, [1])),
    reassigned("elsewhere", ("a", 1, [2]), ("absent", 0, [1]), ("a.b", 9, [1]), ("hand", 0, [])),
    reassigned("cancelled", ("a", 2, None)),
    reassigned("with another factor", ("a", 0, [1, 2]), may_change=False),
    Step(
        "reassignments",
        reassigning.ListPartitionReassignmentsRequest(topics=None),
        reassigning.ListPartitionReassignmentsResponse,
        0,
    ),
    *(
        updating(feature, level, upgrade_type)
        for feature, level, upgrade_type in (
            ("group.version", 2, 1),
            ("no.such", 1, 1),
            ("group.version", -1, 1),
            ("group.version", 0, 1),
            ("group.version", 1, 0),
            ("group.version", 1, 2),
            ("metadata.version", 29, 2),
            ("metadata.version", 29, 3),
            ("metadata.version", 99, 1),
        )
    ),
    describing("some topics", "a", "absent", "bad name", "a.b"),
    describing("a page", "a", "absent", "a.b", limit=3),
    describing("from a cursor on", "a", "a.b", cursor=("a", 1)),
    describing("from another topic on", "a", "a.b", cursor=("zz", 1)),
    describing("from before the beginning on", "a", "a.b", cursor=("a", -1)),
    describing("from behind the end on", "a", cursor=("a", 99)),
    Step("a broker", unregister.UnregisterBrokerRequest(broker_id=77), unregister.UnregisterBrokerResponse, 0),
    deleting("topics", "absent", "hand", "hand"),
    deleting("a topic", "a.b"),
    deleting("by id", topic_ids=[b"0123456789abcdef"]),
    deleting("nothing", topic_ids=[NO_UUID]),
    deleting("the metadata", "__cluster_metadata"),
)


def plain(value: object) -> object:
    """Returns an answer without the parts that differ: ids, throttle times, the order of results, default messages."""
    if hasattr(value, "__wire__"):
        return {name: plain(getattr(value, name)) for name in value.__wire__ if name != "throttle_time_ms"}
    if isinstance(value, list):
        return sorted(map(plain, value), key=repr)
    if isinstance(value, bytes):
        return "an id" if value != NO_UUID else "no id"
    return None if value in BARE else value


def answers(bootstrap: str) -> list[object]:
    client = WireClient(bootstrap)
    try:
        return [plain(client.ask(step.request, step.response, step.version)) for step in SCRIPT]
    finally:
        client.close()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], list[object]]:
    """Returns the answers of Apache Kafka, and of Odradek."""
    folder = tmp_path_factory.mktemp("admin")
    makers: tuple[Callable[[Path], ApacheKafka | Odradek], ...] = (
        ApacheKafka,
        lambda data: Odradek(data, {"odradek.profile": "production"}),
    )
    given: list[list[object]] = []
    for at, make in enumerate(makers):
        broker = make(folder / f"data-{at}")
        broker.start()
        try:
            given.append(answers(broker.bootstrap))
        finally:
            broker.stop()
            broker.forget()
    return given[0], given[1]


@pytest.mark.parametrize("step", range(len(SCRIPT)), ids=[f"{step.name}".replace(" ", "-") for step in SCRIPT])
def test_an_answer_is_kafka_s(both: tuple[list[object], list[object]], step: int) -> None:
    kafka_s, ours = both
    assert ours[step] == kafka_s[step]
