"""Tests a full disk: each API in each version is answered, the broker survives, and continues once there is free
space."""

from __future__ import annotations

import asyncio
from pathlib import Path

from broker.dispatch.api import Api
from broker.handlers import APIS, NAMES
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.join_group import JoinGroupRequest
from tests.broker.asking import batch, produce
from tests.broker.extremes import TOPIC, plausible, without_answer
from tests.broker.inprocess import LONG_S, request_frame
from tests.broker.test_extremes import ExtremeBroker, answered, furnish
from tests.storage.bad_disk import FULL, BadDisk


class FullBroker(ExtremeBroker):
    """A broker on a disk that can be full, for its records, its metadata and everything else."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.disk = self.server._disk = BadDisk()

    def fill(self) -> None:
        self.disk.fault = lambda call, path: FULL if call in ("write", "open") else None

    def empty(self) -> None:
        self.disk.fault = lambda call, path: None

    async def create(self, name: str) -> int:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        request = CreateTopicsRequest(topics=[topic], timeout_ms=1_000, validate_only=False)
        return (await self.client().ask(request, 7, CreateTopicsResponse)).topics[0].error_code


async def unanswered(broker: FullBroker, api: Api, topic_id: bytes) -> list[str]:
    """Returns the versions of an API in which a valid request gets no answer."""
    silent = []
    for version in range(api.versions.first, api.versions.last + 1):
        request, client = plausible(api.request, version, topic_id), broker.client()
        if isinstance(request, CreateTopicsRequest):
            request.validate_only = False
        if isinstance(request, JoinGroupRequest):
            request.group_id = f"classic-{version}"  # a member that joins another's group waits for the other
        client.send(request_frame(request, version))
        if not without_answer(request) and not await answered(client, 1):
            silent.append(f"{api.key.name} v{version}")
        client.connection.connection_lost(None)
    return silent


async def test_each_request_is_answered_on_a_full_disk(tmp_path: Path) -> None:
    async with FullBroker(tmp_path) as broker:
        await furnish(broker)
        topic_id = await broker.settle()
        broker.fill()
        silent: list[str] = []
        for name in NAMES:
            api = APIS.find(ApiKey[name.upper()])
            assert api is not None
            silent += await unanswered(broker, api, topic_id)
        assert silent == []
        assert [bug for bug in broker.bugs if bug.startswith("request failed")] == []
        broker.empty()
        assert await broker.create("later") == ErrorCode.NONE
        assert (await produce(broker.client(), TOPIC, batch(b"v"))).error_code == 0


async def test_a_topic_is_not_created_on_a_full_disk_and_is_once_there_is_room(tmp_path: Path) -> None:
    async with FullBroker(tmp_path) as broker:
        broker.fill()
        for _ in range(2):
            assert await broker.create(TOPIC) == ErrorCode.KAFKA_STORAGE_ERROR
        broker.empty()
        assert await broker.create(TOPIC) == ErrorCode.NONE
        async with asyncio.timeout(LONG_S):
            while (await produce(broker.client(), TOPIC, batch(b"v"))).error_code:  # noqa: ASYNC110
                await asyncio.sleep(0)
