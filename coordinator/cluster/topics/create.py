"""Decides on CreateTopics, and on topics that a client's Metadata request creates.

Source: Kafka's ControllerApis.createTopics and ReplicationControlManager.createTopics of 4.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container

from coordinator.cluster.configs.resource import ConfigResource, ResourceType
from coordinator.cluster.configs.rules import ConfigRules, check_length
from coordinator.cluster.image import Image
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.cluster.rejections import MAX_RECORDS, error_message, out_of_time, too_large
from coordinator.cluster.security.mutation_quota import Charge, unlimited
from coordinator.cluster.topics import names
from coordinator.cluster.topics.names import EVERYTHING
from coordinator.cluster.topics.placement import Placer, check_assignment, check_some_active
from coordinator.cluster.topics.topic import PartitionRegistration
from coordinator.engine.result import Ticket, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.metadata_records.settings import ConfigRecord
from protocol.metadata_records.topics import TopicRecord
from protocol.types import Uuid

DEFAULT = -1
"""Partition count or replication factor that stands for the broker's default."""


class CreateTopicsDecision:
    """Decides on the topics of one request one after the other; a topic that is rejected leaves no records."""

    def __init__(
        self,
        image: Image,
        options: ClusterOptions,
        rules: ConfigRules,
        new_uuid: Callable[[], Uuid],
        describable: Container[str] = EVERYTHING,
        charge: Charge = unlimited,
    ) -> None:
        """`describable` has the topics whose configs the client may see; `charge` charges the created partitions to the
        client's quota.
        """
        self._image = image
        self._options = options
        self._rules = rules
        self._new_uuid = new_uuid
        self._describable = describable
        self._charge = charge
        self._placer = Placer(image)
        self.records: list[MetadataRecord] = []

    def create(self, topic: CreatableTopic) -> CreatableTopicResult:
        """Adds the topic's records and returns its result, which has the error if it can't be created."""
        try:
            self._check_name(topic.name)
            configs = self._configs_of(topic)
            topic_id = self._new_uuid()
            partitions = self._partitions_of(topic, topic_id)
            self._charge(len(partitions))
        except KafkaError as error:
            return _failed(topic.name, error)
        self.records.append(TopicRecord(name=topic.name, topic_id=topic_id))
        for name, value in configs.items():
            self.records.append(_config_record(topic.name, name, value))
        self.records += (partition.to_record(topic_id, index) for index, partition in enumerate(partitions))
        return self._created(topic.name, topic_id, configs, partitions)

    def _check_name(self, name: str) -> None:
        if name == names.METADATA_TOPIC:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
        names.validate(name)
        if self._image.topic(name) is not None:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        colliding = self._image.colliding(name) if names.has_collision_chars(name) else None
        if colliding is not None:
            message = f"Topic '{name}' collides with existing topic: {colliding}"
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)

    def _configs_of(self, topic: CreatableTopic) -> dict[str, str]:
        without_value = [config.name for config in topic.configs if config.value is None]
        if without_value:
            message = f"Null value not supported for topic configs: {','.join(without_value)}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, message)
        configs = {config.name: config.value for config in topic.configs if config.value is not None}
        for value in configs.values():
            check_length(value)
        if configs:
            self._rules.check(ConfigResource(ResourceType.TOPIC, topic.name), configs)
        return configs

    def _partitions_of(self, topic: CreatableTopic, topic_id: Uuid) -> list[PartitionRegistration]:
        if topic.assignments:
            return self._assigned(topic)
        if topic.replication_factor < DEFAULT or topic.replication_factor == 0:
            message = "Replication factor must be larger than 0, or -1 to use the default value."
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
        if topic.num_partitions < DEFAULT or topic.num_partitions == 0:
            message = "Number of partitions was set to an invalid non-positive value."
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
        options = self._options
        count = options.num_partitions if topic.num_partitions == DEFAULT else topic.num_partitions
        factor = options.default_replication_factor if topic.replication_factor == DEFAULT else topic.replication_factor
        if options.clamp_replication_factor:
            factor = max(1, min(factor, len(self._image.brokers)))
        return self._placer.place(count, factor, seed=int.from_bytes(topic_id))

    def _assigned(self, topic: CreatableTopic) -> list[PartitionRegistration]:
        for given, what in ((topic.replication_factor, "replication factor"), (topic.num_partitions, "numPartitions")):
            if given != DEFAULT:
                message = f"A manual partition assignment was specified, but {what} was not set to -1."
                raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        partitions: dict[int, PartitionRegistration] = {}
        replication_factor = None
        for assignment in topic.assignments:
            index, replicas = assignment.partition_index, tuple(assignment.broker_ids)
            if index in partitions:
                message = f"Found multiple manual partition assignments for partition {index}"
                raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
            check_assignment(self._image, replicas, replication_factor)
            check_some_active(self._image, replicas, index)
            replication_factor = len(replicas)
            partitions[index] = self._placer.build(replicas)
        if partitions.keys() != set(range(len(partitions))):
            message = "partitions should be a consecutive 0-based integer sequence"
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        return [partitions[index] for index in range(len(partitions))]

    def _created(
        self, name: str, topic_id: Uuid, configs: dict[str, str], partitions: list[PartitionRegistration]
    ) -> CreatableTopicResult:
        if name not in self._describable:
            return CreatableTopicResult(
                name=name,
                topic_id=topic_id,
                error_code=ErrorCode.NONE,
                topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                configs=[],
            )
        return CreatableTopicResult(
            name=name,
            topic_id=topic_id,
            error_code=ErrorCode.NONE,
            num_partitions=len(partitions),
            replication_factor=len(partitions[0].replicas),
            configs=[
                CreatableTopicConfigs(
                    name=entry.name,
                    value=entry.value,
                    read_only=False,
                    config_source=entry.source,
                    is_sensitive=False,
                )
                for entry in self._rules.effective_topic_configs(configs, self._image)
            ],
        )


def _config_record(topic: str, name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=topic, name=name, value=value)


def _failed(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error_message(error), configs=[])


def _refused(request: CreateTopicsRequest, ticket: Ticket[CreateTopicsResponse], error: KafkaError) -> ClusterResult:
    """Returns the decision that creates nothing and gives every named topic the error."""
    response = CreateTopicsResponse(topics=[_failed(topic.name, error) for topic in request.topics])
    return answered(ticket, response)


def _asked_for(topic: CreatableTopic, default: int) -> int:
    """Returns the number of partitions that the topic requests, even if other fields are invalid."""
    if topic.assignments:
        return len(topic.assignments)
    return default if topic.num_partitions == DEFAULT else max(topic.num_partitions, 0)


def create_topics(
    image: Image,
    request: CreateTopicsRequest,
    ticket: Ticket[CreateTopicsResponse],
    options: ClusterOptions,
    rules: ConfigRules,
    new_uuid: Callable[[], Uuid],
    describable: Container[str] = EVERYTHING,
    charge: Charge = unlimited,
) -> ClusterResult:
    """Returns the decision, with a result for each topic; without records if the request only validates.

    A request that is too large is rejected as a whole: first by its number of partitions, then by the number of records
    that it would need.
    """
    named = Counter(topic.name for topic in request.topics)
    looked_at = [topic for topic in request.topics if named[topic.name] == 1 and topic.name != names.METADATA_TOPIC]
    if looked_at and (late := out_of_time(request.timeout_ms)):
        return _refused(request, ticket, late)
    if sum(_asked_for(topic, options.num_partitions) for topic in looked_at) > MAX_RECORDS:
        message = "Excessively large number of partitions per request."
        return _refused(request, ticket, KafkaError(ErrorCode.POLICY_VIOLATION, message))
    decision = CreateTopicsDecision(image, options, rules, new_uuid, describable, charge)
    results = [decision.create(topic) for topic in request.topics if named[topic.name] == 1]
    if len(decision.records) > MAX_RECORDS:
        return _refused(request, ticket, too_large())
    twice = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results += (_failed(name, twice) for name, count in named.items() if count > 1)
    return answered(ticket, CreateTopicsResponse(topics=results), () if request.validate_only else decision.records)
