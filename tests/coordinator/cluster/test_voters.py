"""Tests the voters of --initial-controllers."""

from __future__ import annotations

import pytest

from coordinator.cluster.voters import InitialVoter, initial_voters, voters_record
from protocol.config import ConfigError
from protocol.types import uuid_from_text

ONE, TWO = "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A"


def test_voters_are_listed_by_their_ids() -> None:
    assert initial_voters(f" 101@[::1]:9093:{TWO}, 100@one.example:9093:{ONE},") == (
        InitialVoter(100, "one.example", 9093, uuid_from_text(ONE)),
        InitialVoter(101, "::1", 9093, uuid_from_text(TWO)),
    )


def test_their_record_has_the_listener_by_its_normal_name() -> None:
    (voter,) = voters_record(initial_voters(f"100@one.example:9093:{ONE}"), "controller").voters
    (endpoint,) = voter.endpoints
    assert (voter.voter_id, endpoint.name, endpoint.host, endpoint.port) == (100, "CONTROLLER", "one.example", 9093)


@pytest.mark.parametrize("text", [
    f"one.example:9093:{ONE}", f"x@one.example:9093:{ONE}", f"-1@one.example:9093:{ONE}", f"1@:9093:{ONE}",
    f"1@one.example:{ONE}", f"1@one.example:0:{ONE}", f"1@one.example:65536:{ONE}", "1@one.example:9093",
    f"1@[::1:9093:{ONE}", f"2147483648@one.example:9093:{ONE}", f"١@one.example:9093:{ONE}",
])  # fmt: skip
def test_what_is_no_voter_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not id@host:port:directory"):
        initial_voters(text)


@pytest.mark.parametrize(("text", "problem"), [
    (",", "No voters given"),
    (f"1@a:9093:{ONE},1@b:9093:{TWO}", "Node id 1 was specified more than once"),
    ("1@a:9093:short", "is not a UUID"),
    ("1@a:9093:AAAAAAAAAAAAAAAAAAAAAQ", "an id that Kafka reserves"),
])  # fmt: skip
def test_voters_that_make_no_quorum_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        initial_voters(text)
