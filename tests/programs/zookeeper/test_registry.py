"""Tests that the active broker keeps the znodes of brokers and topics equal to the image."""

from __future__ import annotations

import asyncio

import pytest

from programs.zookeeper.facade import FollowedControllers
from protocol.errors import KafkaError
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from tests.programs.zookeeper.conftest import Start, quiet, session_of
from tests.programs.zookeeper.ensemble import Ensemble
from tests.waiting import until


async def test_a_broker_registers_with_what_the_oldest_clients_read(start: Start, ensemble: Ensemble) -> None:
    async with start(advertised_listeners="PLAINTEXT://one.example:9092") as broker:
        value = ensemble.json("/brokers/ids/1")
        assert int(value.pop("timestamp")) > 0
        assert value == {
            "version": 2,
            "host": "one.example",
            "port": 9092,
            "jmx_port": -1,
            "endpoints": ["PLAINTEXT://one.example:9092"],
        }
        assert ensemble.nodes["/brokers/ids/1"].owner == session_of(broker).client.session_id
    assert "/brokers/ids/1" not in ensemble.nodes
    assert "/controller" not in ensemble.nodes


async def test_a_broker_registers_in_newer_versions_by_option(start: Start, ensemble: Ensemble) -> None:
    async with start(
        odradek_zookeeper_broker_version="5", broker_rack="r1", advertised_listeners="PLAINTEXT://one.example:9092"
    ):
        value = ensemble.json("/brokers/ids/1")
        assert value["rack"] == "r1"
        assert value["listener_security_protocol_map"] == {"PLAINTEXT": "PLAINTEXT"}
        assert value["features"] == {}


async def test_the_first_broker_names_the_cluster(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        cluster_id = broker.server.broker.image.cluster_id
        assert ensemble.json("/cluster/id") == {"version": "1", "id": cluster_id}
        assert ensemble.nodes["/controller_epoch"].data == b"1"
        assert ensemble.json("/controller")["brokerid"] == 1
    async with start():
        assert ensemble.nodes["/controller_epoch"].data == b"2"


async def test_a_new_cluster_has_the_id_that_is_there(start: Start, ensemble: Ensemble) -> None:
    ensemble.put("/cluster/id", {"version": "1", "id": "Zq9OWZKhTm6bPWbzWJTQnA"})
    async with start() as broker:
        assert broker.server.broker.image.cluster_id == "Zq9OWZKhTm6bPWbzWJTQnA"


async def test_the_ensemble_of_another_cluster_is_refused(start: Start, ensemble: Ensemble) -> None:
    async with start():
        pass
    ensemble.put("/cluster/id", {"version": "1", "id": "Zq9OWZKhTm6bPWbzWJTQnA"})
    with pytest.raises(Exception, match="Zq9OWZKhTm6bPWbzWJTQnA"):
        async with start():
            pass


async def test_topics_of_a_cluster_without_an_id_are_not_removed(start: Start, ensemble: Ensemble) -> None:
    ensemble.put("/brokers/topics/theirs/partitions/0/state", {})
    with pytest.raises(KafkaError, match=r"a cluster without an id has topics there, theirs; choose another path"):
        async with start():
            pass
    assert "/brokers/topics/theirs" in ensemble.nodes


async def test_an_id_in_use_is_refused(start: Start, ensemble: Ensemble) -> None:
    ensemble.put("/brokers/ids/1", {"version": 2, "endpoints": ["PLAINTEXT://other:9092"]})
    with pytest.raises(KafkaError, match=r"/brokers/ids/1 belongs to another broker.*change this broker.s node.id"):
        async with start():
            pass


async def test_a_stale_znode_of_its_own_is_waited_out(start: Start, ensemble: Ensemble) -> None:
    own = {"version": 2, "endpoints": ["PLAINTEXT://one.example:9092"]}
    ensemble.put("/brokers/ids/1", own)
    ensemble.put("/controller", {})
    async with start(advertised_listeners="PLAINTEXT://one.example:9092") as broker:
        await quiet()
        assert ensemble.json("/brokers/ids/1") == own
        del ensemble.nodes["/brokers/ids/1"], ensemble.nodes["/controller"]
        session_of(broker).client._tell(None)
        await until(lambda: "/controller" in ensemble.nodes and "timestamp" in ensemble.json("/brokers/ids/1"))


async def test_topics_come_and_go_with_the_image(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("t", partitions=2, retention_ms="60000")
        await until(lambda: "/brokers/topics/t/partitions/1/state" in ensemble.nodes)
        assert ensemble.json("/brokers/topics/t") == {"version": 1, "partitions": {"0": [1], "1": [1]}}
        assert ensemble.json("/config/topics/t") == {"version": 1, "config": {"retention.ms": "60000"}}
        assert ensemble.json("/brokers/topics/t/partitions/1/state") == {
            "controller_epoch": 1,
            "leader": 1,
            "version": 1,
            "leader_epoch": 0,
            "isr": [1],
        }
        request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
        await broker.server.broker.controller.submit(request, DeleteTopicsResponse)
        await until(lambda: "/config/topics/t" not in ensemble.nodes)
        assert not [path for path in ensemble.nodes if "/t" in path.replace("/topics", "")]


async def test_what_changed_while_nobody_was_active_is_repaired(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("t")
        await until(lambda: "/brokers/topics/t/partitions/0/state" in ensemble.nodes)
    ensemble.put("/brokers/topics/gone/partitions/0/state", {"leader": 1})
    ensemble.put("/brokers/topics/gone/partitions/0/left", b"by somebody")
    ensemble.put("/brokers/topics/t/partitions/0/state", b"nonsense")
    ensemble.put("/config/topics/t", {"version": 1, "config": {"retention.ms": "1"}})
    async with start():
        await until(lambda: "/brokers/topics/gone" not in ensemble.nodes)
        assert ensemble.json("/brokers/topics/t/partitions/0/state")["leader"] == 1
        assert ensemble.json("/config/topics/t")["config"] == {}


async def test_a_session_that_expired_is_followed_by_another(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("t")
        await until(lambda: "/brokers/topics/t/partitions/0/state" in ensemble.nodes)
        session_of(broker).client.renew()
        await until(lambda: ensemble.nodes["/controller_epoch"].data == b"2")
        await until(lambda: "/brokers/ids/1" in ensemble.nodes)
        await broker.create_topic("u")
        await until(lambda: "/brokers/topics/u/partitions/0/state" in ensemble.nodes)
        assert ensemble.json("/brokers/topics/u/partitions/0/state")["controller_epoch"] == 2


async def test_the_broker_serves_while_zookeeper_is_gone(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        client = session_of(broker).client
        client.is_down = True
        client._tell(None)
        await broker.create_topic("t")
        await quiet()
        assert "/brokers/topics/t" not in ensemble.nodes
        client.is_down = False
        client._tell(None)
        await until(lambda: "/brokers/topics/t/partitions/0/state" in ensemble.nodes)


async def test_a_deposed_broker_writes_nothing(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await quiet()
        ensemble.watches.clear()  # and it has not heard of it yet
        del ensemble.nodes["/controller"]
        ensemble.put("/controller", {"brokerid": 2})
        ensemble.put("/controller_epoch", b"7")
        await broker.create_topic("t")
        await asyncio.sleep(0.3)
        assert "/brokers/topics/t" not in ensemble.nodes
        assert ensemble.json("/controller") == {"brokerid": 2}


async def test_a_broker_whose_controllers_do_not_answer_is_not_the_active_one(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        side = broker.server._zookeeper
        assert side is not None
        facade, answers = side._facade, True
        assert facade is not None
        facade._controllers = FollowedControllers(lambda: answers, lambda: facade._elected_ms + 1)
        answers = False
        facade._due.set()
        await until(lambda: "/controller" not in ensemble.nodes)
        await broker.create_topic("t")
        await quiet()
        assert "/brokers/topics/t" not in ensemble.nodes
        assert "/brokers/ids/1" in ensemble.nodes
        answers = True
        facade._due.set()
        await until(lambda: "/brokers/topics/t/partitions/0/state" in ensemble.nodes)
        assert ensemble.nodes["/controller_epoch"].data == b"2"
