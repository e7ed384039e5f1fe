"""A cluster of one broker to decide on, and short words for its records."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from coordinator.cluster.broker_info import Endpoint
from coordinator.cluster.config_rules import ConfigRules
from coordinator.cluster.features import bootstrap_records
from coordinator.cluster.image import Image
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.registration import registration_records
from coordinator.cluster.resource import ResourceType
from coordinator.cluster.topic import Partition
from protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from protocol.metadata_records.settings import ConfigRecord
from protocol.metadata_records.topics import PartitionRecord, TopicRecord
from protocol.types import Uuid

NODE = 1
DIRECTORY = b"directory-one---"
TOPIC_ID = b"the-topic's-id--"
LISTENER = "PLAINTEXT"
OPTIONS = ClusterOptions(node_id=NODE)
RULES = ConfigRules(NODE)


def image(*records: MetadataRecord, options: ClusterOptions = OPTIONS) -> Image:
    """The image of a registered, unfenced broker, and then these records."""
    made = Image("the-cluster")
    made.controller_id = NODE
    for record in bootstrap_records():
        made.apply(record)
    endpoints = [Endpoint(LISTENER, "127.0.0.1", 9092)]
    ids = b"controller-inc--", b"broker-inc------"
    for record in registration_records(made, options, endpoints, [DIRECTORY], ids, clean=True):
        made.apply(record)
    for record in records:
        made.apply(record)
    return made


def topic(name: str, partitions: int = 1, topic_id: Uuid = TOPIC_ID, **state: object) -> list[MetadataRecord]:
    """The records of a topic on the one broker; `state` replaces fields of its partitions."""
    return [TopicRecord(name=name, topic_id=topic_id), *(partition(at, topic_id, **state) for at in range(partitions))]


def partition(index: int, topic_id: Uuid = TOPIC_ID, **state: object) -> PartitionRecord:
    """A partition's record on the one broker."""
    alone = Partition(replicas=(NODE,), isr=(NODE,), leader=NODE, directories=(DIRECTORY,))
    return alone._replace(**state).to_record(topic_id, index)  # type: ignore[arg-type]  # fields by their names


def topic_config(name: str, key: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=name, name=key, value=value)


def broker_config(broker: str, key: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.BROKER, resource_name=broker, name=key, value=value)


def creatable(
    name: str,
    partitions: int = -1,
    factor: int = -1,
    configs: Mapping[str, str | None] | None = None,
    assignments: Mapping[int, list[int]] | None = None,
) -> CreatableTopic:
    """A topic of a CreateTopics request."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assignments or {}).items()
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


def ids(*given: Uuid) -> Callable[[], Uuid]:
    """A source of exactly these ids."""
    return iter(given).__next__
