"""Tests the dead-letter queue: the letters of records that a share group can't deliver, also after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from broker.replica.replica import READ_UNCOMMITTED
from broker.share.state_operations import WriteState
from coordinator.share.batches import StateBatch
from coordinator.share.key import ShareKey
from coordinator.share.shard import StateWrite
from protocol.errors import ErrorCode
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from protocol.records import batch
from protocol.records.building import build
from protocol.records.record import Record, read_records
from tests.broker.inprocess import LONG_S, InProcess
from tests.broker.share.test_share_fetch import GROUP, OPTIONS, Fetching, acquired, eventually
from tests.waiting import until

UP, SAFE = 1, 2
TOPIC_RESOURCE, GROUP_RESOURCE = 2, 32
SET = 0
QUEUE = "dlq.group"
DLQ_OPTIONS = {
    **OPTIONS,
    "default.replication.factor": "1",
    "errors.deadletterqueue.auto.create.topics.enable": "true",
}


async def enable(fetching: Fetching, level: int = 2) -> None:
    """Sets share.version, on which dead-letter queues depend."""
    update = FeatureUpdateKey(feature="share.version", max_version_level=level, upgrade_type=UP if level > 1 else SAFE)
    response = await fetching.client.ask(UpdateFeaturesRequest(feature_updates=[update]), 1, UpdateFeaturesResponse)
    assert response.error_code == 0, response


async def begin(broker: InProcess) -> Fetching:
    """Creates a group with a queue, in a cluster that supports queues."""
    fetching = await Fetching.begin(broker)
    await enable(fetching)
    await configure(fetching, errors_deadletterqueue_topic_name=QUEUE)
    return fetching


async def configure(fetching: Fetching, kind: int = GROUP_RESOURCE, resource: str = GROUP, /, **options: str) -> None:
    assert await alter(fetching, kind, resource, options) == 0, options


async def alter(fetching: Fetching, kind: int, resource: str, options: Mapping[str, str]) -> int:
    """Sets options by attribute names; returns the error code."""
    configs = [
        AlterableConfig(name=name.replace("_", "."), config_operation=SET, value=value)
        for name, value in options.items()
    ]
    altered = AlterConfigsResource(resource_type=kind, resource_name=resource, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[altered], validate_only=False)
    response = await fetching.client.ask(request, 1, IncrementalAlterConfigsResponse)
    return response.responses[0].error_code


async def letters(broker: InProcess, count: int) -> list[Record]:
    async with asyncio.timeout(LONG_S):
        while True:
            partition = broker.server.broker.replicas.topic(QUEUE).get(0)
            if partition is not None and partition.high_watermark >= count:
                break
            await asyncio.sleep(0.01)
    view = partition.read(partition.snapshot(READ_UNCOMMITTED), 0, 1 << 20, True)
    return [record for position, header in batch.iter_batches(view) for record in read_records(view, position, header)]


def headers_of(record: Record) -> dict[str, str]:
    return {name.removeprefix("__dlq.errors."): (value or b"").decode() for name, value in record.headers}


async def settled(fetching: Fetching, offset: int) -> None:
    """Returns once the share partition has this start offset."""
    hosted = fetching.broker.server.broker.share_groups.hosted(GROUP, _named(fetching))
    await until(lambda: hosted.machine.start_offset >= offset)


def _named(fetching: Fetching):  # type: ignore[no-untyped-def]
    from broker.share.sessions import PartitionId

    return PartitionId(fetching.topic_id, 0)


async def test_a_rejected_record_gets_a_letter(tmp_path: Path) -> None:
    async with InProcess(tmp_path, DLQ_OPTIONS) as broker:
        fetching = await begin(broker)
        fetching.append(3)
        epoch, _ = await eventually(fetching, 0)
        await fetching.acknowledge(epoch, (0, 0, 1), (1, 1, 3), (2, 2, 1))
        (letter,) = await letters(broker, 1)
        assert (letter.key, letter.value) == (None, None)
        assert headers_of(letter) == {
            "topic": "topic", "partition": "0", "offset": "1", "group": GROUP, "delivery.count": "1",
            "message": "Offset rejected by client.",
        }  # fmt: skip
        await settled(fetching, 3)


async def test_a_record_that_was_delivered_too_often_gets_a_copy(tmp_path: Path) -> None:
    async with InProcess(tmp_path, DLQ_OPTIONS) as broker:
        fetching = await begin(broker)
        await configure(
            fetching,
            errors_deadletterqueue_copy_record_enable="true",
            share_delivery_count_limit="2",
        )
        fetching.append(1)
        epoch, _ = await eventually(fetching, 0)
        assert acquired(await fetching.fetch(epoch, (0, 0, 2))) == [(0, 0, 2)]
        await fetching.acknowledge(epoch + 1, (0, 0, 2))
        (letter,) = await letters(broker, 1)
        assert letter.value == b"value"
        assert headers_of(letter)["message"] == "Offset delivery count exceeded the threshold."
        await settled(fetching, 1)


async def test_a_letter_that_a_crash_kept_from_being_written_is_written_later(tmp_path: Path) -> None:
    async with InProcess(tmp_path, DLQ_OPTIONS) as broker:
        fetching = await begin(broker)
        fetching.append(2)
        archiving = StateWrite(1, 0, 0, 0, [StateBatch(0, 0, 3, 4)])
        key = ShareKey(GROUP, fetching.topic_id, 0)
        await broker.server.broker.share_groups.persister.submit(WriteState(key, archiving))
        _, response = await eventually(fetching, 0)
        assert acquired(response) == [(1, 1, 1)]
        (letter,) = await letters(broker, 1)
        assert (headers_of(letter)["offset"], headers_of(letter)["delivery.count"]) == ("0", "4")
        await settled(fetching, 1)


async def test_a_record_that_was_rejected_at_its_last_delivery_was_rejected(tmp_path: Path) -> None:
    async with InProcess(tmp_path, DLQ_OPTIONS) as broker:
        fetching = await begin(broker)
        await configure(fetching, share_delivery_count_limit="2")
        fetching.append(2)
        epoch, _ = await eventually(fetching, 0)
        await fetching.fetch(epoch, (0, 1, 2))
        await fetching.acknowledge(epoch + 1, (0, 0, 3), (1, 1, 2))
        written = await letters(broker, 2)
        assert [(headers_of(letter)["offset"], headers_of(letter)["message"]) for letter in written] == [
            ("0", "Offset rejected by client."), ("1", "Offset delivery count exceeded the threshold."),
        ]  # fmt: skip
        await settled(fetching, 2)


@pytest.mark.parametrize(
    ("queue", "options"),
    [
        ("letters", {}),
        ("dlq.not-allowed", {}),
        ("dlq.not-there", {"errors.deadletterqueue.auto.create.topics.enable": "false"}),
    ],
)
async def test_a_queue_that_may_not_be_one_holds_nobody_up(tmp_path: Path, queue: str, options: dict[str, str]) -> None:
    async with InProcess(tmp_path, {**DLQ_OPTIONS, **options}) as broker:
        fetching = await begin(broker)
        await broker.create_topic("dlq.not-allowed", 1)
        await configure(fetching, errors_deadletterqueue_topic_name=queue)
        fetching.append(2)
        epoch, _ = await eventually(fetching, 0)
        await fetching.acknowledge(epoch, (0, 0, 3), (1, 1, 1))
        await settled(fetching, 2)
        written = broker.server.broker.replicas.topic(queue)
        assert not sum(partition.high_watermark for partition in written.values())
        assert written.keys() == ({0} if queue == "dlq.not-allowed" else set())


async def test_an_internal_topic_is_no_queue(tmp_path: Path) -> None:
    async with InProcess(tmp_path, DLQ_OPTIONS) as broker:
        fetching = await Fetching.begin(broker)
        refused = await alter(fetching, GROUP_RESOURCE, GROUP, {"errors.deadletterqueue.topic.name": "__dlq"})
        assert refused == ErrorCode.INVALID_CONFIG


async def test_without_the_feature_there_is_no_queue(tmp_path: Path) -> None:
    async with InProcess(tmp_path, DLQ_OPTIONS) as broker:
        fetching = await begin(broker)
        await enable(fetching, 1)
        fetching.append(2)
        epoch, _ = await eventually(fetching, 0)
        await fetching.acknowledge(epoch, (0, 0, 3))
        await settled(fetching, 1)
        await enable(fetching, 2)
        await fetching.acknowledge(epoch + 1, (1, 1, 3))
        (letter,) = await letters(broker, 1)
        assert headers_of(letter)["offset"] == "1"


async def test_a_copy_that_the_queue_does_not_take_is_left_out(tmp_path: Path) -> None:
    async with InProcess(tmp_path, DLQ_OPTIONS) as broker:
        fetching = await begin(broker)
        await broker.create_topic(QUEUE, 1)
        await configure(
            fetching, TOPIC_RESOURCE, QUEUE, errors_deadletterqueue_group_enable="true", max_message_bytes="400"
        )
        await configure(fetching, errors_deadletterqueue_copy_record_enable="true")
        small, large = Record(0, 0, b"key", b"small"), Record(0, 0, b"key", bytes(500))
        log = broker.server.broker.replicas.partition("topic", 0)
        log.append(memoryview(build([small, large, small])), 1)
        epoch, _ = await eventually(fetching, 0)
        await fetching.acknowledge(epoch, (0, 2, 3))
        copies = await letters(broker, 3)
        assert [(letter.key, letter.value) for letter in copies] == [
            (b"key", b"small"),
            (None, None),
            (b"key", b"small"),
        ]
        assert [headers_of(letter)["offset"] for letter in copies] == ["0", "1", "2"]
