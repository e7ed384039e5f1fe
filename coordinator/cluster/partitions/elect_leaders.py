"""Decides on ElectLeaders (KIP-460). Source: Kafka's ReplicationControlManager.electLeaders."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.image import Image
from coordinator.cluster.partitions.change import Election, PartitionTarget
from coordinator.cluster.partitions.changes import PartitionChanges
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.cluster.rejections import error_message, out_of_time
from coordinator.cluster.topics.topic import NO_LEADER
from coordinator.engine.result import Ticket, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


class ElectionType(IntEnum):
    """The kind of election: of the preferred leader if it is in sync; or of any replica if the partition has no
    leader.
    """

    PREFERRED = 0
    UNCLEAN = 1


ELECTIONS = {ElectionType.PREFERRED: Election.PREFERRED, ElectionType.UNCLEAN: Election.UNCLEAN}
NOT_AVAILABLE = {
    ElectionType.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ElectionType.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


def elect_leaders(
    image: Image, request: ElectLeadersRequest, ticket: Ticket[ElectLeadersResponse], configs: ConfigRules
) -> ClusterResult:
    """Returns the decision on the named partitions, or on all. If all, only partitions that needed an election have a
    result.
    """
    if request.topic_partitions is not None and not request.topic_partitions:
        return answered(ticket, ElectLeadersResponse(error_code=ErrorCode.NONE, replica_election_results=[]))
    if late := out_of_time(request.timeout_ms):
        return answered(ticket, _all_refused(request, late))
    if request.election_type not in (ElectionType.PREFERRED, ElectionType.UNCLEAN):
        error = KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
        return answered(ticket, _all_refused(request, error))
    kind = ElectionType(request.election_type)
    changes = PartitionChanges(image, configs)
    records: list[MetadataRecord] = []
    results = []
    for name, indexes in _asked_for(image, request):
        elected = [(index, _elect(image, changes, name, index, kind, records)) for index in indexes]
        if request.topic_partitions is None:
            elected = [(index, error) for index, error in elected if _is_news(error)]
        results.append(ReplicaElectionResult(topic=name, partition_result=[_result(*result) for result in elected]))
    return answered(ticket, ElectLeadersResponse(error_code=ErrorCode.NONE, replica_election_results=results), records)


def _all_refused(request: ElectLeadersRequest, error: KafkaError) -> ElectLeadersResponse:
    results = [
        ReplicaElectionResult(topic=topic.topic, partition_result=[_result(index, error) for index in topic.partitions])
        for topic in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(error_code=error.code, replica_election_results=results)


def _asked_for(image: Image, request: ElectLeadersRequest) -> Iterable[tuple[str, Iterable[int]]]:
    if request.topic_partitions is None:
        return [(topic.name, topic.partitions) for topic in image.topics()]
    return [(topic.topic, topic.partitions) for topic in request.topic_partitions]


NOT_NEEDED = "Leader election not needed for topic partition."


def _is_news(error: KafkaError | None) -> bool:
    return error is None or error.code is not ErrorCode.ELECTION_NOT_NEEDED


def _result(index: int, error: KafkaError | None) -> PartitionResult:
    if error is None:
        return PartitionResult(partition_id=index, error_code=ErrorCode.NONE, error_message=None)
    return PartitionResult(partition_id=index, error_code=error.code, error_message=error_message(error))


def _elect(
    image: Image,
    changes: PartitionChanges,
    name: str,
    index: int,
    kind: ElectionType,
    records: list[MetadataRecord],
) -> KafkaError | None:
    topic = image.topic(name)
    if topic is None:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    if kind is ElectionType.PREFERRED and partition.leader == partition.preferred_leader:
        return KafkaError(ErrorCode.ELECTION_NOT_NEEDED, NOT_NEEDED)
    if kind is ElectionType.UNCLEAN and partition.leader != NO_LEADER:
        return KafkaError(ErrorCode.ELECTION_NOT_NEEDED, NOT_NEEDED)
    record = changes.change(topic, index, PartitionTarget(), ELECTIONS[kind])
    if record is None:
        return KafkaError(NOT_AVAILABLE[kind])
    records.append(record)
    return None
