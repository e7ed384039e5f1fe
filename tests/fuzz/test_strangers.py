"""Tests that broken handshakes have no effects: no traceback, nothing left, no client authenticated, and all other
clients are served."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.logging import Logger
from tests.fuzz import strangers
from tests.fuzz.large import LargeFrames
from tests.fuzz.strangers import Doors, run

VISITS = 1_200


async def test_strangers_leave_nothing_behind(tmp_path: Path) -> None:
    outcome = await run(1, VISITS, tmp_path)
    print(outcome.line())
    assert not outcome.problems, "\n".join([outcome.line(), *outcome.problems])
    assert {"refused", "left outside", "let in", "cut off"} <= outcome.counts.keys()


async def test_large_requests_of_strangers_hold_nobody_up(tmp_path: Path) -> None:
    outcome = await run(5, 60, tmp_path, large=LargeFrames())
    assert not outcome.problems, "\n".join([outcome.line(), *outcome.problems])
    assert outcome.counts["large requests"] > 10


async def test_who_gets_in_without_a_proof_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("protocol.sasl.plain.PlainServer._is_right", lambda *_: True)
    outcome = await run(2, 200, tmp_path)
    assert any("without a proof" in one or "somebody is" in one for one in outcome.problems), outcome.problems


async def test_a_connection_that_is_kept_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connections: list[object] = []
    leave = strangers.Visitor.leave

    def remember(visitor: strangers.Visitor) -> None:
        leave(visitor)
        connections.append(visitor.connection)

    monkeypatch.setattr(strangers.Visitor, "leave", remember)
    outcome = await run(3, 60, tmp_path)
    assert any("more objects of connections" in problem for problem in outcome.problems), outcome.problems


async def test_a_fault_of_ours_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(self: Doors, *_: object) -> None:
        Logger("test").error("a fault")

    monkeypatch.setattr(Doors, "judge", judge)
    outcome = await run(4, 10, tmp_path)
    assert any("a fault" in problem for problem in outcome.problems)
