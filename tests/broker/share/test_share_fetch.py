"""Tests ShareFetch and ShareAcknowledge on a whole broker: sessions, waiting, acknowledgements, errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.request.authorisation import Operation, Resource
from broker.request.context import Context
from broker.share.sessions import PartitionId, SessionKey
from broker.share.state_operations import InitializeState
from coordinator.share.key import ShareKey
from protocol.errors import ErrorCode
from protocol.messages.share_acknowledge import AcknowledgementBatch as Said
from protocol.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)
from protocol.records import batch
from protocol.records.building import build
from protocol.records.record import Record
from tests.broker.inprocess import LONG_S, Client, InProcess
from tests.clock import ManualClock

GROUP, MEMBER = "group", "member-1"
PARTITIONS = 20
"""More partitions than are handled in a turn, by a clock that ticks whenever it is read."""

OPTIONS = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.min.record.lock.duration.ms": "1000",
}


class Fetching:
    """A broker with a topic whose share group state exists, and one member."""

    def __init__(self, broker: InProcess, topic_id: bytes) -> None:
        self.broker = broker
        self.topic_id = topic_id
        self.client: Client = broker.client()

    @classmethod
    async def begin(cls, broker: InProcess, partitions: int = 1) -> Fetching:
        topic_id = await broker.create_topic("topic", partitions)
        for index in range(partitions):
            await broker.server.broker.share_groups.persister.submit(
                InitializeState(ShareKey(GROUP, topic_id, index), 1, 0)
            )
        return cls(broker, topic_id)

    def append(self, count: int, partition: int = 0) -> None:
        records = [Record(0, 0, None, b"value") for _ in range(count)]
        self.broker.server.broker.replicas.partition("topic", partition).append(memoryview(build(records)), 1)

    def request(self, epoch: int, *acknowledged: tuple[int, int, int], **fields: object) -> ShareFetchRequest:
        batches = [
            AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
            for first, last, kind in acknowledged
        ]
        named = [FetchPartition(partition_index=0, acknowledgement_batches=batches)]
        topics = [FetchTopic(topic_id=self.topic_id, partitions=named)] if epoch == 0 or acknowledged else []
        values: dict[str, object] = {
            "group_id": GROUP, "member_id": MEMBER, "share_session_epoch": epoch, "max_wait_ms": 0, "min_bytes": 1,
            "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500, "topics": topics, "forgotten_topics_data": [],
        }  # fmt: skip
        return ShareFetchRequest(**{**values, **fields})  # type: ignore[arg-type]

    async def fetch(self, epoch: int, *acknowledged: tuple[int, int, int], **fields: object) -> ShareFetchResponse:
        return await self.client.ask(self.request(epoch, *acknowledged, **fields), 2, ShareFetchResponse)

    async def acknowledge(self, epoch: int, *acknowledged: tuple[int, int, int]) -> ShareAcknowledgeResponse:
        batches = [
            Said(first_offset=first, last_offset=last, acknowledge_types=[kind]) for first, last, kind in acknowledged
        ]
        partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        topics = [AcknowledgeTopic(topic_id=self.topic_id, partitions=[partition])]
        request = ShareAcknowledgeRequest(
            group_id=GROUP, member_id=MEMBER, share_session_epoch=epoch, topics=topics if acknowledged else []
        )
        return await self.client.ask(request, 2, ShareAcknowledgeResponse)


def only(response: ShareFetchResponse) -> PartitionData:
    ((partition,),) = [topic.partitions for topic in response.responses]
    return partition


def acquired(response: ShareFetchResponse) -> list[tuple[int, int, int]]:
    return [
        (acquired_range.first_offset, acquired_range.last_offset, acquired_range.delivery_count)
        for topic in response.responses
        for partition in topic.partitions
        for acquired_range in partition.acquired_records
    ]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path


async def eventually(fetching: Fetching, epoch: int) -> tuple[int, ShareFetchResponse]:
    """Fetches until records arrive; at the first fetch the share partition may still be loading."""
    for next_epoch in range(epoch, epoch + 50):
        response = await fetching.fetch(next_epoch, max_wait_ms=50)
        if acquired(response):
            return next_epoch + 1, response
    raise AssertionError("nothing was acquired")


@asynccontextmanager
async def serving(directory: Path, **options: str) -> AsyncIterator[Fetching]:
    async with InProcess(directory, {**OPTIONS, **options}) as broker:
        yield await Fetching.begin(broker)


@pytest.mark.parametrize("nothing", ["max_records", "max_bytes"])
async def test_who_fetches_nothing_is_told_of_a_partition_that_is_not_there(nothing: str, tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as broker:
        fetching = await Fetching.begin(broker)
        fetching.append(1)
        named = [FetchPartition(partition_index=index, acknowledgement_batches=[]) for index in (0, 7)]
        topics = [FetchTopic(topic_id=fetching.topic_id, partitions=named)]
        answer = await fetching.fetch(0, topics=topics, **{nothing: 0})
        (topic,) = answer.responses
        assert [(part.partition_index, part.error_code) for part in topic.partitions if part.error_code] == [(7, 3)]
        assert not any(part.acquired_records for part in topic.partitions)


async def test_records_come_with_what_was_acquired_of_them(directory: Path) -> None:
    async with serving(directory) as fetching:
        fetching.append(3)
        fetching.append(2)
        _, response = await eventually(fetching, 0)
        assert acquired(response) == [(0, 4, 1)]
        assert response.acquisition_lock_timeout_ms == 30_000
        headers = [header for _, header in batch.iter_batches(only(response).records)]
        assert [(header.base_offset, header.last_offset) for header in headers] == [(0, 2), (3, 4)]


async def test_only_the_batches_that_were_acquired_are_sent(directory: Path) -> None:
    async with serving(directory) as fetching:
        for _ in range(4):
            fetching.append(5)
        epoch, response = await eventually(fetching, 0)
        response = await fetching.fetch(epoch, (0, 9, 1), (10, 19, 2), max_records=5)
        assert acquired(response) == [(10, 19, 2)]
        headers = [header for _, header in batch.iter_batches(only(response).records)]
        assert [header.base_offset for header in headers] == [10, 15]


async def test_a_fetch_that_finds_nothing_waits_for_an_append(directory: Path) -> None:
    async with serving(directory) as fetching:
        fetching.append(1)
        epoch, _ = await eventually(fetching, 0)
        waiting = asyncio.ensure_future(fetching.fetch(epoch, (0, 0, 1), max_wait_ms=5_000))
        await asyncio.sleep(0)
        fetching.append(2)
        assert acquired(await waiting) == [(1, 2, 1)]


@pytest.mark.parametrize("is_late", [False, True], ids=["there already", "while it waits"])
async def test_a_fetch_of_many_partitions_finds_a_record_of_the_last(is_late: bool, tmp_path: Path) -> None:
    """Other requests are served while the fetch goes over the partitions."""

    async with InProcess(tmp_path, OPTIONS) as broker:
        fetching = await Fetching.begin(broker, PARTITIONS)
        named = [FetchPartition(partition_index=index, acknowledgement_batches=[]) for index in range(PARTITIONS)]
        await fetching.fetch(0, topics=[FetchTopic(topic_id=fetching.topic_id, partitions=named)])
        await broker.settled()
        groups = broker.server.broker.share_groups
        groups.environment = groups.environment._replace(clock=ManualClock(tick_ms=1))
        if not is_late:
            fetching.append(1, PARTITIONS - 1)
        waiting = asyncio.ensure_future(fetching.fetch(1, max_wait_ms=60_000))
        if is_late:
            await broker.settled()
            assert not waiting.done()
            fetching.append(1, PARTITIONS - 1)
        async with asyncio.timeout(LONG_S):
            assert acquired(await waiting) == [(0, 0, 1)]


async def test_a_fetch_that_finds_nothing_waits_for_a_release(directory: Path) -> None:
    async with serving(directory) as fetching:
        fetching.append(4)
        epoch, _ = await eventually(fetching, 0)
        other = Fetching(fetching.broker, fetching.topic_id)
        await other.fetch(0, member_id="other")
        waiting = asyncio.ensure_future(other.fetch(1, member_id="other", max_wait_ms=5_000))
        await asyncio.sleep(0)
        await fetching.acknowledge(epoch, (0, 3, 2))
        assert acquired(await waiting) == [(0, 3, 2)]


async def test_releases_complete_fetches_that_wait_for_the_same_partitions(directory: Path) -> None:
    """Each release completes a fetch while another release is under way, and the fetch acquires what both have released
    (the deadlock of KAFKA-20505)."""
    async with InProcess(directory, OPTIONS) as broker:
        first = await Fetching.begin(broker, 2)
        members = [first, *(Fetching(broker, first.topic_id) for _ in range(3))]
        everything = [FetchPartition(partition_index=index, acknowledgement_batches=[]) for index in (0, 1)]
        topics = [FetchTopic(topic_id=first.topic_id, partitions=everything)]
        for number, member in enumerate(members):
            await member.fetch(0, member_id=f"member-{number}", topics=topics)
        owners, waiting = members[:2], members[2:]
        for partition, owner in enumerate(owners):
            first.append(4, partition)
            answer = await owner.fetch(1, member_id=f"member-{partition}", max_wait_ms=5_000)
            assert acquired(answer) == [(0, 3, 1)]
        fetches = [
            asyncio.ensure_future(member.fetch(1, member_id=f"member-{number}", max_wait_ms=60_000, max_records=4))
            for number, member in enumerate(waiting, 2)
        ]
        await broker.settled()
        assert not any(fetch.done() for fetch in fetches)
        released = [AcknowledgementBatch(first_offset=0, last_offset=3, acknowledge_types=[2])]
        releases = [
            owner.fetch(
                -1,
                member_id=f"member-{partition}",
                topics=[
                    FetchTopic(
                        topic_id=first.topic_id,
                        partitions=[FetchPartition(partition_index=partition, acknowledgement_batches=released)],
                    )
                ],
            )
            for partition, owner in enumerate(owners)
        ]
        async with asyncio.timeout(LONG_S):
            answers = await asyncio.gather(*releases, *fetches)
        assert [acquired(answer) for answer in answers] == [[], [], [(0, 3, 2)], [(0, 3, 2)]]


async def test_a_connection_that_closes_releases_what_its_member_had(directory: Path) -> None:
    async with serving(directory) as fetching:
        fetching.append(4)
        await eventually(fetching, 0)
        other = Fetching(fetching.broker, fetching.topic_id)
        await other.fetch(0, member_id="other")
        fetching.client.connection.connection_lost(None)
        assert acquired(await other.fetch(1, member_id="other")) == [(0, 3, 2)]
        assert fetching.broker.server.broker.share_groups.sessions.get(SessionKey(GROUP, MEMBER)) is None


async def test_the_last_fetch_takes_acknowledgements_and_ends_the_session(directory: Path) -> None:
    async with serving(directory) as fetching:
        fetching.append(4)
        await eventually(fetching, 0)
        response = await fetching.fetch(-1, (0, 1, 1))
        assert (only(response).acknowledge_error_code, acquired(response)) == (0, [])
        assert (await fetching.fetch(1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        _, response = await eventually(fetching, 0)
        assert acquired(response) == [(2, 3, 2)]


@pytest.mark.parametrize("ends", [True, False], ids=["its session ended before", "its session is open"])
async def test_the_last_member_to_close_its_connection_leaves_nothing_loaded(directory: Path, ends: bool) -> None:
    async with serving(directory) as fetching:
        groups = fetching.broker.server.broker.share_groups
        fetching.append(4)
        epoch, _ = await eventually(fetching, 0)
        other = Fetching(fetching.broker, fetching.topic_id)
        await other.fetch(0, member_id="other")
        for member, name, at in ((other, "other", 1), (fetching, MEMBER, epoch)):
            assert len(groups.at_work()) == 1
            if ends:
                await member.fetch(-1, member_id=name)
                assert (await member.fetch(at, member_id=name)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
            member.client.connection.connection_lost(None)
        assert groups.at_work() == []
        again = Fetching(fetching.broker, fetching.topic_id)
        _, response = await eventually(again, 0)
        assert acquired(response) == [(0, 3, 2)]


async def test_sessions_have_epochs_and_a_limit(directory: Path) -> None:
    async with serving(directory, **{"group.share.max.share.sessions": "1"}) as fetching:
        assert (await fetching.fetch(1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        assert (await fetching.fetch(0)).error_code == 0
        assert (await fetching.fetch(5)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert (await fetching.acknowledge(0)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        failed = await fetching.fetch(0, member_id="other")
        assert failed.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        assert (await fetching.fetch(0, (0, 1, 1))).error_code == ErrorCode.INVALID_REQUEST
        assert (await fetching.fetch(1, member_id="")).error_code == ErrorCode.INVALID_REQUEST


async def test_a_forgotten_partition_is_not_fetched_from(directory: Path) -> None:
    async with serving(directory) as fetching:
        fetching.append(1)
        epoch, _ = await eventually(fetching, 0)
        fetching.append(1)
        forgotten = [ForgottenTopic(topic_id=fetching.topic_id, partitions=[0])]
        assert acquired(await fetching.fetch(epoch, forgotten_topics_data=forgotten)) == []


@pytest.mark.parametrize(
    "acknowledged",
    [(3, 2, 1), (0, 0, 5), (0, 0, 4)],
    ids=["backwards", "a type that there is not", "a renewal unannounced"],
)
async def test_acknowledgements_that_make_no_sense_are_refused(
    directory: Path, acknowledged: tuple[int, int, int]
) -> None:
    async with serving(directory) as fetching:
        fetching.append(1)
        epoch, _ = await eventually(fetching, 0)
        response = await fetching.acknowledge(epoch, acknowledged)
        assert response.responses[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST


async def test_a_topic_that_is_not_there_is_told_so(directory: Path) -> None:
    async with serving(directory) as fetching:
        unknown = [
            FetchTopic(topic_id=b"?" * 16, partitions=[FetchPartition(partition_index=0, acknowledgement_batches=[])])
        ]
        response = await fetching.fetch(0, topics=unknown)
        assert only(response).error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_broker_that_is_restarted_goes_on_where_it_was(directory: Path) -> None:
    async with serving(directory) as fetching:
        fetching.append(6)
        epoch, _ = await eventually(fetching, 0)
        await fetching.acknowledge(epoch, (0, 1, 1), (3, 3, 3))

    async with InProcess(directory, OPTIONS) as broker:
        topic = broker.server.broker.image.topic("topic")
        assert topic is not None
        _, response = await eventually(Fetching(broker, topic.topic_id), 0)
        assert acquired(response) == [(2, 2, 2), (4, 5, 2)]


class ChangesSession:
    """An authorizer that denies a topic. At each check of another topic, another connection of the member adds the
    denied topic to the session, or removes it."""

    def __init__(self, fetching: Fetching, denied: str, partition: PartitionId) -> None:
        self._sessions = fetching.broker.server.broker.share_groups.sessions
        self._denied = denied
        self._changes = [([partition], []), ([], [partition])]

    def allows(
        self, context: Context, operation: Operation, resource: Resource, name: str, *, quiet: bool = False
    ) -> bool:
        if resource is Resource.TOPIC and self._changes:
            self._sessions.find(SessionKey(GROUP, MEMBER)).update(*self._changes.pop(0))
        return name != self._denied

    def allows_some(self, context: Context, operation: Operation, resource: Resource) -> bool:
        return True


async def test_a_topic_that_comes_into_the_session_meanwhile_is_authorized_too(directory: Path) -> None:
    async with serving(directory) as fetching:
        groups = fetching.broker.server.broker.share_groups
        secret_id = await fetching.broker.create_topic("secret")
        await groups.persister.submit(InitializeState(ShareKey(GROUP, secret_id, 0), 1, 0))
        secret = Fetching(fetching.broker, secret_id)
        records = build([Record(0, 0, None, b"value")])
        fetching.broker.server.broker.replicas.partition("secret", 0).append(memoryview(records), 1)
        epoch, _ = await eventually(secret, 0)
        await secret.acknowledge(epoch, (0, 0, 2))
        await fetching.fetch(0)
        fetching.broker.server.broker.authorizer = ChangesSession(fetching, "secret", PartitionId(secret_id, 0))
        response = await fetching.fetch(1)
        assert acquired(response) == []
