"""Tests the reassignment of a topic: its plan, its progress, and its end, on a cluster of two brokers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from odradek.testing import Cluster
from tests.console.browser import Browser, produce, running_console


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(2) as started:
        yield started


@pytest.fixture(scope="module")
def browser(cluster: Cluster) -> Iterator[Browser]:
    with running_console(cluster.bootstrap, "--allow-changes") as console:
        yield console.browser()


def odradek(cluster: Cluster, *words: str) -> None:
    line = [sys.executable, "-m", "odradek", *words, "-b", cluster.bootstrap]
    subprocess.run(line, check=True, capture_output=True, timeout=60)


def test_a_topic_moves_and_its_progress_is_shown(cluster: Cluster, browser: Browser) -> None:
    odradek(cluster, "topic", "create", "moved", "--assign", "0:1", "-c", "follower.replication.throttled.replicas=*")
    odradek(cluster, "config", "set", "broker", "2", "follower.replication.throttled.rate=1")
    produce(cluster.bootstrap, "moved", [os.urandom(500_000) for _ in range(12)])
    plan = browser.change("/topics/moved/reassign", brokers="2")
    assert "0 1 2" in plan.words
    assert "odradek topic reassign moved --to-brokers 2 --yes" in plan.words
    page = browser.confirm("/topics/moved/reassign", plan).words
    assert "Reassign topic moved: done" in page
    assert "1 partition is being moved" in page
    assert "adds 2 removes 1" in page
    with browser.events("/live/partitions/moved") as events:
        name, content = next(events)
    assert name == "partitions"
    assert "<progress" in content
    plan = browser.change("/topics/moved/cancel-reassign")
    assert "odradek topic reassign moved --cancel --yes" in plan.words
    assert "being moved" not in browser.confirm("/topics/moved/cancel-reassign", plan).words
    assert browser.change("/topics/moved/cancel-reassign").status == 409
    odradek(cluster, "config", "set", "broker", "2", "follower.replication.throttled.rate=1000000000")
    browser.confirm("/topics/moved/reassign", browser.change("/topics/moved/reassign", brokers="2"))
    with browser.events("/live/partitions/moved") as events:
        assert any("being moved" not in content for _, content in events)
    assert "0 2 " in browser.get("/topics/moved").words


@pytest.mark.parametrize(
    ("fields", "status"),
    [({"brokers": ""}, 400), ({"brokers": "x"}, 400), ({"brokers": "1,1"}, 400), ({"brokers": "-1"}, 400),
     ({"brokers": "1", "replicas": "2"}, 400), ({"brokers": "1", "replicas": "0"}, 400), ({"brokers": "1"}, 409)],
)  # fmt: skip
def test_a_wrong_reassignment_is_not_planned(
    cluster: Cluster, browser: Browser, fields: dict[str, str], status: int
) -> None:
    if browser.get("/topics/stays").status == 404:
        odradek(cluster, "topic", "create", "stays", "--assign", "0:1")
    answer = browser.change("/topics/stays/reassign", **fields)
    assert answer.status == status
    assert (
        "expected" in answer.words
        or "empty" in answer.words
        or "nothing to change" in answer.words
        or ("twice" in answer.words or "need as many brokers" in answer.words)
    )


def test_a_broker_that_is_not_there_is_an_error(cluster: Cluster, browser: Browser) -> None:
    odradek(cluster, "topic", "create", "unmoved", "--assign", "0:1")
    answer = browser.confirm("/topics/unmoved/reassign", browser.change("/topics/unmoved/reassign", brokers="9"))
    assert answer.status == 409
    assert "INVALID_REPLICA_ASSIGNMENT" in answer.words
