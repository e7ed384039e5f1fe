"""Tests the inputs that old tools write as znodes, and the answers to them."""

from __future__ import annotations

from functools import partial
from typing import Any

from coordinator.cluster.image import Image
from protocol.types import TopicPartition
from tests.programs.zookeeper.conftest import Start, quiet
from tests.programs.zookeeper.ensemble import Ensemble
from tests.waiting import until

A = "/brokers/topics/a"


def assignment(*replicas: list[int]) -> dict[str, object]:
    return {"version": 1, "partitions": {str(index): one for index, one in enumerate(replicas)}}


async def test_a_topic_is_created_with_its_configs(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        ensemble.put("/config/topics/a", {"version": 1, "config": {"retention.ms": "60000"}})
        ensemble.put(A, assignment([1], [1]))
        await until(lambda: f"{A}/partitions/1/state" in ensemble.nodes)
        assert broker.server.broker.image.topic_configs("a") == {"retention.ms": "60000"}


async def test_a_topic_that_a_tool_made_while_nobody_was_there_is_created(start: Start, ensemble: Ensemble) -> None:
    ensemble.put("/config/topics/a", {"version": 1, "config": {}})
    ensemble.put(A, assignment([1]))
    async with start():
        await until(lambda: f"{A}/partitions/0/state" in ensemble.nodes)


def has_configs(image: Image, configs: dict[str, str]) -> bool:
    return image.topic_configs("a") == configs


async def test_a_topic_that_cannot_be_created_is_removed(start: Start, ensemble: Ensemble) -> None:
    async with start():
        await quiet()
        wrong: Any
        for wrong in (b"nonsense", b"[" * 100_000, {"partitions": []}, {"partitions": {"x": [1]}}, assignment([7])):
            ensemble.put("/config/topics/a", {"version": 1, "config": {}})
            ensemble.put(A, wrong)
            await until(lambda: A not in ensemble.nodes)
            assert "/config/topics/a" not in ensemble.nodes


async def test_partitions_are_added(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("a")
        await until(lambda: f"{A}/partitions/0/state" in ensemble.nodes)
        ensemble.put(A, assignment([1], [1], [1]))
        await until(lambda: f"{A}/partitions/2/state" in ensemble.nodes)


async def test_partitions_that_cannot_be_added_are_taken_back(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("a")
        await until(lambda: f"{A}/partitions/0/state" in ensemble.nodes)
        for wrong in ({"version": 1, "partitions": {"0": [1], "5": [1]}}, assignment([1], [9]), b"nonsense"):
            ensemble.put(A, wrong)
            await until(lambda: ensemble.nodes[A].data.replace(b" ", b"") == b'{"version":1,"partitions":{"0":[1]}}')


async def test_a_topic_is_deleted_and_its_request_goes_last(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("a")
        await until(lambda: f"{A}/partitions/0/state" in ensemble.nodes)
        ensemble.put("/admin/delete_topics/a", b"")
        ensemble.put("/admin/delete_topics/unknown", b"")
        await until(lambda: not ensemble.below("/admin/delete_topics"))
        assert A not in ensemble.nodes
        assert broker.server.broker.image.topic("a") is None


async def test_a_deletion_that_is_not_allowed_is_answered(start: Start, ensemble: Ensemble) -> None:
    async with start(delete_topic_enable="false") as broker:
        await broker.create_topic("a")
        ensemble.put("/admin/delete_topics/a", b"")
        await until(lambda: not ensemble.below("/admin/delete_topics"))
        assert broker.server.broker.image.topic("a") is not None


async def test_configs_are_set_and_taken_away(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("a", retention_ms="1000", max_message_bytes="2000")
        await until(lambda: f"{A}/partitions/0/state" in ensemble.nodes)
        image = broker.server.broker.image
        for number, change in enumerate(
            (
                {"version": 2, "entity_path": "topics/a"},
                {"version": 1, "entity_type": "topics", "entity_name": "a"},
                "a",
            )
        ):
            configs = {"retention.ms": str(5000 + number)}
            ensemble.put("/config/topics/a", {"version": 1, "config": configs})
            ensemble.put(f"/config/changes/config_change_{number:010}", change)
            await until(partial(has_configs, image, configs))


async def test_a_notification_that_was_read_changes_nothing_later(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("a")
        await until(lambda: f"{A}/partitions/0/state" in ensemble.nodes)
        ensemble.put("/config/topics/a", {"version": 1, "config": {"retention.ms": "5000"}})
        ensemble.put("/config/changes/config_change_0000000000", {"version": 2, "entity_path": "topics/a"})
        await until(lambda: ensemble.nodes["/config/topics/a"].version == 2)
    ensemble.put("/config/topics/a", {"version": 1, "config": {"retention.ms": "6000"}})
    del ensemble.nodes["/config/topics/a"]
    ensemble.put("/config/topics/a", {"version": 1, "config": {"retention.ms": "6000"}})  # newer than what was told
    async with start() as broker:
        await until(lambda: ensemble.json("/config/topics/a")["config"] == {"retention.ms": "5000"})
        assert broker.server.broker.image.topic_configs("a") == {"retention.ms": "5000"}


async def test_configs_that_the_controller_refuses_are_taken_back(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("a")
        await until(lambda: f"{A}/partitions/0/state" in ensemble.nodes)
        ensemble.put("/config/topics/a", {"version": 1, "config": {"retention.ms": "soon"}})
        ensemble.put("/config/changes/config_change_0000000000", {"version": 2, "entity_path": "topics/a"})
        await until(lambda: ensemble.json("/config/topics/a")["config"] == {})
        assert broker.server.broker.image.topic_configs("a") == {}


async def test_bad_notifications_are_removed_and_old_ones_too(start: Start, ensemble: Ensemble) -> None:
    for number, wrong in enumerate((b"", b"7", {"version": 1}, {"version": 2, "entity_path": "topics/../x"})):
        ensemble.put(f"/config/changes/config_change_{number:010}", wrong)
    ensemble.put("/config/changes/config_change_0000000009", {"version": 2, "entity_path": "topics/unknown"})
    async with start():  # the dictionary's time is long ago
        await until(lambda: not ensemble.below("/config/changes"))


async def test_leaders_are_elected_and_the_request_goes(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("a")
        for value in ({"partitions": [{"topic": "a", "partition": 0}]}, b"nonsense", {"partitions": [7]}):
            ensemble.put("/admin/preferred_replica_election", value)
            await until(lambda: "/admin/preferred_replica_election" not in ensemble.nodes)


async def test_a_reassignment_is_answered_when_it_is_over(start: Start, ensemble: Ensemble) -> None:
    path = "/admin/reassign_partitions"
    async with start() as broker:
        await broker.create_topic("a")
        for replicas, topic in (([1], "a"), ([9], "a"), ([1], "unknown")):
            ensemble.put(path, {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": replicas}]})
            await until(lambda: path not in ensemble.nodes)
        ensemble.put(path, b"{}")
        await until(lambda: path not in ensemble.nodes)
        partition = broker.server.broker.image.partition(TopicPartition("a", 0))
        assert partition is not None
        assert partition.replicas == (1,)
