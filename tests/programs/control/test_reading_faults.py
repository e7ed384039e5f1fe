"""Tests that an invalid fault is rejected, with an error that says what would be valid."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from programs.control.releases import RELEASES, latest_versions
from tests.programs.control.controlled import Controlled

WRONG = {
    "no action": ({"api": "Fetch"}, "no action is given; a fault has one of error, delay_ms"),
    "two actions": ({"error": 5, "drop": True}, "error and drop are given; a fault has one of"),
    "an unknown api": ({"api": "Produse", "error": 5}, 'api "Produse" is unknown; did you mean Produce?'),
    "an unknown key": ({"api": 999, "error": 5}, "api 999 is unknown"),
    "an unknown error": ({"error": "NOT_LEADER_OR"}, "is unknown; did you mean NOT_LEADER_OR_FOLLOWER?"),
    "no error": ({"error": "NONE"}, "error is one error"),
    "an unknown field": ({"error": 5, "topik": "t"}, "'topik' is an unknown field; did you mean topic?"),
    "a partition of no topic": ({"error": 5, "partition": 0}, "partition needs topic"),
    "a negative delay": ({"delay_ms": -1}, "delay_ms is -1, not a whole number from 0 to"),
    "a delay in words": ({"delay_ms": "long"}, "delay_ms is 'long', not a whole number"),
    "a truth for a number": ({"delay_ms": True}, "delay_ms is True, not a whole number"),
    "never": ({"error": 5, "times": 0}, "times is 0, not a whole number from 1 on"),
    "a flag that is off": ({"disconnect": False}, "disconnect is False, not true"),
    "some other time": ({"drop": True, "when": "later"}, "when 'later' is unknown; did you mean after?"),
    "a version of no api": ({"max_version": 3}, 'max_version needs api, such as {"api": "Fetch"'),
    "an unknown release": ({"release": "2.10"}, "release '2.10' is unknown"),
    "a release of an api": ({"release": "2.1", "api": "Fetch"}, "release applies to all APIs"),
    "an unknown state": ({"coordinator": "asleep"}, "coordinator 'asleep' is unknown; expected one of loading"),
    "no coordinator's api": ({"coordinator": "moved", "api": "Fetch"}, "api names none of them"),
    "no partition": ({"no_leader": True, "topic": "t"}, "no_leader needs topic and partition"),
    "a partition that is not there": ({"no_leader": True, "topic": "t", "partition": 0}, "there is no partition t-0"),
    "a leader some times": (
        {"no_leader": True, "topic": "t", "partition": 0, "times": 1},
        "it has no skip and no times",
    ),
    "a disk of a topic": ({"disk_full": True, "topic": "t"}, "disk_full applies to all records"),
}


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Controlled]:
    async with Controlled(tmp_path) as controlled:
        yield controlled


async def test_what_is_wrong_with_a_fault_is_told(broker: Controlled) -> None:
    for name, (content, reason) in WRONG.items():
        answer = await broker.control.ask("POST", "/v1/faults", content)
        assert answer.status in (400, 404), name
        assert reason in answer.content["error"], name
    assert await broker.get("/v1/faults") == {"faults": []}


async def test_a_fault_is_shown_as_it_was_set(broker: Controlled) -> None:
    await broker.fault(api=["produce", 1], topic="t", error="NOT_LEADER_OR_FOLLOWER", times=3)
    assert await broker.get("/v1/faults/1") == {
        "id": "1", "fired": 0, "left": 3, "api": ["Fetch", "Produce"], "topic": "t",
        "error": "NOT_LEADER_OR_FOLLOWER", "times": 3,
    }  # fmt: skip
    answer = await broker.control.ask("GET", "/v1/faults/2")
    assert (answer.status, answer.content) == (404, {"error": "there is no fault 2"})


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_has_the_versions_that_brokers_of_it_told_of(release: str) -> None:
    """kafka-python has the versions with which each release answered ApiVersions."""
    numbers = tuple(map(int, release.split(".")))
    assert latest_versions(release) == {key: last for key, (_, last) in BROKER_API_VERSIONS[numbers].items()}
