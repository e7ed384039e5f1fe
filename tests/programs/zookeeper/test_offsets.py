"""Tests OffsetCommit and OffsetFetch of version 0, which store offsets in ZooKeeper and return the errors of that Kafka
version."""

from __future__ import annotations

from protocol.errors import ErrorCode
from protocol.messages.offset_commit import (
    OffsetCommitResponse,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse
from tests.broker.inprocess import InProcess
from tests.group_requests import offset_commit
from tests.programs.zookeeper.conftest import Start, session_of
from tests.programs.zookeeper.ensemble import Ensemble


async def commit(broker: InProcess, group: str, topic: str, partition: int, metadata: str | None = None) -> int:
    """Commits offset 42, and returns the error."""
    request = offset_commit(group, {topic: {partition: 42}}, metadata=metadata)
    response = await broker.client().ask(request, 0, OffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


async def fetch(broker: InProcess, group: str, topic: str, partition: int) -> tuple[int, str | None, int]:
    request = OffsetFetchRequest(
        group_id=group, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])]
    )
    response = await broker.client().ask(request, 0, OffsetFetchResponse)
    one = response.topics[0].partitions[0]
    return one.committed_offset, one.metadata, one.error_code


UNKNOWN = (-1, "", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def test_a_committed_offset_is_a_znode_and_is_fetched(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("t")
        assert await fetch(broker, "g", "t", 0) == UNKNOWN
        assert await commit(broker, "g", "t", 0, "not kept") == 0
        assert ensemble.nodes["/consumers/g/offsets/t/0"].data == b"42"
        assert await fetch(broker, "g", "t", 0) == (42, "", 0)


async def test_a_commit_is_refused_with_the_errors_of_its_age(start: Start, ensemble: Ensemble) -> None:
    async with start(offset_metadata_max_bytes="4") as broker:
        await broker.create_topic("t")
        assert await commit(broker, "g", "t", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await commit(broker, "g", "unknown", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await commit(broker, "g", "t", 0, "12345") == ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert "/consumers/g" not in ensemble.nodes


async def test_no_group_reaches_another_path(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("t")
        before = set(ensemble.nodes)
        for group in ("", ".", "..", "a/b", "../brokers", "a\x00"):
            assert await commit(broker, group, "t", 0) == ErrorCode.INVALID_GROUP_ID
            assert (await fetch(broker, group, "t", 0))[2] == ErrorCode.INVALID_GROUP_ID
        assert {path for path in set(ensemble.nodes) - before if path.startswith("/consumers")} == set()


async def test_what_is_no_offset_is_an_error(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("t")
        for text in (b"", b"many", b"1" * 5000):
            ensemble.put("/consumers/g/offsets/t/0", text)
            assert await fetch(broker, "g", "t", 0) == (-1, "", ErrorCode.UNKNOWN_SERVER_ERROR)


async def test_without_zookeeper_offsets_are_neither_taken_nor_invented(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("t")
        session_of(broker).client.is_down = True
        assert await commit(broker, "g", "t", 0) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert await fetch(broker, "g", "t", 0) == (-1, "", ErrorCode.UNKNOWN_SERVER_ERROR)
        assert await fetch(broker, "g", "u", 0) == UNKNOWN
        session_of(broker).client.is_down = False
