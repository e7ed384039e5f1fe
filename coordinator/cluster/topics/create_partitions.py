"""Decides on CreatePartitions. Source: Kafka's ControllerApis and ReplicationControlManager.createPartitions of 4.4."""

from __future__ import annotations

from collections import Counter

from coordinator.cluster.image import Image
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.cluster.rejections import MAX_RECORDS, error_message, out_of_time
from coordinator.cluster.security.mutation_quota import Charge, unlimited
from coordinator.cluster.topics.placement import Placer, check_assignment, check_some_active
from coordinator.cluster.topics.topic import PartitionRegistration, Topic
from coordinator.engine.result import Ticket, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

FIXED = (
    "{} can't get more partitions: the partition of {} depends on their number, so existing data would not be found."
)
TOO_MANY = KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of additional partitions per request.")
MAPPED_BY_COUNT = {
    "__consumer_offsets": "a group",
    "__transaction_state": "a transactional id",
    "__share_group_state": "a share partition",
}
"""Internal topics whose number of partitions determines where a coordinator stores its data. Kafka allows them to grow,
but its coordinators keep using the old number until they restart, and then look for their data in the wrong partitions:
committed offsets appear to be lost.
"""


def create_partitions(
    image: Image, request: CreatePartitionsRequest, ticket: Ticket[CreatePartitionsResponse], charge: Charge = unlimited
) -> ClusterResult:
    """Returns the decision, with a result for each topic. `charge` charges the new partitions to the client's quota. If
    all topics together get more than MAX_RECORDS partitions, none gets any.
    """
    named = Counter(topic.name for topic in request.topics)
    if 1 in named.values() and (late := out_of_time(request.timeout_ms)):
        return answered(
            ticket, CreatePartitionsResponse(results=[_result(topic.name, late) for topic in request.topics])
        )
    if _additional(image, request) > MAX_RECORDS:
        return answered(
            ticket, CreatePartitionsResponse(results=[_result(topic.name, TOO_MANY) for topic in request.topics])
        )
    placer = Placer(image)
    records: list[MetadataRecord] = []
    results = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if named[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            records += _grow(image, placer, topic, charge)
            results.append(_result(topic.name, None))
        except KafkaError as error:
            results.append(_result(topic.name, error))
    return answered(ticket, CreatePartitionsResponse(results=results), () if request.validate_only else records)


def _additional(image: Image, request: CreatePartitionsRequest) -> int:
    """Returns the number of partitions that all topics would get."""
    named = Counter(topic.name for topic in request.topics)
    return sum(
        max(0, requested.count - len(topic.partitions))
        for requested in request.topics
        if named[requested.name] == 1 and (topic := image.topic(requested.name)) is not None
    )


def _result(name: str, error: KafkaError | None) -> CreatePartitionsTopicResult:
    if error is None:
        return CreatePartitionsTopicResult(name=name, error_code=ErrorCode.NONE, error_message=None)
    return CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=error_message(error))


def _grow(image: Image, placer: Placer, requested: CreatePartitionsTopic, charge: Charge) -> list[MetadataRecord]:
    """Returns the records of the topic's new partitions. Raises KafkaError."""
    topic = image.topic(requested.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if requested.name in MAPPED_BY_COUNT:
        message = FIXED.format(requested.name, MAPPED_BY_COUNT[requested.name])
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    existing = len(topic.partitions)
    if requested.count == existing:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {existing} partition(s).")
    if requested.count < existing:
        message = (
            f"The topic {requested.name} currently has {existing} partition(s); "
            f"{requested.count} would not be an increase."
        )
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    additional = requested.count - existing
    if requested.assignments is not None:
        _check_count(additional, requested.assignments)
    charge(additional)
    if requested.assignments is None:
        partitions = placer.place(additional, topic.replication_factor, seed=int.from_bytes(topic.topic_id) + existing)
    else:
        partitions = _assigned(image, placer, topic, requested.assignments)
    return [partition.to_record(topic.topic_id, existing + at) for at, partition in enumerate(partitions)]


def _check_count(additional: int, assignments: list[CreatePartitionsAssignment]) -> None:
    if len(assignments) != additional:
        message = (
            f"Attempted to add {additional} additional partition(s), but only {len(assignments)} assignment(s) were "
            "specified."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _assigned(
    image: Image, placer: Placer, topic: Topic, assignments: list[CreatePartitionsAssignment]
) -> list[PartitionRegistration]:
    partitions = []
    for at, assignment in enumerate(assignments):
        check_assignment(image, assignment.broker_ids, topic.replication_factor)
        check_some_active(image, assignment.broker_ids, len(topic.partitions) + at)
        partitions.append(placer.build(tuple(assignment.broker_ids)))
    return partitions
