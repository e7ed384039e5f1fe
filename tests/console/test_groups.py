"""Tests the pages of groups: the list, partitions, members, strips of share groups, reset and deletion."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from client.clock import SystemClock
from client.pool import Peers
from commands.client.cluster_client import ClusterClient, CoordinatorKind, draw
from commands.client.connecting import destination
from commands.client.settings import Given, gather
from odradek.testing import Broker
from protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    Topology,
)
from tests.console.browser import Browser, produce

LEAVES = -1
"""The epoch of a member that leaves."""

ODD = "odd/group ?&<b>\u202e"


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    broker.create_topic("grouped", partitions=2)
    for partition in (0, 1):
        produce(broker.bootstrap, "grouped", [b"x"] * 100, partition)
    return "grouped"


def commit(broker: Broker, group: str, *offsets: tuple[str, int, int]) -> None:
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    reader.commit(offsets=[TopicPartition(*offset) for offset in offsets], asynchronous=False)
    reader.close()


@pytest.fixture
def member(broker: Broker, topic: str) -> Iterator[Consumer]:
    """A member of the group `grouped-live` that has its partitions."""
    reader = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "grouped-live",
            "group.protocol": "consumer",
            "client.id": "reader-7",
            "auto.offset.reset": "earliest",
        }
    )
    reader.subscribe([topic])
    message = reader.poll(20)
    assert message is not None
    yield reader
    reader.close()


def test_the_list_has_every_group_with_its_lag(browser: Browser, broker: Broker, topic: str) -> None:
    commit(broker, "grouped-list", (topic, 0, 40), (topic, 1, 90))
    with browser.events("/live/groups?q=grouped-list") as events:
        for _, content in events:
            if "grouped-list" in content:
                break
    assert "grouped-list classic Empty 0 70" in browser.get("/groups?q=grouped-list").words
    assert "No such group" in browser.get("/groups?q=grouped-list&type=share").words
    assert "grouped-list 70" in browser.get("/topics?q=grouped").words


def test_a_group_has_its_partitions(browser: Browser, broker: Broker, topic: str) -> None:
    commit(broker, "grouped-one", (topic, 0, 40))
    words = browser.get("/group?name=grouped-one").words
    assert "lag 60" in words
    assert "grouped 0 40 100 60" in words


def test_a_group_has_its_members(browser: Browser, member: Consumer) -> None:
    words = browser.get("/group?name=grouped-live").words
    assert "state Stable" in words
    assert "members 1" in words
    assert "reader-7" in words
    assert "grouped-0, grouped-1" in words


def test_a_chart_has_the_lag_of_partitions(browser: Browser, broker: Broker, topic: str) -> None:
    commit(broker, "grouped-chart", (topic, 0, 40), (topic, 1, 99))
    with browser.events("/live/groups?q=grouped-chart") as events:
        for _, content in events:
            if "grouped-chart" in content:
                break
    chart = json.loads(browser.get("/charts/lag?name=grouped-chart").text)
    assert [(line["label"], line["y"][-1]) for line in chart["series"]] == [("grouped-0", 60), ("grouped-1", 1)]
    assert json.loads(browser.get("/charts/lag?name=absent").text) == {"x": [], "series": []}


def test_a_name_can_have_any_characters(browser: Browser, broker: Broker, topic: str) -> None:
    commit(broker, ODD, (topic, 0, 1))
    page = browser.get("/group?name=odd%2Fgroup%20%3F%26%3Cb%3E%E2%80%AE")
    assert page.status == 200
    assert "<b>\u202e" not in page.text
    assert "grouped 0 1 100 99" in page.words


def test_a_group_that_is_not_there_is_404(browser: Browser) -> None:
    assert browser.get("/group?name=absent").status == 404
    assert browser.get("/group").status == 400


def test_a_reset_shows_the_change_first(browser: Browser, broker: Broker, topic: str) -> None:
    commit(broker, "grouped-reset", (topic, 0, 40), (topic, 1, 90))
    plan = browser.change("/group/reset", name="grouped-reset", to="-10")
    assert "grouped-0 40 90 50 grouped-1 90 90 0" in plan.words
    assert "odradek group reset grouped-reset --to -10 --yes" in plan.words
    assert "grouped 0 40 100 60" in browser.get("/group?name=grouped-reset").words
    page = browser.confirm("/group/reset", plan)
    assert "Reset group grouped-reset: done" in page.words
    assert "grouped 0 90 100 10" in page.words


@pytest.mark.parametrize(
    ("to", "expected"),
    [("start", "grouped-0 40 0 -40"), ("shift 5", "grouped-0 40 45 5"), ("shift -99", "grouped-0 40 0 -40"),
     ("@-1h", "grouped-0 40 0 -40"), ("7", "grouped-0 40 7 -33"), ("+3", "grouped-0 40 3 -37")],
)  # fmt: skip
def test_a_reset_goes_to_any_position(browser: Browser, broker: Broker, topic: str, to: str, expected: str) -> None:
    commit(broker, "grouped-positions", (topic, 0, 40))
    assert expected in browser.change("/group/reset", name="grouped-positions", to=to).words


@pytest.mark.parametrize("to", ["", "soon", "shift", "shift x"])
def test_a_wrong_position_is_not_planned(browser: Browser, broker: Broker, topic: str, to: str) -> None:
    commit(broker, "grouped-wrong", (topic, 0, 40))
    assert browser.change("/group/reset", name="grouped-wrong", to=to).status == 400


def test_a_reset_of_a_topic_needs_no_offsets(browser: Browser, broker: Broker, topic: str) -> None:
    commit(broker, "grouped-topic", (topic, 0, 40))
    words = browser.change("/group/reset", name="grouped-topic", to="end", topic=topic).words
    assert "grouped-0 40 100 60 grouped-1 – 100 –" in words


def test_a_reset_of_a_group_with_members_is_rejected(browser: Browser, member: Consumer) -> None:
    member.commit(asynchronous=False)
    plan = browser.change("/group/reset", name="grouped-live", to="start")
    assert "until they have left" in plan.words
    answer = browser.confirm("/group/reset", plan)
    assert answer.status == 409
    assert "UNKNOWN_MEMBER_ID" in answer.words


async def beat(cluster: ClusterClient, group: str, epoch: int, topic: str) -> StreamsGroupHeartbeatResponse:
    """Joins a streams group with a task for each partition of a topic, or goes on as its member."""
    subtopology = Subtopology(
        subtopology_id="0", source_topics=[topic], source_topic_regex=[], state_changelog_topics=[],
        repartition_sink_topics=[], repartition_source_topics=[], copartition_groups=[],
    )  # fmt: skip
    request = StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id="streams-member",
        member_epoch=epoch,
        endpoint_information_epoch=0,
        rebalance_timeout_ms=10_000,
        topology=Topology(epoch=0, subtopologies=[subtopology]) if epoch == 0 else None,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process",
    )
    return await cluster.coordinated(
        CoordinatorKind.GROUP, group, request, StreamsGroupHeartbeatResponse, code=lambda answer: answer.error_code
    )


async def test_a_streams_group_is_shown_and_reset(browser: Browser, broker: Broker, topic: str) -> None:
    name, where = "grouped-streams", destination(gather(Given(broker.bootstrap, None, None, ()), {}))
    clock = SystemClock()
    async with ClusterClient(Peers(where.connection, clock, draw, where.bootstrap), where.timeout_ms) as cluster:
        epoch, deadline = 0, time.monotonic() + 30
        while "grouped-0, grouped-1" not in (words := browser.get(f"/group?name={name}").words):
            assert time.monotonic() < deadline, words
            answer = await beat(cluster, name, epoch, topic)
            assert answer.error_code == 0
            epoch = answer.member_epoch
            await cluster.pause(200)
        assert "streams-member" in words
        await beat(cluster, name, LEAVES, topic)
    plan = browser.change("/group/reset", name=name, to="10", topic=topic)
    assert "grouped-0 – 10 – grouped-1 – 10 –" in plan.words
    page = browser.confirm("/group/reset", plan)
    assert f"Reset group {name}: done" in page.words
    assert "grouped 0 10 100 90" in page.words


def test_deleting_needs_the_name(browser: Browser, broker: Broker, topic: str) -> None:
    commit(broker, "grouped-doomed", (topic, 0, 1))
    plan = browser.change("/group/delete", name="grouped-doomed")
    assert browser.confirm("/group/delete", plan, typed="other").status == 400
    browser.confirm("/group/delete", plan, typed="grouped-doomed")
    assert browser.get("/group?name=grouped-doomed").status == 404
