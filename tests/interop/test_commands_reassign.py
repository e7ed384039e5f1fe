"""Tests `odradek topic reassign` and `topic elect`: with a broker beside Apache Kafka's, and with three of our own."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from odradek.testing import Cluster
from odradek.testing.fixtures import cluster_fixture
from tests.interop.commanding import Feed, Outcome, Run, call

pytestmark = [pytest.mark.odradek_only, pytest.mark.commands]

three = cluster_fixture(3, scope="module")
SOON_S = 60


@pytest.fixture
def cluster(three: Cluster) -> Iterator[Cluster]:
    yield three
    three.recover()


def test_what_one_broker_says_of_it(run: Run, topic: str) -> None:
    run("topic", "create", topic, "-p", "2")
    assert run("topic", "reassign", topic).rows == []
    assert run("topic", "reassign", topic, "--to-brokers", "1", "--yes").rows == []
    run("topic", "reassign", topic, "--assign", "0:1", "--yes")
    (refused,) = run("topic", "reassign", topic, "--assign", "0:7", "--yes", status=1).rows
    assert str(refused["error"]).startswith("INVALID_REPLICA_ASSIGNMENT")
    assert run("topic", "reassign", topic, "--cancel", "--yes").rows == []
    run("topic", "reassign", topic, "--to-brokers", "1,x", status=2)
    run("topic", "reassign", topic, "--to-brokers", "1", "-r", "2", status=2)
    run("topic", "reassign", topic, "--assign", "9:1", status=2)
    run("topic", "reassign", f"{topic}-none", status=1)
    assert {row["result"] for row in run("topic", "elect", topic).rows} == {"has it already"}
    run("topic", "elect", topic, "--unclean", "--yes")
    run("topic", "elect", topic, "--unclean", status=2)
    run("topic", "elect", topic, "--partition", "2", status=2)


def test_replicas_move_and_preferred_leaders_lead_again(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], feed: Feed
) -> None:
    def run(*words: str) -> Outcome:
        outcome = call(capsys, cluster.bootstrap, words)
        assert outcome.status == 0, outcome
        return outcome

    run("topic", "create", "orders", "--assign", "0:1,2", "--assign", "1:2,1", "--assign", "2:1,2")
    feed(b"a\nb\nc\n")
    run("produce", "orders", "-p", "0")
    planned = run("topic", "reassign", "orders", "--to-brokers", "2,3").rows
    assert {row["result"] for row in planned} == {"would be moved"}
    assert {row["result"] for row in run("topic", "reassign", "orders", "--to-brokers", "2,3", "--yes").rows} == {
        "is being moved"
    }
    deadline = time.monotonic() + SOON_S
    while run("topic", "reassign", "orders").rows:
        assert time.monotonic() < deadline
    partitions = run("topic", "describe", "orders").rows[0]["partitions"]
    assert isinstance(partitions, list)
    assert {broker for one in partitions for broker in one["replicas"]} == {2, 3}
    assert len(run("consume", "orders", "-e").rows) == 3
    preferred = partitions[0]["replicas"][0]
    cluster.broker(preferred).kill()
    while cluster.leader("orders") == preferred:
        assert time.monotonic() < deadline
    cluster.recover()
    cluster.wait_for_isr("orders", 2, timeout_s=SOON_S)
    elected = run("topic", "elect", "orders", "--partition", "0").rows
    assert [row["result"] for row in elected] in (["elected"], ["has it already"])
    assert cluster.leader("orders") == preferred
