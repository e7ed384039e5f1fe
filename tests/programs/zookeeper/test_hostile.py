"""Tests znodes with invalid content: everything else continues."""

from __future__ import annotations

import json

import pytest

from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.configs.resource import ConfigResource, ResourceType
from programs.zookeeper import znodes
from programs.zookeeper.znodes import BadZnode
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.broker.inprocess import InProcess
from tests.programs.zookeeper.conftest import Start, quiet, session_of
from tests.programs.zookeeper.ensemble import Ensemble
from tests.waiting import until

A = "/brokers/topics/a"
SOMEBODY = 77
HALF_A_CHARACTER = b'"\\ud800"'
OWN = ConfigResource(ResourceType.BROKER, "1")
PASSWORD = "listener.name.plaintext.ssl.keystore.password"


async def goes_on(broker: InProcess, ensemble: Ensemble) -> None:
    """Checks that the registry is still updated: a new topic gets its znodes."""
    await broker.create_topic("next")
    await until(lambda: "/brokers/topics/next/partitions/0/state" in ensemble.nodes)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"nul",
        b"7",
        b"[" * 100_000,
        b"1" * 5_000,
        b'{"partitions": {}}',
        b'{"partitions": {"0": [-1]}}',
        b'{"partitions": {"-1": [1]}}',
        b'{"partitions": {"0": [4294967296]}}',
        b'{"partitions": {"0": ' + b"[" * 300 + b"]" * 300 + b"}}",
        b'{"partitions": {"0": [1], "x": ' + HALF_A_CHARACTER + b"}}",
        b'{"partitions": {"0": [1, 1]}}',
        b'{"partitions": {"' + b"9" * 5_000 + b'": [1]}}',
    ],
)
async def test_a_topic_of_nonsense_is_removed(start: Start, ensemble: Ensemble, data: bytes) -> None:
    async with start() as broker:
        ensemble.put(A, data)
        await until(lambda: A not in ensemble.nodes)
        await goes_on(broker, ensemble)
        assert broker.server.broker.image.topic("a") is None


@pytest.mark.parametrize(
    "value", [HALF_A_CHARACTER, b'"' + b"v" * 40_000 + b'"', b"7", b"[]"], ids=["half", "long", "number", "list"]
)
async def test_configs_of_nonsense_are_refused(start: Start, ensemble: Ensemble, value: bytes) -> None:
    async with start() as broker:
        await broker.create_topic("a")
        await until(lambda: f"{A}/partitions/0/state" in ensemble.nodes)
        ensemble.put("/config/topics/a", b'{"version":1,"config":{"retention.ms":' + value + b"}}")
        ensemble.put("/config/changes/config_change_0000000000", {"version": 2, "entity_path": "topics/a"})
        await until(lambda: not ensemble.below("/config/changes"))
        await goes_on(broker, ensemble)
        assert broker.server.broker.image.topic_configs("a") == {}


@pytest.mark.parametrize(
    "topic", [HALF_A_CHARACTER, b'"' + b"t" * 40_000 + b'"', b"{}"], ids=["half", "long", "object"]
)
async def test_requests_of_nonsense_are_removed(start: Start, ensemble: Ensemble, topic: bytes) -> None:
    async with start() as broker:
        paths = ("/admin/preferred_replica_election", "/admin/reassign_partitions")
        for path in paths:
            ensemble.put(path, b'{"partitions":[{"topic":' + topic + b',"partition":0,"replicas":[1]}]}')
        await until(lambda: not ensemble.nodes.keys() & set(paths))
        await goes_on(broker, ensemble)


async def test_what_is_put_below_a_topic_goes_with_what_it_is_below(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("a")
        await until(lambda: f"{A}/partitions/0/state" in ensemble.nodes)
        ensemble.put(f"{A}/partitions/{'9' * 5_000}/state", b"")
        ensemble.put(f"{A}/partitions/foo/deep/down", b"")
        ensemble.put(A, ensemble.nodes[A].data)
        await until(lambda: ensemble.below(f"{A}/partitions") == ["0"])
        await goes_on(broker, ensemble)


async def test_a_topic_of_somebodys_session_becomes_one_that_stays(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await goes_on(broker, ensemble)
        ensemble.put(A, {"version": 1, "partitions": {"0": [1]}}, owner=SOMEBODY)
        await until(lambda: f"{A}/partitions/0/state" in ensemble.nodes)
        ensemble.expire(SOMEBODY)
        assert ensemble.json(A)["partitions"] == {"0": [1]}
        assert broker.server.broker.image.topic("a") is not None


async def test_what_may_not_be_read_keeps_nobody_from_reading_the_rest(start: Start, ensemble: Ensemble) -> None:
    secret = (
        "/brokers/topics/a",
        "/config/topics/b",
        "/admin/reassign_partitions",
        "/admin/preferred_replica_election",
    )
    for path in (*secret, "/brokers/topics/b", "/config/changes/config_change_0000000000"):
        ensemble.put(path, {"version": 1, "partitions": {"0": [1]}})
    ensemble.unreadable = {*secret, "/config/changes/config_change_0000000000"}
    async with start() as broker:
        await goes_on(broker, ensemble)
        await until(lambda: not ensemble.below("/config/changes") and not ensemble.nodes.keys() & set(secret[2:]))
        ensemble.unreadable = set()
        ensemble.put("/admin/preferred_replica_election", {"partitions": [{"topic": "next", "partition": 0}]})
        await until(lambda: "/admin/preferred_replica_election" not in ensemble.nodes)  # it is still watched
        assert broker.server.broker.image.topic("a") is None
        assert A in ensemble.nodes


async def test_what_may_not_be_changed_keeps_nobody_from_changing_the_rest(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("a")
        await until(lambda: f"{A}/partitions/0/state" in ensemble.nodes)
        ensemble.unwritable = {f"{A}/partitions/0/state", "/brokers/topics/tools/partitions", "/config/topics/refused"}
        ensemble.put(f"{A}/partitions/0/state", b"by somebody")
        ensemble.put("/brokers/topics/tools", {"version": 1, "partitions": {"0": [1]}})
        ensemble.put("/config/topics/refused", b"nonsense")
        ensemble.put("/brokers/topics/refused", b"nonsense")
        session_of(broker).client._tell(None)  # and all of it is compared
        await goes_on(broker, ensemble)
        ensemble.unwritable = set()
        session_of(broker).client._tell(None)
        await until(lambda: ensemble.nodes[f"{A}/partitions/0/state"].data != b"by somebody")
        await until(lambda: "/brokers/topics/tools/partitions/0/state" in ensemble.nodes)


def test_a_brokers_znode_of_nonsense_is_another_brokers() -> None:
    endpoints = [Endpoint("PLAINTEXT", "one.example", 9092, 0)]
    for data in (b'{"host": [], "port": {}}', b'{"endpoints": 7}', b'{"host": "one.example"}', b"[]", b"{}"):
        assert not znodes.is_at(data, endpoints)
    assert znodes.is_at(b'{"host": "one.example", "port": 9092}', endpoints)


def test_a_notification_names_something_short() -> None:
    for path in ("topics/" + "t" * 40_000, "topics/\ud800", "topics/", "/a", "topics/a/b"):
        with pytest.raises(BadZnode):
            znodes.entity_of(json.dumps({"version": 2, "entity_path": path}).encode())


@pytest.mark.parametrize("data", [b"", b"nonsense", b"-5", b"9" * 5_000, b"4294967296", b"2147483647", b"\xff"])
async def test_an_epoch_that_is_none_begins_anew(start: Start, ensemble: Ensemble, data: bytes) -> None:
    ensemble.put("/controller_epoch", data)
    async with start() as broker:
        await goes_on(broker, ensemble)
        assert ensemble.nodes["/controller_epoch"].data == b"1"


async def test_a_path_that_is_wiped_is_made_again(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await broker.create_topic("a")
        await until(lambda: f"{A}/partitions/0/state" in ensemble.nodes)
        for path in sorted(ensemble.nodes, key=len, reverse=True):
            if path != "/":
                ensemble.remove(path)
        await until(lambda: f"{A}/partitions/0/state" in ensemble.nodes)
        assert ensemble.json("/cluster/id")["id"] == broker.server.broker.image.cluster_id
        assert ensemble.nodes["/brokers/ids/1"].owner == session_of(broker).client.session_id


async def test_an_ensemble_that_is_another_clusters_by_now_is_left_alone(start: Start, ensemble: Ensemble) -> None:
    async with start() as broker:
        await quiet()
        ensemble.put("/cluster/id", {"version": "1", "id": "Zq9OWZKhTm6bPWbzWJTQnA"})
        ensemble.put("/brokers/topics/theirs/partitions/0/state", {})
        session_of(broker).client.renew()
        await broker.create_topic("a")
        await quiet()
        assert not ensemble.below("/brokers/ids")
        assert ensemble.below("/brokers/topics") == ["theirs"]


async def alter(broker: InProcess, **configs: str) -> None:
    """Sets configs of the broker by IncrementalAlterConfigs."""
    altered = [
        AlterableConfig(name=name.replace("_", "."), config_operation=0, value=configs[name]) for name in configs
    ]
    resource = AlterConfigsResource(resource_type=ResourceType.BROKER, resource_name="1", configs=altered)
    response = await broker.server.broker.controller.submit(
        IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), IncrementalAlterConfigsResponse
    )
    assert [one.error_code for one in response.responses] == [0]


async def test_a_tool_that_sets_a_throttle_takes_no_other_config_away(start: Start, ensemble: Ensemble) -> None:
    path = "/config/brokers/1"
    async with start() as broker:
        image = broker.server.broker.image
        await alter(broker, log_cleaner_threads="2", listener_name_plaintext_ssl_keystore_password="secret")
        await until(lambda: path in ensemble.nodes)
        assert ensemble.json(path) == {"version": 1, "config": {"log.cleaner.threads": "2"}}
        tools = {"log.cleaner.threads": "2", "leader.replication.throttled.rate": "1000", PASSWORD: "theirs"}
        ensemble.put(path, {"version": 1, "config": tools})
        ensemble.put("/config/changes/config_change_0000000000", {"version": 2, "entity_path": "brokers/1"})
        await until(lambda: image.configs(OWN).get("leader.replication.throttled.rate") == "1000")
        await until(lambda: PASSWORD not in ensemble.json(path)["config"])
        assert image.configs(OWN)[PASSWORD] == "secret"
        ensemble.put(path, {"version": 1, "config": {}})
        ensemble.put("/config/changes/config_change_0000000001", {"version": 2, "entity_path": "brokers/1"})
        await until(lambda: image.configs(OWN) == {PASSWORD: "secret"})
        assert b"secret" not in b"".join(node.data for node in ensemble.nodes.values())
