"""Tests `odradek cluster balance` and `cluster decommission` on three brokers."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable

import pytest

from odradek.testing import Cluster
from odradek.testing.fixtures import cluster_fixture
from tests.interop.brokers import Odradek
from tests.interop.commanding import Outcome, call

pytestmark = [pytest.mark.odradek_only, pytest.mark.commands]

SOON_S = 120
INTERNAL = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
two_replicas = cluster_fixture(
    3,
    "module",
    {
        "default.replication.factor": 2,
        "min.insync.replicas": 1,
        **{f"{name}.replication.factor": 2 for name in INTERNAL},
        **{f"{name}.min.isr": 1 for name in INTERNAL[1:]},
    },
)


@pytest.fixture
def command(two_replicas: Cluster, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def run(*words: str, status: int = 0) -> Outcome:
        outcome = call(capsys, two_replicas.bootstrap, words)
        assert outcome.status == status, outcome
        return outcome

    return run


def replicas(outcome: Outcome) -> list[list[int]]:
    partitions = outcome.rows[0]["partitions"]
    assert isinstance(partitions, list)
    return [row["replicas"] for row in partitions]


def test_a_cluster_is_balanced_after_its_plan_was_shown(command: Callable[..., Outcome]) -> None:
    assigned = [word for index in range(6) for word in ("--assign", f"{index}:1,2")]
    command("topic", "create", "uneven", *assigned)
    plan = command("cluster", "balance").rows
    assert {row["result"] for row in plan} == {"would be moved"}
    assert replicas(command("topic", "describe", "uneven")) == [[1, 2]] * 6
    command("cluster", "balance", "--yes", "--wait", "2m")
    after = replicas(command("topic", "describe", "uneven"))
    assert Counter(broker for held in after for broker in held) == {1: 4, 2: 4, 3: 4}
    assert Counter(held[0] for held in after) == {1: 2, 2: 2, 3: 2}
    assert command("cluster", "balance").rows == []


def test_a_broker_leaves_after_its_replicas_have_moved(two_replicas: Cluster, command: Callable[..., Outcome]) -> None:
    command("topic", "create", "staying", "-p", "6", "-r", "2")
    plan = command("cluster", "decommission", "3").rows
    assert plan
    assert all(3 in row["replicas"] and 3 not in row["new"] for row in plan)  # type: ignore[operator]
    assert command("cluster", "decommission", "9", status=1).rows == []
    bootstrap = ",".join(two_replicas.broker(node).bootstrap for node in (1, 2))
    words = ["cluster", "decommission", "3", "--yes", "--wait", "2m", "-b", bootstrap]
    leaving = subprocess.Popen([Odradek.program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert leaving.stderr is not None
        assert any("broker 3 has no replicas left: stop it now" in line for line in leaving.stderr)
        assert not any(3 in held for held in replicas(command("topic", "describe", "staying")))
        two_replicas.broker(3).stop()
        _, notes = leaving.communicate(timeout=SOON_S)
    finally:
        leaving.kill()
        leaving.wait()
    assert leaving.returncode == 0, notes
    assert "broker 3 is unregistered" in notes
    brokers = command("cluster", "describe").rows[0]["brokers"]
    assert isinstance(brokers, list)
    assert [row["broker"] for row in brokers] == [1, 2]
    assert "need as many other active brokers" in command("cluster", "decommission", "2", status=1).err
