"""Tests how partitions are read from several leaders at once."""

from __future__ import annotations

from typing import Any, cast

import pytest

from commands.errors import CommandError
from commands.records.fetching import FetchedRecords, PartitionReader
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from protocol.records.building import build
from protocol.records.record import Record
from protocol.types import TopicPartition

FAILS, ANSWERS = 1, 2


class TwoLeaders:
    """A cluster in which broker FAILS leads partition 0 and rejects its reader, and broker ANSWERS leads partition 1.
    Both answer at once."""

    async def node(self, node: int, request: FetchRequest, response: type, *, max_version: int) -> FetchResponse:
        (topic,) = request.topics
        (partition,) = topic.partitions
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED if node == FAILS else ErrorCode.NONE
        data = PartitionData(
            partition_index=partition.partition,
            error_code=code,
            high_watermark=1,
            records=None if code else bytes(build([Record(value=b"v")])),
        )
        return FetchResponse(responses=[FetchableTopicResponse(topic=topic.topic, partitions=[data])])


async def test_records_of_a_leader_come_before_the_error_of_another() -> None:
    reader = PartitionReader(cast(Any, TwoLeaders()))
    failing, answering = TopicPartition("t", 0), TopicPartition("t", 1)
    reader.leaders = {failing: FAILS, answering: ANSWERS}
    reader.positions = {failing: 0, answering: 0}
    found: list[FetchedRecords] = []
    with pytest.raises(CommandError, match="TOPIC_AUTHORIZATION_FAILED"):
        async for fetched in reader.poll():
            found.append(fetched)
    assert [(fetched.place, len(fetched.records)) for fetched in found] == [(answering, 1)]
    assert reader.positions == {failing: 0, answering: 1}
    await reader.close()


class Unasked:
    """A broker that answers also for a partition and for a topic id that are not in the request."""

    async def node(self, node: int, request: FetchRequest, response: type, *, max_version: int) -> FetchResponse:
        (topic,) = request.topics
        parts = [PartitionData(partition_index=index, error_code=0, high_watermark=0, records=None) for index in (0, 7)]
        unknown = FetchableTopicResponse(topic_id=bytes(15) + b"x", partitions=parts)
        return FetchResponse(responses=[FetchableTopicResponse(topic=topic.topic, partitions=parts), unknown])


async def test_partitions_that_were_not_asked_for_are_ignored() -> None:
    reader = PartitionReader(cast(Any, Unasked()))
    asked = TopicPartition("t", 0)
    reader.leaders, reader.positions = {asked: ANSWERS}, {asked: 0}
    assert [fetched.place async for fetched in reader.poll()] == [asked]
    assert [*reader.ends] == [asked]
    await reader.close()
