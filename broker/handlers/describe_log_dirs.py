"""DescribeLogDirs (35): describes the log directories, with their replicas and sizes (KIP-113).

v1 is as v0, v2 is flexible, v3 has a top-level error (KIP-784), v4 the sizes of the volumes (KIP-827), v5 says which
directories take no new partitions (KIP-1066).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import DESCRIBE_CLUSTER
from protocol.errors import ErrorCode
from protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from storage.failure import failure
from storage.log_dir import LogDir, ReplicaSize

UNKNOWN = -1


async def describe_log_dirs(call: Call[DescribeLogDirsRequest]) -> DescribeLogDirsResponse:
    requested: dict[str, set[int]] | None = None
    if call.request.topics is not None:
        requested = defaultdict(set)
        for topic in call.request.topics:
            requested[topic.topic].update(topic.partitions)
    results = [describe(call, log_dir, requested) for log_dir in call.broker.logs.dirs.values()]
    return DescribeLogDirsResponse(results=results)


def describe(
    call: Call[DescribeLogDirsRequest], log_dir: LogDir, requested: Mapping[str, set[int]] | None
) -> DescribeLogDirsResult:
    try:
        space = log_dir.space() if log_dir.online else None
    except OSError as error:
        failure(log_dir.path, "looking for room", error, call.broker.logs.on_failure)
        space = None
    if space is None:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=log_dir.path, topics=[])
    topics: dict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for replica in call.broker.logs.sizes(log_dir.path):
        topic, index = replica.topic_partition
        if requested is None or index in requested.get(topic, ()):
            topics[topic].append(describe_replica(call, replica))
    call.announce(sum(map(len, topics.values())))
    return DescribeLogDirsResult(
        error_code=0,
        log_dir=log_dir.path,
        topics=[DescribeLogDirsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
        total_bytes=space.total_bytes,
        usable_bytes=space.usable_bytes,
    )


def describe_replica(call: Call[DescribeLogDirsRequest], replica: ReplicaSize) -> DescribeLogDirsPartition:
    """Describes a replica. Its lag counts from the high watermark; the lag of a future replica, from the replica that
    it will replace."""
    current = call.broker.logs.get(replica.topic_partition)
    goal = UNKNOWN if current is None else current.log_end_offset if replica.is_future else current.high_watermark
    return DescribeLogDirsPartition(
        partition_index=replica.topic_partition.partition,
        partition_size=replica.size_bytes,
        offset_lag=UNKNOWN if current is None else max(goal - replica.log_end_offset, 0),
        is_future_key=replica.is_future,
    )


API = Api(DescribeLogDirsRequest, DescribeLogDirsResponse, describe_log_dirs, authorize=whole(DESCRIBE_CLUSTER))
