"""Tests the partition that a key belongs to, the creation of a coordinator's topic, and the errors that its clients
get."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path

import pytest

from broker.shards.translations import CLIENTS, seen_by_client
from protocol.errors import ErrorCode, KafkaError
from protocol.java_hash import hash_map_order, java_hash
from tests.broker.inprocess import InProcess


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("console-consumer-1", 35_782_224),
        ("the quick brown fox jumps over the lazy dog", -2_082_818_701),
        ("größe", 98_762_257),
        ("\U0001f600", 1_772_899),
    ],
)
def test_a_keys_hash_is_javas(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_the_hashes_of_keys_take_little_memory() -> None:
    tracemalloc.start()
    try:
        for number in range(20_000):
            java_hash(f"a-group-that-was-used-once-{number}")
        size_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size_bytes < 1_000_000


def test_names_are_in_the_order_of_javas_map() -> None:
    assert hash_map_order(["roundrobin", "range", "sticky"]) == ["sticky", "range", "roundrobin"]
    assert hash_map_order([chr(code) for code in range(ord("m"), ord("a") - 1, -1)]) == list("abcdefghijklm")


def test_errors_of_the_log_become_errors_of_a_coordinator() -> None:
    assert seen_by_client(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)).code is ErrorCode.NOT_COORDINATOR
    assert seen_by_client(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)).code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert seen_by_client(KafkaError(ErrorCode.ILLEGAL_GENERATION)).code is ErrorCode.ILLEGAL_GENERATION
    assert not set(CLIENTS) & set(CLIENTS.values())


async def test_a_creation_that_fails_after_its_client_has_gone_is_no_fault_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: heard.append(context))
    asked, fails = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def create_own(_: object) -> None:
        asked.set()
        await fails

    async with InProcess(tmp_path, {"offsets.topic.replication.factor": "1"}) as broker:
        groups = broker.server.broker.groups
        with monkeypatch.context() as patched:
            patched.setattr(broker.server.broker.topics, "create_own", create_own)
            client = asyncio.ensure_future(groups.leader_of("g"))
            await asked.wait()
            client.cancel()
            with pytest.raises(asyncio.CancelledError):
                await client
            fails.set_exception(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
            for _ in range(3):  # the creation fails, and then its callbacks run
                await asyncio.sleep(0)
        assert await groups.leader_of("g") == broker.server.broker.config.node_id
    assert not heard
