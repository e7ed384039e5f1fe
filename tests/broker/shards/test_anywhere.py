"""Tests requests to other brokers: one message to each is in flight, and requests that come meanwhile are in the
next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from broker.shards import anywhere as rules
from broker.shards.anywhere import Anywhere, Packing
from client.errors import PeerUnavailable, RequestTimedOut, UnsupportedVersion
from protocol.errors import ErrorCode, KafkaError, ProtocolError

REFUSED = 8


class Message(NamedTuple):
    """A message whose answer repeats its requests."""

    requests: Sequence[int]


def unpack(requests: Sequence[int], response: Message) -> list[int | KafkaError]:
    return [KafkaError(ErrorCode.INVALID_REQUEST) if number == REFUSED else number for number in response.requests]


NUMBERS = Packing("numbers", Message, Message, unpack, lambda number: number % 10)
BY_SIGN = NUMBERS._replace(common=lambda number: number < 0)


class Network:
    """A replacement for `broker.shards.connections.Connections` that returns each message as its answer, once the test
    allows it."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, list[int]]] = []
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.purposes: list[str] = []
        self.is_stopped = False
        self.anywhere = Anywhere(self.connect)  # type: ignore[arg-type]  # as far as it is used

    def connect(self, purpose: str) -> Network:
        self.purposes.append(purpose)
        return self

    async def send(self, broker_id: int, request: Any, response: type[Message]) -> Any:
        self.messages.append((broker_id, list(request.requests)))
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return request

    def stop(self) -> None:
        self.is_stopped = True

    def submit(
        self, number: int, broker_id: int = 1, packing: Packing[int, Message, int] = NUMBERS
    ) -> asyncio.Future[int]:
        return self.anywhere.submit(broker_id, packing, number)


@pytest.fixture
async def network() -> Network:
    return Network()


async def together(network: Network, *numbers: int) -> list[int]:
    return await asyncio.gather(*map(network.submit, numbers))


async def test_what_comes_in_one_turn_goes_in_one_message(network: Network) -> None:
    assert await together(network, 1, 2) == [1, 2]
    assert network.messages == [(1, [1, 2])]


async def test_one_message_is_under_way_to_each_broker(network: Network) -> None:
    network.gate.clear()
    first = [network.submit(1), network.submit(5, 2)]
    await asyncio.sleep(0)
    later = [network.submit(2), network.submit(3)]
    await asyncio.sleep(0)
    assert network.messages == [(1, [1]), (2, [5])]
    network.gate.set()
    assert await asyncio.gather(*first, *later) == [1, 5, 2, 3]
    assert network.messages[2:] == [(1, [2, 3])]


async def test_a_message_has_one_request_of_a_key(network: Network) -> None:
    assert await together(network, 1, 11, 2) == [1, 11, 2]
    assert network.messages == [(1, [1, 2]), (1, [11])]


async def test_a_message_has_requests_with_one_common_part(network: Network) -> None:
    answers = [network.submit(number, packing=BY_SIGN) for number in (1, -2, 3, -4)]
    assert await asyncio.gather(*answers) == [1, -2, 3, -4]
    assert network.messages == [(1, [1, 3]), (1, [-2, -4])]


async def test_a_message_has_so_many_requests_at_most(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_REQUESTS", 2)
    assert await together(network, 1, 2, 3) == [1, 2, 3]
    assert network.messages == [(1, [1, 2]), (1, [3])]


async def test_kinds_of_one_purpose_share_their_connections(network: Network) -> None:
    await asyncio.gather(network.submit(1), network.submit(2, packing=BY_SIGN), network.submit(3, 2))
    assert network.purposes == ["numbers"]


async def test_a_request_that_nobody_waits_for_any_more_is_not_sent(network: Network) -> None:
    gone, other = network.submit(1), network.submit(2)
    gone.cancel()
    assert await other == 2
    assert network.messages == [(1, [2])]


async def test_an_error_in_an_answer_is_that_requests_alone(network: Network) -> None:
    refused, other = network.submit(REFUSED), network.submit(2)
    with pytest.raises(KafkaError, match=ErrorCode.INVALID_REQUEST.message):
        await refused
    assert await other == 2


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
async def test_a_message_without_an_answer_fails_all_of_it_and_nothing_later(
    network: Network, error: Exception, code: ErrorCode
) -> None:
    network.error = error
    results = await asyncio.gather(network.submit(1), network.submit(2), return_exceptions=True)
    assert [result.code for result in results if isinstance(result, KafkaError)] == [code, code]
    network.error = None
    assert await network.submit(3) == 3


async def test_a_stop_fails_what_waits_and_what_is_under_way_and_what_comes_later(network: Network) -> None:
    network.gate.clear()
    under_way = network.submit(1)
    await asyncio.sleep(0)
    waits = network.submit(2)
    network.anywhere.stop()
    results = await asyncio.gather(under_way, waits, network.submit(3), return_exceptions=True)
    assert [result.code for result in results if isinstance(result, KafkaError)] == [ErrorCode.NETWORK_EXCEPTION] * 3
    assert network.messages == [(1, [1])]
    assert network.is_stopped
