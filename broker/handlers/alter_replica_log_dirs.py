"""AlterReplicaLogDirs (34): moves replicas between the log directories of this broker (KIP-113).

v1 is as v0, v2 is flexible. The answer says that the move began; DescribeLogDirs shows its progress.
"""

from __future__ import annotations

from functools import partial

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import ALTER_CLUSTER
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    AlterReplicaLogDirTopicResult,
)
from protocol.types import TopicPartition
from storage.names import MAX_FOLDER_NAME, FolderKind, marked_folder_name

UNIQUE = "0" * 32
"""A placeholder as long as the unique part of a future replica's folder name."""


async def alter_replica_log_dirs(call: Call[AlterReplicaLogDirsRequest]) -> AlterReplicaLogDirsResponse:
    """Moves the replicas; a replica that is named twice moves to the directory that is named last."""
    goals: dict[str, dict[int, str]] = {}
    turns = call.turns()

    def note(path: str, topic: AlterReplicaLogDirTopic) -> None:
        goals.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, path))

    for log_dir in call.request.dirs:
        await turns.map(partial(note, log_dir.path), log_dir.topics)

    def moved(name: str, goal: tuple[int, str]) -> AlterReplicaLogDirPartitionResult:
        index, path = goal
        return AlterReplicaLogDirPartitionResult(partition_index=index, error_code=move(call, name, index, path))

    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name, partitions=await turns.map(partial(moved, name), list(paths.items()))
            )
            for name, paths in goals.items()
            if paths
        ]
    )


def move(call: Call[AlterReplicaLogDirsRequest], topic: str, index: int, path: str) -> ErrorCode:
    try:
        if len(marked_folder_name(TopicPartition(topic, index), FolderKind.FUTURE, UNIQUE)) > MAX_FOLDER_NAME:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        directory = call.broker.moves.directory(path)
        call.broker.moves.begin(call.broker.replicas.partition(topic, index), directory)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def rejection(request: AlterReplicaLogDirsRequest, error: KafkaError) -> AlterReplicaLogDirsResponse:
    """Returns the answer that rejects each move."""
    results = [
        AlterReplicaLogDirTopicResult(
            topic_name=topic.name,
            partitions=[
                AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error.code)
                for index in topic.partitions
            ],
        )
        for log_dir in request.dirs
        for topic in log_dir.topics
    ]
    return AlterReplicaLogDirsResponse(results=results)


API = Api(
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    alter_replica_log_dirs,
    authorize=whole(ALTER_CLUSTER),
    reject=rejection,
)
