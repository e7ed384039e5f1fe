"""A cluster of one broker for decisions, and short helpers for its records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

from coordinator.cluster.brokers.activation import controller_records, own_registration
from coordinator.cluster.brokers.features import SUPPORTED, bootstrap_records
from coordinator.cluster.brokers.heartbeat import broker_heartbeat
from coordinator.cluster.brokers.registration import register_broker
from coordinator.cluster.brokers.sessions import BrokerSessions
from coordinator.cluster.configs.resource import ResourceType
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.image import Image
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.cluster.topics.topic import PartitionRegistration
from coordinator.engine.result import Ticket
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from protocol.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from protocol.messages.delete_acls import DeleteAclsFilter
from protocol.metadata_records.security import AccessControlEntryRecord
from protocol.metadata_records.settings import ConfigRecord
from protocol.metadata_records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from protocol.types import Uuid
from tests.coordinator.driver import Asked

A = TypeVar("A")
P = ParamSpec("P")
Q = TypeVar("Q")

Decision: TypeAlias = Asked[A, MetadataRecord]
"""The records of a controller's decision, and its answer."""

NODE = 1
DIRECTORY = b"directory-one---"
TOPIC_ID = b"the-topic's-id--"
LISTENER = "PLAINTEXT"
OPTIONS = ClusterOptions(node_id=NODE)
RULES = ConfigRules(NODE)


def image(*records: MetadataRecord, options: ClusterOptions = OPTIONS) -> Image:
    """Returns the image of a registered, unfenced broker, with these records applied."""
    made = Image("the-cluster")
    made.controller_id = NODE
    apply(made, bootstrap_records())
    apply(made, controller_records(made, own_registration(NODE, b"controller-inc--", options.controller_listeners)))
    apply(made, register_broker(made, registration(), RULES)[0])
    apply(made, broker_heartbeat(made, heartbeat(made), RULES)[0])
    apply(made, records)
    return made


def decide(
    function: Callable[Concatenate[Image, Q, Ticket[A], P], ClusterResult],
    image: Image,
    request: Q,
    *args: P.args,
    **kwargs: P.kwargs,
) -> Decision[A]:
    """Makes a decision, which is not applied. Raises the KafkaError that rejects the request."""
    asked, ticket = Decision[A](), Ticket[A]()
    result = function(image, request, ticket, *args, **kwargs)
    asked.records = result.records
    for answered, answer in result.replies:
        assert answered is ticket
        asked.receive(answer)  # type: ignore[arg-type]  # the reply to a ticket has the ticket's type
    return asked


def sessions(of: Image, session_ms: int = 9_000) -> BrokerSessions:
    """Returns the sessions of a controller whose last record is the image's."""
    return BrokerSessions(session_ms, NODE, lambda: of.offset)


def apply(image: Image, records: Iterable[MetadataRecord]) -> None:
    """Applies the records as one batch."""
    for record in records:
        image.apply(record)
        image.offset += 1


def registration(broker_id: int = NODE, **fields: object) -> BrokerRegistrationRequest:
    """Returns the registration of a starting broker with one directory; `fields` replaces its fields."""
    request = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id="the-cluster",
        incarnation_id=b"broker-inc------",
        listeners=[Listener(name=LISTENER, host="127.0.0.1", port=9092, security_protocol=0)],
        features=[
            Feature(name=name, min_supported_version=levels.min_level, max_supported_version=levels.max_level)
            for name, levels in SUPPORTED.items()
        ],
        rack=None,
        log_dirs=[DIRECTORY],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def heartbeat(image: Image, broker_id: int = NODE, **fields: object) -> BrokerHeartbeatRequest:
    """Returns the heartbeat of a live broker that has read all metadata; `fields` replaces its fields."""
    request = BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=image.brokers[broker_id].epoch,
        current_metadata_offset=image.offset,
        want_fence=False,
        want_shut_down=False,
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def topic(name: str, partitions: int = 1, topic_id: Uuid = TOPIC_ID, **state: object) -> list[MetadataRecord]:
    """Returns the records of a topic on the only broker; `state` replaces fields of its partitions."""
    return [TopicRecord(name=name, topic_id=topic_id), *(partition(at, topic_id, **state) for at in range(partitions))]


def partition(index: int, topic_id: Uuid = TOPIC_ID, **state: object) -> PartitionRecord:
    """Returns a partition's record on the only broker."""
    if "replicas" in state:
        state = {"directories": (), **state}
    alone = PartitionRegistration(replicas=(NODE,), isr=(NODE,), leader=NODE, directories=(DIRECTORY,))
    return alone._replace(**state).to_record(topic_id, index)  # type: ignore[arg-type]  # fields by their names


def partition_change(**fields: object) -> PartitionChangeRecord:
    """Returns a change of a topic's first partition."""
    change = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID)
    for name, value in fields.items():
        setattr(change, name, value)
    return change


def acl(entry_id: Uuid) -> AccessControlEntryRecord:
    """Returns the record of an access control entry."""
    return AccessControlEntryRecord(
        id=entry_id,
        principal="User:a",
        resource_type=0,
        resource_name="",
        pattern_type=0,
        host="",
        operation=0,
        permission_type=0,
    )


def every_acl() -> DeleteAclsFilter:
    """Returns a filter that all access control entries match."""
    return DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


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
    """Returns a topic of a CreateTopics request."""
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
    """Returns a source of exactly these ids."""
    return iter(given).__next__
