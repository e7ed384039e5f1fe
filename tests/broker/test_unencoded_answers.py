"""Tests that few answers wait for a thread that encodes them: as objects they have ten times the size of their
frames."""

from __future__ import annotations

import asyncio
from pathlib import Path

from broker.dispatch.route import MAX_UNENCODED
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.inprocess import InProcess, request_frame


async def test_the_answers_about_a_topic_of_many_partitions_to_many_clients_do_not_wait_as_objects(
    tmp_path: Path,
) -> None:
    async with InProcess(tmp_path) as broker:
        await broker.create_topic("t", 1_500)
        clients = [broker.client() for _ in range(4 * MAX_UNENCODED)]
        frame = request_frame(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
        threads, most = broker.server.broker.codec_threads.of(len(frame)), 0
        for client in clients:
            client.send(frame)
        async with asyncio.timeout(60):
            while not all(client.wire.sent for client in clients):
                most = max(most, threads.unfinished)
                await asyncio.sleep(0)
        assert 0 < most <= MAX_UNENCODED
