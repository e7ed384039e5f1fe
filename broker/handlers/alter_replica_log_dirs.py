"""AlterReplicaLogDirs (34): moves replicas between the log directories of this broker (KIP-113).

v1 is as v0, v2 is flexible. The answer says that the move began; DescribeLogDirs shows how far it is.
"""

from __future__ import annotations

from collections import defaultdict

from broker.dispatch import Api, Call
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def alter_replica_log_dirs(call: Call[AlterReplicaLogDirsRequest]) -> AlterReplicaLogDirsResponse:
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = defaultdict(list)
    for log_dir in call.request.dirs:
        for topic in log_dir.topics:
            for index in topic.partitions:
                code = move(call, topic.name, index, log_dir.path)
                result = AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                results[topic.name].append(result)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
            for name, partitions in results.items()
        ]
    )


def move(call: Call[AlterReplicaLogDirsRequest], topic: str, index: int, path: str) -> ErrorCode:
    try:
        partition = call.broker.replicas.partition(topic, index)
        call.broker.moves.begin(partition, path)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


API = Api(AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, alter_replica_log_dirs)
