"""Tests the controller as a node with both roles uses it: its own while it leads, another node's otherwise."""

from __future__ import annotations

import asyncio
from typing import TypeVar, cast

import pytest

from broker.metadata.any_controller import RETRY_MS, AnyController
from broker.metadata.elected_controller import ElectedController
from broker.metadata.remote_controller import RemoteController
from coordinator.cluster.controller import THIS_BROKER, Asker
from protocol.errors import ErrorCode, KafkaError
from tests.clock import ManualClock

R = TypeVar("R")

TIMEOUT_MS = 1_000


class Side:
    """A controller, in this process or elsewhere, which is asked or loses the leadership."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.leads = False
        self.errors: list[ErrorCode] = []

    async def settled(self) -> None:
        pass

    async def submit(self, _: object, response: type[R], __: Asker = THIS_BROKER) -> R:
        if self.errors:
            self.leads = False
            raise KafkaError(self.errors.pop(0))
        return cast(R, self.name)


class Sides:
    def __init__(self, *, leads: bool) -> None:
        self.own, self.others, self.clock = Side("own"), Side("others"), ManualClock()
        self.own.leads = leads
        self.controller = AnyController(
            cast(ElectedController, self.own), cast(RemoteController, self.others), self.clock, TIMEOUT_MS
        )

    async def ask(self) -> object:
        asked = asyncio.ensure_future(self.controller.submit(object(), object))
        while not asked.done():
            await asyncio.sleep(0)
            self.clock.advance(RETRY_MS)
        return await asked


@pytest.mark.parametrize(("leads", "answers"), [(True, "own"), (False, "others")])
async def test_the_controller_that_leads_is_asked(leads: bool, answers: str) -> None:
    assert await Sides(leads=leads).ask() == answers


async def test_a_request_that_meets_another_leader_goes_there() -> None:
    sides = Sides(leads=True)
    sides.own.errors = [ErrorCode.NOT_CONTROLLER]
    assert await sides.ask() == "others"


async def test_another_error_is_final() -> None:
    sides = Sides(leads=True)
    sides.own.errors = [ErrorCode.STALE_BROKER_EPOCH]
    with pytest.raises(KafkaError) as rejected:
        await sides.ask()
    assert rejected.value.code is ErrorCode.STALE_BROKER_EPOCH


async def test_it_gives_up_after_its_timeout() -> None:
    sides = Sides(leads=False)
    sides.others.errors = [ErrorCode.NOT_CONTROLLER] * TIMEOUT_MS
    with pytest.raises(KafkaError) as rejected:
        await sides.ask()
    assert rejected.value.code is ErrorCode.NOT_CONTROLLER
    assert len(sides.others.errors) == TIMEOUT_MS - TIMEOUT_MS // RETRY_MS - 1
