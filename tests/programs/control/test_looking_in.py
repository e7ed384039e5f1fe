"""Tests that a broker shows its requests and its state, and performs due work at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchResponse
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.broker.asking import FETCH_VERSION, MADE_MS, batch, fetch_request, produce
from tests.broker.inprocess import Client
from tests.programs.control.controlled import Controlled
from tests.programs.control.grouping import GROUP, committed, joined

TOPIC = "orders"
OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "log.retention.ms": "-1",
    "log.cleaner.backoff.ms": "600000",
}


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Controlled]:
    async with Controlled(tmp_path, OPTIONS) as controlled:
        yield controlled


@pytest.fixture
def client(broker: Controlled) -> Client:
    return broker.client()


async def test_requests_are_recorded_when_that_is_wanted(broker: Controlled, client: Client) -> None:
    await broker.create_topic(TOPIC, partitions=2)
    await produce(client, TOPIC, batch(b"before"))
    assert (await broker.get("/v1/requests"))["requests"] == []
    assert (await broker.post("/v1/requests/recording", enabled=True, limit=2))["limit"] == 2
    fault = await broker.fault(api="Produce", error="NOT_ENOUGH_REPLICAS", times=1)
    await client.ask(ListGroupsRequest(), 4, ListGroupsResponse)
    await produce(client, TOPIC, batch(b"refused"), partition=1)
    await client.ask(fetch_request(TOPIC), FETCH_VERSION, FetchResponse)
    assert await broker.get("/v1/requests/recording") == {"enabled": True, "limit": 2, "recorded": 2, "forgotten": 1}
    produced, fetched = (await broker.get("/v1/requests?bodies=true"))["requests"]
    assert (produced["number"], produced["api"], produced["version"]) == (2, "Produce", 12)
    assert (produced["client_id"], produced["principal"]) == ("test", "User:ANONYMOUS")
    assert (produced["fault"], produced["answer"]) == (fault, "sent")
    assert produced["partitions"] == [{"topic": TOPIC, "partition": 1}]
    assert produced["body"]["topic_data"][0]["partition_data"][0]["records"] == {"bytes": len(batch(b"refused"))}
    assert (fetched["api"], fetched["fault"], "body" in fetched) == ("Fetch", None, True)
    assert [one["number"] for one in (await broker.get("/v1/requests?api=fetch&topic=orders"))["requests"]] == [3]
    assert (await broker.get("/v1/requests?after=3"))["requests"] == []
    assert (await broker.get("/v1/requests?client_id=other"))["requests"] == []
    await broker.post("/v1/requests/recording", enabled=False)
    await client.ask(ListGroupsRequest(), 4, ListGroupsResponse)
    assert (await broker.control.ask("DELETE", "/v1/requests")).content["recorded"] == 0


async def test_what_becomes_of_a_request_is_recorded(broker: Controlled, client: Client) -> None:
    await broker.create_topic(TOPIC)
    await broker.post("/v1/requests/recording")
    await produce(client, TOPIC, batch(b"a"))
    await broker.fault(api="ListGroups", delay_ms=30)
    await client.ask(ListGroupsRequest(), 4, ListGroupsResponse)
    first, second = (await broker.get("/v1/requests"))["requests"]
    assert (first["answer"], first["answer_bytes"] > 0) == ("sent", True)
    assert second["took_ms"] >= 29


async def test_records_are_shown_as_they_are(broker: Controlled, client: Client) -> None:
    await broker.create_topic(TOPIC, partitions=2)
    await produce(client, TOPIC, batch(b"one", b"\xff", key=b"k"))
    await produce(client, TOPIC, batch(b"two"), partition=1)
    shown = await broker.get(f"/v1/records?topic={TOPIC}")
    assert [(one["partition"], one["offset"], one["key"], one["value"]) for one in shown["records"]] == [
        (0, 0, "k", "one"),
        (0, 1, "k", {"base64": "/w=="}),
        (1, 0, None, "two"),
    ]
    assert shown["records"][1]["timestamp_ms"] == MADE_MS + 1
    assert shown["partitions"][0] == {
        "partition": 0, "start_offset": 0, "high_watermark": 2, "last_stable_offset": 2, "end_offset": 2,
    }  # fmt: skip
    later = await broker.get(f"/v1/records?topic={TOPIC}&partition=0&offset=1&limit=1&isolation=read_committed")
    assert [one["offset"] for one in later["records"]] == [1]
    answer = await broker.control.ask("GET", f"/v1/records?topic={TOPIC}&partition=9")
    assert (answer.status, answer.content["error"]) == (404, "this broker has no replica of orders-9; it has [0, 1]")


async def test_a_group_is_shown_with_its_members_and_its_lag(broker: Controlled, client: Client) -> None:
    await broker.create_topic(TOPIC)
    await produce(client, TOPIC, batch(b"a", b"b", b"c"))
    member_id, generation = await joined(client, TOPIC)
    await committed(client, TOPIC, 1, (member_id, generation))
    assert await broker.get("/v1/groups") == {"groups": [{"group": GROUP, "type": "classic", "state": "Stable"}]}
    group = await broker.get(f"/v1/groups/{GROUP}")
    (member,) = group.pop("members")
    assert (member["member_id"], member["client_id"]) == (member_id, "test")
    assert member["partitions"] == [{"topic": TOPIC, "partition": 0}]
    assert group == {
        "group": GROUP, "type": "classic", "state": "Stable", "protocol": "range", "lag": 2,
        "offsets": [{"topic": TOPIC, "partition": 0, "offset": 1, "end_offset": 3, "lag": 2}],
    }  # fmt: skip


async def test_the_broker_is_shown(broker: Controlled, client: Client) -> None:
    await broker.create_topic(TOPIC)
    await produce(client, TOPIC, batch(b"a"))
    shown = await broker.get("/v1/describe")
    assert (shown["profile"], shown["node_id"], shown["connections"]) == ("test", 1, 1)
    assert shown["listeners"]["PLAINTEXT"].startswith("127.0.0.1:")
    (topic,) = shown["topics"]
    assert (topic["topic"], topic["internal"]) == (TOPIC, False)
    (partition,) = topic["partitions"]
    assert (partition["leader"], partition["isr"], partition["end_offset"]) == (1, [1], 1)
    assert partition["size_bytes"] == len(batch(b"a"))


async def test_retention_is_applied_now(broker: Controlled, client: Client) -> None:
    await broker.create_topic(TOPIC, retention_ms="1000")
    await broker.create_topic("other", retention_ms="1000")
    for topic in (TOPIC, "other"):
        await produce(client, topic, batch(b"a", b"b"))  # of a time long past
    done = await broker.post("/v1/retention", topic=TOPIC)
    assert done == {"partitions": [{"topic": TOPIC, "partition": 0, "start_offset": 2}]}
    assert await broker.post("/v1/retention", topic=TOPIC) == {"partitions": []}
    assert len((await broker.get("/v1/records?topic=other"))["records"]) == 2


async def test_a_topic_is_compacted_now(broker: Controlled, client: Client) -> None:
    await broker.create_topic(TOPIC, cleanup_policy="compact")
    for value in (b"first", b"second", b"last"):
        await produce(client, TOPIC, batch(value, key=b"k"))
    done = await broker.post("/v1/compaction")
    (cleaned,) = done["partitions"]
    assert cleaned["size_bytes"] < cleaned["size_bytes_before"]
    values = [one["value"] for one in (await broker.get(f"/v1/records?topic={TOPIC}"))["records"]]
    assert values == ["last"]
    assert await broker.post("/v1/compaction") == {"partitions": []}


async def test_a_tombstone_goes_once_its_time_is_over(broker: Controlled, client: Client) -> None:
    await broker.create_topic(TOPIC, cleanup_policy="compact", delete_retention_ms="0")
    for value in (b"first", None):
        await produce(client, TOPIC, batch(value, key=b"k"))
    await broker.post("/v1/compaction")
    values = [one["value"] for one in (await broker.get(f"/v1/records?topic={TOPIC}"))["records"]]
    assert values == [None]  # the first cleaning that finds it says when its time is over
    (cleaned,) = (await broker.post("/v1/compaction"))["partitions"]
    assert cleaned["size_bytes"] < cleaned["size_bytes_before"]
    assert (await broker.get(f"/v1/records?topic={TOPIC}"))["records"] == []
    assert await broker.post("/v1/compaction") == {"partitions": []}


async def test_logs_are_flushed_now(broker: Controlled, client: Client) -> None:
    await broker.create_topic(TOPIC, partitions=2)
    await produce(client, TOPIC, batch(b"a"))
    assert await broker.post("/v1/flush") == {"partitions": 2}
    assert [log.recovery_point for log in broker.server.broker.logs] == [1, 0]


async def test_a_topic_is_made_and_deleted(broker: Controlled, client: Client) -> None:
    content: dict[str, Any] = {"topic": TOPIC, "partitions": 2, "configs": {"retention.ms": 5, "preallocate": False}}
    made = await broker.control.ask("POST", "/v1/topics", content)
    assert (made.status, made.content["partitions"]) == (201, 2)
    assert (await produce(client, TOPIC, batch(b"a"), partition=1)).error_code == 0
    again = await broker.control.ask("POST", "/v1/topics", {"topic": TOPIC})
    assert (again.status, "TOPIC_ALREADY_EXISTS" in again.content["error"]) == (409, True)
    wrong = await broker.control.ask("POST", "/v1/topics", {"topic": "t", "configs": {"retension.ms": 1}})
    assert (wrong.status, "INVALID_CONFIG" in wrong.content["error"]) == (409, True)
    assert (await broker.control.ask("DELETE", f"/v1/topics/{TOPIC}")).status == 200
    assert (await broker.control.ask("DELETE", f"/v1/topics/{TOPIC}")).status == 404


async def test_users_and_entries_of_access_are_in_force_with_the_answer(tmp_path: Path) -> None:
    options = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    async with Controlled(tmp_path, options) as broker:
        await broker.create_topic(TOPIC)
        client = broker.client()
        assert (await produce(client, TOPIC, batch(b"a"))).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        entry = {"principal": "User:ANONYMOUS", "resource_type": "topic", "name": TOPIC, "operation": "write"}
        await broker.post("/v1/acls", **entry)
        assert (await produce(client, TOPIC, batch(b"a"))).error_code == 0
        wrong = await broker.control.ask("POST", "/v1/acls", {**entry, "operation": "wright"})
        assert (wrong.status, "did you mean WRITE?" in wrong.content["error"]) == (400, True)
        await broker.post("/v1/users", user="alice", password="secret", mechanism="SCRAM-SHA-512")
        wrong = await broker.control.ask("POST", "/v1/users", {"user": "a", "password": "b", "mechanism": "PLAIN"})
        assert wrong.status == 400
