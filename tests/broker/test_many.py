"""Tests requests with many entries, of every API that clients may send: their work is linear in the number of entries.

Names, ids and numbers count how often they are compared or hashed, and functions how often they are called. A search of
a list for each entry would show as quadratic work. No time is measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker.dispatch.route import Route
from broker.handlers import APIS
from broker.request.context import Principal
from protocol.api_key import ApiKey
from protocol.schema import fields_of
from tests.broker.call_counter import CallCounter
from tests.broker.doors import EVE, OPTIONS, furnished
from tests.broker.inprocess import LONG_S, InProcess, request_frame
from tests.broker.many import Many, requests_of_many

ADMIN = Principal("User", "admin")
FEW, MANY = 30, 120
MOST_TIMES = 2
"""Factor by which the work may exceed that of a linear request with MANY entries; quadratic work is four times as
much."""

CALLS_OF_ENTRY = 20
"""Number of calls per entry below which differences are ignored, because other work of the process is counted too."""

TYPED = frozenset({ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE})
"""APIs that compiled code answers, or that are answered from bytes, which don't accept names of the test's own type."""


class CountedName(str):
    """A name whose comparisons and hashes a profiler sees."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __lt__(self, other: str) -> bool:
        return str.__lt__(self, other)


def counted(message: Any) -> Any:
    """Returns the request with texts that count their uses."""
    if isinstance(message, str):
        return CountedName(message)
    if isinstance(message, list):
        return [counted(entry) for entry in message]
    if hasattr(message, "__wire__"):
        for field in fields_of(type(message)):
            setattr(message, field.name, counted(getattr(message, field.name)))
    return message


@pytest.fixture
async def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[InProcess, bytes]]:
    decode = Route.decode
    monkeypatch.setattr(Route, "decode", lambda route, *arguments: counted(decode(route, *arguments)))
    async with InProcess(tmp_path, OPTIONS) as served:
        yield served, await furnished(served)


async def work_of(broker: InProcess, many: Many, count: int, principal: Principal, topic_id: bytes) -> int:
    client = broker.client()
    client.connection.principal = principal
    frame = request_frame(many.build(count, topic_id), many.version)
    with CallCounter() as counter:
        client.send(frame)
        async with asyncio.timeout(LONG_S):
            await client.wire.answered.wait()  # idle, while a thread flushes: a loop that polls would be counted
    client.connection.connection_lost(None)
    return counter.calls


@pytest.mark.parametrize("principal", [ADMIN, EVE], ids=["permitted", "denied"])
async def test_the_work_of_a_request_is_linear_in_its_entries(
    principal: Principal, broker: tuple[InProcess, bytes]
) -> None:
    served, topic_id = broker
    problems: list[str] = []
    for api in APIS:
        for many in requests_of_many(api.request, api.versions.last) if api.key not in TYPED else ():
            await work_of(served, many, 1, principal, topic_id)
            one, few, most = [await work_of(served, many, count, principal, topic_id) for count in (1, FEW, MANY)]
            linear = max(few - one, FEW * CALLS_OF_ENTRY) * MANY / FEW
            if most - one > MOST_TIMES * linear:
                problems.append(f"{many}: {one}, {few}, {most} calls")
    assert problems == []
