"""Consumers' offsets in ZooKeeper: OffsetCommit and OffsetFetch of version 0, with the errors of that Kafka version.

Source: kafka.server.KafkaApis of Kafka 0.9 to 1.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.logging import get_logger
from coordinator.cluster.image import Image
from programs.zookeeper import znodes
from programs.zookeeper.client import Znode
from programs.zookeeper.session import ZookeeperSession
from protocol.errors import ErrorCode
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from protocol.types import TopicPartition

NO_OFFSET: Final = -1
MAX_OFFSET: Final = (1 << 63) - 1
MAX_DIGITS: Final = 20
"""Maximum number of digits of an offset, including its sign."""

logger = get_logger(__name__)


class ZookeeperOffsets:
    """The offsets of groups, each a decimal number in its own znode."""

    def __init__(self, session: ZookeeperSession, image: Image, max_metadata: int) -> None:
        """`max_metadata` is offset.metadata.max.bytes; the metadata itself is not stored."""
        self._session = session
        self._image = image
        self._max_metadata = max_metadata

    async def commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        """Writes the offsets of existing partitions. Answers UNKNOWN_SERVER_ERROR if ZooKeeper did not accept an
        offset, like the brokers of that Kafka version."""
        offsets: dict[str, bytes] = {}
        codes: dict[TopicPartition, ErrorCode] = {}
        for topic in request.topics:
            for requested in topic.partitions:
                partition = TopicPartition(topic.name, requested.partition_index)
                codes[partition] = self._refusal(request.group_id, partition, requested.committed_metadata)
                if codes[partition] is ErrorCode.NONE:
                    offsets[znodes.offset_path(request.group_id, *partition)] = b"%d" % requested.committed_offset
        failures = await self._put(offsets)
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=requested.partition_index,
                            error_code=_after(codes[partition], failures, request.group_id, partition),
                        )
                        for requested in topic.partitions
                        for partition in [TopicPartition(topic.name, requested.partition_index)]
                    ],
                )
                for topic in request.topics
            ]
        )

    def _refusal(self, group: str, partition: TopicPartition, metadata: str | None) -> ErrorCode:
        if not znodes.is_component(group):
            return ErrorCode.INVALID_GROUP_ID
        if self._image.partition(partition) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if metadata is not None and len(metadata) > self._max_metadata:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return ErrorCode.NONE

    async def _put(self, offsets: Mapping[str, bytes]) -> Mapping[str, OSError | None]:
        if not offsets:
            return {}
        if not self._session.connected:
            return dict.fromkeys(offsets, OSError("not connected to ZooKeeper"))
        return await self._session.call_beside(lambda client: client.put_all(offsets))

    async def fetch(self, group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
        """Reads the offsets of partitions. Answers UNKNOWN_TOPIC_OR_PARTITION for a partition without one."""
        named = {
            TopicPartition(topic.name, index): znodes.offset_path(group.group_id, topic.name, index)
            for topic in group.topics or ()
            for index in topic.partition_indexes
        }
        if not znodes.is_component(group.group_id):
            return self._answer(group, dict.fromkeys(named, ErrorCode.INVALID_GROUP_ID))
        existing = {place: path for place, path in named.items() if self._image.partition(place) is not None}
        try:
            nodes = await self._get(existing)
        except OSError as error:
            logger.warning("offsets were not read from ZooKeeper", group=group.group_id, reason=str(error))
            return self._answer(group, dict.fromkeys(existing, ErrorCode.UNKNOWN_SERVER_ERROR))
        return self._answer(group, {place: _offset(nodes, path) for place, path in existing.items()})

    async def _get(self, paths: Mapping[TopicPartition, str]) -> Mapping[str, Znode | None]:
        if not paths:
            return {}
        if not self._session.connected:
            raise OSError("not connected")
        return await self._session.call_beside(lambda client: client.get_all(paths.values(), refused=set()))

    @staticmethod
    def _answer(
        group: OffsetFetchRequestGroup, outcomes: Mapping[TopicPartition, int | ErrorCode]
    ) -> OffsetFetchResponseGroup:
        return OffsetFetchResponseGroup(
            group_id=group.group_id,
            topics=[
                OffsetFetchResponseTopics(
                    name=topic.name,
                    partitions=[
                        _fetched(index, outcomes.get(TopicPartition(topic.name, index)))
                        for index in topic.partition_indexes
                    ],
                )
                for topic in group.topics or ()
            ],
        )


def _after(code: ErrorCode, failures: Mapping[str, OSError | None], group: str, partition: TopicPartition) -> ErrorCode:
    """Returns a partition's error after the write."""
    if code is not ErrorCode.NONE or (failure := failures[znodes.offset_path(group, *partition)]) is None:
        return code
    logger.warning("an offset was not written to ZooKeeper", group=group, partition=str(partition), reason=str(failure))
    return ErrorCode.UNKNOWN_SERVER_ERROR


def _offset(nodes: Mapping[str, Znode | None], path: str) -> int | ErrorCode:
    if path not in nodes:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # reading it is not authorized
    node = nodes[path]
    if node is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    text = node.data.strip()
    if len(text) > MAX_DIGITS or not text.removeprefix(b"-").isdigit() or abs(int(text)) > MAX_OFFSET:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # a tool has written something other than an offset
    return int(text)


def _fetched(index: int, outcome: int | ErrorCode | None) -> OffsetFetchResponsePartitions:
    if outcome is None:
        outcome = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    failed = isinstance(outcome, ErrorCode)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=NO_OFFSET if failed else outcome,
        metadata="",
        error_code=outcome if failed else ErrorCode.NONE,
    )
