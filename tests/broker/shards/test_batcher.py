"""Tests the batches of requests to other brokers: one request in flight to each; items that arrive meanwhile go with
the next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from broker.shards import batcher as rules
from broker.shards.batcher import Batcher
from client.errors import PeerUnavailable, RequestTimedOut, UnsupportedVersion
from protocol.errors import ErrorCode, KafkaError, ProtocolError


class Network:
    """Answers each item with the item itself, when a test allows it."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, list[int]]] = []
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.batcher: Batcher[str, int, int] = Batcher("test", self.send)

    async def send(self, destination: str, items: Sequence[int]) -> list[int]:
        self.requests.append((destination, list(items)))
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return list(items)

    def submit(self, item: int, destination: str = "a") -> asyncio.Future[int]:
        return self.batcher.submit(destination, item % 10, item)


@pytest.fixture
async def network() -> Network:
    return Network()


async def together(network: Network, *items: int) -> list[int]:
    return await asyncio.gather(*map(network.submit, items))


async def test_what_comes_in_one_turn_goes_in_one_request(network: Network) -> None:
    assert await together(network, 1, 2) == [1, 2]
    assert network.requests == [("a", [1, 2])]


async def test_one_request_is_under_way_to_each_destination(network: Network) -> None:
    network.gate.clear()
    first = [network.submit(1), network.submit(5, "b")]
    await asyncio.sleep(0)
    later = [network.submit(2), network.submit(3)]
    await asyncio.sleep(0)
    assert network.requests == [("a", [1]), ("b", [5])]
    network.gate.set()
    assert await asyncio.gather(*first, *later) == [1, 5, 2, 3]
    assert network.requests[2:] == [("a", [2, 3])]


async def test_a_request_has_one_item_of_a_key(network: Network) -> None:
    assert await together(network, 1, 11, 2) == [1, 11, 2]
    assert network.requests == [("a", [1, 2]), ("a", [11])]


async def test_a_request_has_so_many_items_at_most(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_ITEMS", 2)
    assert await together(network, 1, 2, 3) == [1, 2, 3]
    assert network.requests == [("a", [1, 2]), ("a", [3])]


async def test_an_item_that_nobody_waits_for_any_more_is_not_sent(network: Network) -> None:
    gone, other = network.submit(1), network.submit(2)
    gone.cancel()
    assert await other == 2
    assert network.requests == [("a", [2])]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PeerUnavailable("b", "is away"), ErrorCode.NETWORK_EXCEPTION),
        (RequestTimedOut("b", "is late"), ErrorCode.REQUEST_TIMED_OUT),
        (UnsupportedVersion("b", "is old"), ErrorCode.UNSUPPORTED_VERSION),
        (ProtocolError("is no Kafka"), ErrorCode.NETWORK_EXCEPTION),
        (KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (RuntimeError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_a_request_without_an_answer_fails_all_of_it_and_nothing_later(
    network: Network, error: Exception, code: ErrorCode
) -> None:
    network.error = error
    results = await asyncio.gather(network.submit(1), network.submit(2), return_exceptions=True)
    assert [result.code for result in results if isinstance(result, KafkaError)] == [code, code]
    network.error = None
    assert await network.submit(3) == 3


async def test_a_stop_fails_what_waits_and_what_is_under_way(network: Network) -> None:
    network.gate.clear()
    under_way = network.submit(1)
    await asyncio.sleep(0)
    waits = network.submit(2)
    network.batcher.stop()
    results = await asyncio.gather(under_way, waits, return_exceptions=True)
    assert [result.code for result in results if isinstance(result, KafkaError)] == [ErrorCode.NETWORK_EXCEPTION] * 2
    assert network.requests == [("a", [1])]
