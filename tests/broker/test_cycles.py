"""Tests that requests leave no reference cycles, so that their objects are freed at once. Otherwise they would wait for
a full garbage collection, which would block the event loop for a second after a few large requests."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.handlers import APIS
from broker.request.context import Principal
from tests.broker.doors import EVE, OPTIONS, furnished
from tests.broker.inprocess import LONG_S, InProcess, request_frame
from tests.broker.many import Many, requests_of_many

ADMIN = Principal("User", "admin")
FEW, MANY = 10, 50
CYCLES_OF_ENTRY = 0.5

pytestmark = pytest.mark.source_only


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[tuple[InProcess, bytes]]:
    async with InProcess(tmp_path, OPTIONS) as served:
        topic_id = await furnished(served)
        gc.disable()
        gc.freeze()  # each collection would traverse all modules
        try:
            yield served, topic_id
        finally:
            gc.unfreeze()
            gc.enable()


async def garbage(broker: InProcess, many: Many, count: int, principal: Principal, topic_id: bytes) -> int:
    """Returns the number of unreachable objects that a request with this number of entries leaves."""
    client = broker.client()
    client.connection.principal = principal
    gc.collect()
    client.send(request_frame(many.build(count, topic_id), many.version))
    async with asyncio.timeout(LONG_S):
        await client.wire.answered.wait()
    client.connection.connection_lost(None)
    await asyncio.sleep(0)
    return gc.collect()


@pytest.mark.parametrize("principal", [ADMIN, EVE], ids=["permitted", "denied"])
async def test_entries_of_a_request_leave_no_cycles(principal: Principal, broker: tuple[InProcess, bytes]) -> None:
    served, topic_id = broker
    problems: list[str] = []
    for api in APIS:
        for version in {api.versions.first, api.versions.last}:
            for many in requests_of_many(api.request, version):
                await garbage(served, many, 1, principal, topic_id)
                few, most = [await garbage(served, many, count, principal, topic_id) for count in (FEW, MANY)]
                if most - few > (MANY - FEW) * CYCLES_OF_ENTRY:
                    problems.append(f"{many}: {few} objects, {most} objects")
    assert not problems, "\n".join(problems)
