"""Tests persisters from the view of a share group's members: fenced, failing, without memory, or pruned."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from broker.share.persister import CoordinatorPersister
from broker.share.state_operations import InitializeState, ReadState, WriteState
from coordinator.share.key import ShareKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from tests.broker.inprocess import InProcess
from tests.broker.share.test_share_fetch import GROUP, OPTIONS, Fetching, acquired, eventually, serving
from tests.waiting import until

FORGETFUL = {"group.share.persister.class.name": "org.apache.kafka.server.share.persister.NoOpStatePersister"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path


def code(response: ShareAcknowledgeResponse) -> int:
    ((partition,),) = [topic.partitions for topic in response.responses]
    return partition.error_code


def key_of(fetching: Fetching) -> ShareKey:
    return ShareKey(GROUP, fetching.topic_id, 0)


async def test_another_leader_fences_this_one_which_begins_anew(directory: Path) -> None:
    async with serving(directory) as fetching:
        fetching.append(3)
        epoch, _ = await eventually(fetching, 0)
        persister = fetching.broker.server.broker.share_groups.persister
        await persister.submit(ReadState(key_of(fetching), 7))
        assert code(await fetching.acknowledge(epoch, (0, 2, 1))) == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_state_that_was_made_anew_is_where_members_go_on(directory: Path) -> None:
    async with serving(directory) as fetching:
        fetching.append(5)
        epoch, _ = await eventually(fetching, 0)
        await fetching.broker.server.broker.share_groups.persister.submit(InitializeState(key_of(fetching), 2, 3))
        assert code(await fetching.acknowledge(epoch, (0, 4, 1))) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        _, response = await eventually(fetching, epoch + 1)
        assert acquired(response) == [(3, 4, 1)]


async def test_what_could_not_be_written_is_still_the_members(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(directory) as fetching:
        fetching.append(3)
        epoch, _ = await eventually(fetching, 0)

        def submit(self: CoordinatorPersister, operation: WriteState) -> asyncio.Future[None]:
            failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            failed.set_exception(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return failed

        with monkeypatch.context() as failing:
            failing.setattr(CoordinatorPersister, "submit", submit)
            failed = await fetching.acknowledge(epoch, (0, 2, 1))
        assert code(failed) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert code(await fetching.acknowledge(epoch + 1, (0, 2, 1))) == ErrorCode.NONE


async def test_a_topic_that_is_deleted_takes_its_records_with_it(directory: Path) -> None:
    async with serving(directory) as fetching:
        fetching.append(3)
        epoch, _ = await eventually(fetching, 0)
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name="topic", topic_id=bytes(16))], topic_names=[], timeout_ms=1000
        )
        await fetching.client.ask(request, 6, DeleteTopicsResponse)
        assert code(await fetching.acknowledge(epoch, (0, 2, 1))) == ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_persister_that_keeps_nothing_begins_where_the_group_says_after_each_restart(directory: Path) -> None:
    async with InProcess(directory, {**OPTIONS, **FORGETFUL}) as broker:
        fetching = await Fetching.begin(broker)
        await fetching.fetch(0, max_wait_ms=50)
        await fetching.fetch(1, max_wait_ms=50)
        fetching.append(3)
        epoch, response = await eventually(fetching, 2)
        assert acquired(response) == [(0, 2, 1)]
        assert code(await fetching.acknowledge(epoch, (0, 2, 1))) == ErrorCode.NONE
        topic_id = fetching.topic_id
        assert broker.server.broker.image.topic("__share_group_state") is None
    async with InProcess(directory, {**OPTIONS, **FORGETFUL}) as broker:
        fetching = Fetching(broker, topic_id)
        await fetching.fetch(0, max_wait_ms=50)
        assert acquired(await fetching.fetch(1, max_wait_ms=50)) == []  # the default is latest
        fetching.append(1)
        _, response = await eventually(fetching, 2)
        assert acquired(response) == [(3, 3, 1)]


async def test_a_fetch_waits_for_as_many_bytes_as_it_wants_or_for_as_long_as_it_may(directory: Path) -> None:
    async with serving(directory) as fetching:
        fetching.append(1)
        epoch, _ = await eventually(fetching, 0)
        fetching.append(1)
        began_s = time.monotonic()
        assert acquired(await fetching.fetch(epoch, min_bytes=10_000, max_wait_ms=200)) == [(1, 1, 1)]
        assert time.monotonic() - began_s >= 0.2
        waiting = asyncio.ensure_future(fetching.fetch(epoch + 1, min_bytes=120, max_wait_ms=5_000))
        fetching.append(1)
        await asyncio.sleep(0.01)
        assert not waiting.done()
        fetching.append(1)
        assert acquired(await waiting) == [(2, 3, 1)]


async def test_the_state_topic_keeps_no_more_than_it_needs(directory: Path) -> None:
    tidy = {
        **OPTIONS,
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.prune.interval.ms": "50",
        "share.coordinator.snapshot.update.records.per.snapshot": "3",
    }
    async with InProcess(directory, tidy) as broker:
        fetching = await Fetching.begin(broker)
        fetching.append(20)
        epoch, _ = await eventually(fetching, 0)
        for offset in range(10):
            assert code(await fetching.acknowledge(epoch + offset, (offset, offset, 1))) == ErrorCode.NONE
        log = broker.server.broker.replicas.partition("__share_group_state", 0)
        await until(lambda: log.log_start_offset and log.high_watermark - log.log_start_offset <= 4)
        topic_id = fetching.topic_id
    async with InProcess(directory, tidy) as broker:
        _, response = await eventually(Fetching(broker, topic_id), 0)
        assert acquired(response)[0][0] == 10
        assert acquired(response)[-1][1] == 19
