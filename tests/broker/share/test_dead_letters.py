"""The dead-letter queue: what is written of records that a share group gives up, and that it survives a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

from coordinator.share.batches import StateBatch
from coordinator.share.records import ShareKey
from coordinator.share.shard import Written
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.records import batch
from protocol.records.record import Record, read_records
from tests.broker.inprocess import InProcess
from tests.broker.share.test_share_fetch import GROUP, OPTIONS, Fetching, acquired, eventually

GROUP_RESOURCE = 32
SET = 0
DLQ_OPTIONS = {**OPTIONS, "default.replication.factor": "1"}


async def configure(fetching: Fetching, **options: str) -> None:
    configs = [
        AlterableConfig(name=name.replace("_", "."), config_operation=SET, value=value)
        for name, value in options.items()
    ]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=GROUP, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    response = await fetching.client.ask(request, 1, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == 0, response


async def letters(broker: InProcess, count: int) -> list[Record]:
    async with asyncio.timeout(10):
        while True:
            partition = broker.server.broker.replicas.topic("dlq").get(0)
            if partition is not None and partition.high_watermark >= count:
                break
            await asyncio.sleep(0.01)
    view = partition.fetch(0, 1 << 20, 0, True).read.parts[0]
    return [record for position, header in batch.iter_batches(view) for record in read_records(view, position, header)]


def told(record: Record) -> dict[str, str]:
    return {name.removeprefix("__dlq.errors."): (value or b"").decode() for name, value in record.headers}


async def settled(fetching: Fetching, offset: int) -> None:
    """The share partition has come to this start offset."""
    found = fetching.broker.server.broker.share_groups.hosted(GROUP, _named(fetching))
    async with asyncio.timeout(10):
        while found.engine.start_offset < offset:  # noqa: ASYNC110 (the log is what is waited for)
            await asyncio.sleep(0.01)


def _named(fetching: Fetching):  # type: ignore[no-untyped-def]
    from broker.share.sessions import PartitionId

    return PartitionId(fetching.topic_id, 0)


def test_a_rejected_record_gets_a_letter(tmp_path: Path) -> None:
    async def whole() -> None:
        async with InProcess(tmp_path, DLQ_OPTIONS) as broker:
            fetching = await Fetching.begin(broker)
            await configure(fetching, errors_deadletterqueue_topic_name="dlq")
            fetching.append(3)
            epoch, _ = await eventually(fetching, 0)
            await fetching.acknowledge(epoch, (0, 0, 1), (1, 1, 3), (2, 2, 1))
            (letter,) = await letters(broker, 1)
            assert (letter.key, letter.value) == (None, None)
            assert told(letter) == {
                "topic": "topic", "partition": "0", "offset": "1", "group": GROUP, "delivery.count": "1",
                "message": "The record was rejected by a consumer.",
            }  # fmt: skip
            await settled(fetching, 3)

    asyncio.run(whole())


def test_a_record_that_was_delivered_too_often_gets_a_copy(tmp_path: Path) -> None:
    async def whole() -> None:
        async with InProcess(tmp_path, DLQ_OPTIONS) as broker:
            fetching = await Fetching.begin(broker)
            await configure(
                fetching,
                errors_deadletterqueue_topic_name="dlq",
                errors_deadletterqueue_copy_record_enable="true",
                share_delivery_count_limit="2",
            )
            fetching.append(1)
            epoch, _ = await eventually(fetching, 0)
            assert acquired(await fetching.fetch(epoch, (0, 0, 2))) == [(0, 0, 2)]
            await fetching.acknowledge(epoch + 1, (0, 0, 2))
            (letter,) = await letters(broker, 1)
            assert letter.value == b"value"
            assert told(letter)["message"] == "The record was delivered 2 times, which is the group's limit."
            await settled(fetching, 1)

    asyncio.run(whole())


def test_a_letter_that_a_crash_kept_from_being_written_is_written_later(tmp_path: Path) -> None:
    async def whole() -> None:
        async with InProcess(tmp_path, DLQ_OPTIONS) as broker:
            fetching = await Fetching.begin(broker)
            await configure(fetching, errors_deadletterqueue_topic_name="dlq")
            fetching.append(2)
            archiving = Written(1, 0, 0, 0, [StateBatch(0, 0, 3, 4)])
            key = ShareKey(GROUP, fetching.topic_id, 0)
            await broker.server.broker.share_groups.persister.write(key, archiving)
            _, response = await eventually(fetching, 0)
            assert acquired(response) == [(1, 1, 1)]
            (letter,) = await letters(broker, 1)
            assert (told(letter)["offset"], told(letter)["delivery.count"]) == ("0", "4")
            await settled(fetching, 1)

    asyncio.run(whole())
