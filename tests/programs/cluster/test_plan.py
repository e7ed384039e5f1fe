"""Tests the plan of a cluster's nodes on one machine."""

from __future__ import annotations

import pytest

from programs.cluster.plan import (
    METRICS,
    FirstAddress,
    Shape,
    as_properties,
    check_assignments,
    first_metrics,
    internal_topics,
    nodes,
    own_metrics,
    parse_address,
)
from protocol.config import ConfigError
from protocol.properties import read_properties

SHAPE = Shape("the-cluster", (19_000,), (9092, 9093))


def test_each_node_has_a_name_a_folder_and_a_port_of_its_own() -> None:
    controller, first, second = nodes("/data", "10.0.0.1", SHAPE)
    assert [plan.name for plan in (controller, first, second)] == ["controller", "broker-1", "broker-2"]
    assert controller.settings["process.roles"] == "controller"
    assert controller.settings["listeners"] == "CONTROLLER://127.0.0.1:19000"
    assert [plan.settings["node.id"] for plan in (controller, first, second)] == ["0", "1", "2"]
    assert [plan.settings["listeners"] for plan in (first, second)] == [
        "PLAINTEXT://10.0.0.1:9092", "PLAINTEXT://10.0.0.1:9093",
    ]  # fmt: skip
    assert (second.directory, second.file) == ("/data/broker-2", "/data/broker-2.properties")
    assert second.settings["controller.quorum.bootstrap.servers"] == "127.0.0.1:19000"


def test_further_controllers_have_ids_that_no_broker_has() -> None:
    plans = nodes("/data", "10.0.0.1", SHAPE._replace(controller_ports=(19_000, 19_001, 19_002)))
    controllers = [plan for plan in plans if plan.is_controller]
    assert [plan.name for plan in controllers] == ["controller", "controller-2", "controller-3"]
    assert [plan.settings["node.id"] for plan in controllers] == ["0", "101", "102"]
    servers = {plan.settings["controller.quorum.bootstrap.servers"] for plan in plans}
    assert servers == {"127.0.0.1:19000,127.0.0.1:19001,127.0.0.1:19002"}


@pytest.mark.parametrize(("brokers", "factor", "min_isr"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (7, "3", "2")])
def test_internal_topics_are_on_three_brokers_where_there_are_as_many(brokers: int, factor: str, min_isr: str) -> None:
    assert internal_topics(brokers) == {
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "share.coordinator.state.topic.replication.factor": factor,
        "transaction.state.log.min.isr": min_isr,
        "share.coordinator.state.topic.min.isr": min_isr,
    }


def test_an_address_is_that_of_the_first_broker() -> None:
    assert parse_address("127.0.0.1:9092") == FirstAddress("127.0.0.1", 9092)
    assert parse_address("[::1]:0") == FirstAddress("[::1]", 0)


@pytest.mark.parametrize("text", ["9092", "host", "host:", "host:x", "host:65536", "PLAINTEXT://host:9092", "host:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not HOST:PORT"):
        parse_address(text)


@pytest.mark.parametrize("name", ["node.id", "listeners", "log.dirs", "controller.quorum.voters"])
def test_an_option_that_every_node_has_for_itself_cannot_be_set_for_all(name: str) -> None:
    with pytest.raises(ConfigError, match=f"--set {name}: each node has its own"):
        check_assignments(["num.partitions", name])


def test_a_file_of_options_reads_back_whatever_the_folder_is_called() -> None:
    settings = {"log.dirs": "/data with = and \\ and ä", "node.id": "1"}
    assert {one.name: one.value for one in read_properties(as_properties(settings))} == settings


def test_each_node_tells_of_itself_at_a_port_of_its_own() -> None:
    first = first_metrics("127.0.0.1:9404", 2)
    listeners = [plan.settings[METRICS] for plan in nodes("/data", "10.0.0.1", SHAPE, first)]
    assert listeners == ["127.0.0.1:9404", "127.0.0.1:9405", "127.0.0.1:9406"]
    assert own_metrics(first_metrics("[::1]:0", 2), 2) == {METRICS: "[::1]:0"}, "any free ones"
    assert first_metrics(None, 2) is None
    assert all(METRICS not in plan.settings for plan in nodes("/data", "10.0.0.1", SHAPE))


@pytest.mark.parametrize(("text", "problem"), [
    ("127.0.0.1:65534", "2 brokers need as many ports after it"),
    ("127.0.0.1", "is not host:port"),
])  # fmt: skip
def test_metrics_need_a_port_for_each_node(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        first_metrics(text, 2)
