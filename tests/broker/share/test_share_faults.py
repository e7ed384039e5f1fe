"""Tests a share partition that fails because of a bug in the broker: it is loaded again, and its members continue."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.share import hosted
from broker.share.sessions import PartitionId
from broker.share.state_operations import StateOperation
from coordinator.share.key import ShareKey
from coordinator.share_partition.share_partition import SharePartition
from protocol.errors import ErrorCode
from tests.broker.inprocess import InProcess
from tests.broker.share.test_dead_letters import DLQ_OPTIONS, begin, headers_of, letters
from tests.broker.share.test_persisting import code
from tests.broker.share.test_share_fetch import GROUP, acquired, eventually, serving
from tests.waiting import until

REJECT = 3


class Fault(Exception):
    pass


def fail(*_: object) -> None:
    raise Fault


async def test_an_alarm_that_fails_has_the_share_partition_loaded_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, **{"group.share.record.lock.duration.ms": "1000"}) as fetching:
        fetching.append(3)
        epoch, _ = await eventually(fetching, 0)
        groups = fetching.broker.server.broker.share_groups
        key = ShareKey(GROUP, fetching.topic_id, 0)
        before = groups._hosted[key]
        with monkeypatch.context() as patched:
            patched.setattr(SharePartition, "expire", fail)
            await until(lambda: groups._hosted.get(key) is not before)
        _, response = await eventually(fetching, epoch)
        assert acquired(response) == [(0, 2, 1)]


async def test_a_share_partition_that_is_given_up_twice_leaves_its_successor_alone(tmp_path: Path) -> None:
    async with serving(tmp_path) as fetching:
        fetching.append(3)
        epoch, _ = await eventually(fetching, 0)
        groups = fetching.broker.server.broker.share_groups
        before = groups.find(GROUP, PartitionId(fetching.topic_id, 0))
        assert before is not None
        groups.give_up(before)
        epoch, _ = await eventually(fetching, epoch)
        groups.give_up(before)
        assert code(await fetching.acknowledge(epoch, (0, 2, 1))) == ErrorCode.NONE


async def test_a_load_that_fails_is_tried_again_by_whoever_asks_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as fetching:
        fetching.append(3)
        submit = fetching.broker.server.broker.share_groups.persister.submit
        faults: list[object] = []

        def failing(operation: StateOperation[object]) -> object:
            if not faults:
                faults.append(operation)
                raise Fault
            return submit(operation)

        monkeypatch.setattr(fetching.broker.server.broker.share_groups.persister, "submit", failing)
        _, response = await eventually(fetching, 0)
        assert acquired(response) == [(0, 2, 1)]
        assert len(faults) == 1


async def test_letters_that_fail_to_be_written_have_the_share_partition_loaded_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with InProcess(tmp_path, DLQ_OPTIONS) as broker:
        fetching = await begin(broker)
        fetching.append(2)
        epoch, _ = await eventually(fetching, 0)
        key = ShareKey(GROUP, fetching.topic_id, 0)
        hosted_one = broker.server.broker.share_groups._hosted[key]
        with monkeypatch.context() as patched:
            patched.setattr(hosted, "letters_of", fail)
            await fetching.fetch(epoch, (0, 0, REJECT))
            await until(lambda: broker.server.broker.share_groups._hosted.get(key) is not hosted_one)
        _, response = await eventually(fetching, epoch + 1)
        assert acquired(response)
        (letter,) = await letters(broker, 1)
        assert headers_of(letter)["offset"] == "0"
