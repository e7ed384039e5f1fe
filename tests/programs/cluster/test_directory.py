"""Tests the directory of a cluster: it is created once, recognised afterwards, and rejected if it belongs to another
cluster."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from programs.cluster.directory import (
    ClusterState,
    WrongShape,
    check_brokers,
    check_controllers,
    free_ports,
    plan_shape,
    read_state,
    write_state,
)
from programs.cluster.plan import FirstAddress, Shape
from protocol.config import ConfigError
from storage.disk import OsDisk

SHAPE = Shape("the-cluster", (19_000,), (9092, 9093))
FREE = FirstAddress("127.0.0.1", 0)
IDS = ("JEXY6aqzQY-32P5TStzaFg",)
THREE = Shape(
    "the-cluster",
    (19_000, 19_001, 19_002),
    (9092,),
    ("JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A", "07R5amHmR32VDA6jHkGbTA"),
)


def test_an_empty_directory_has_no_cluster_yet(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    assert read_state(OsDisk(), str(tmp_path)) is None


@pytest.mark.parametrize("is_formatted", [False, True])
def test_what_was_written_is_read(tmp_path: Path, is_formatted: bool) -> None:
    (tmp_path / "controller").mkdir()
    (tmp_path / "controller/meta.properties").touch()
    write_state(OsDisk(), str(tmp_path), ClusterState(SHAPE, is_formatted))
    assert read_state(OsDisk(), str(tmp_path)) == ClusterState(SHAPE, is_formatted)


def test_a_start_that_was_cut_short_goes_on(tmp_path: Path) -> None:
    write_state(OsDisk(), str(tmp_path), ClusterState(SHAPE, False))
    assert read_state(OsDisk(), str(tmp_path)) == ClusterState(SHAPE, False)


def test_a_controller_whose_data_is_gone_is_missed(tmp_path: Path) -> None:
    write_state(OsDisk(), str(tmp_path), ClusterState(SHAPE, True))
    with pytest.raises(WrongShape, match="the controller's data is missing"):
        read_state(OsDisk(), str(tmp_path))


def test_the_state_of_an_older_release_has_one_controller(tmp_path: Path) -> None:
    text = '{"cluster.id": "the-cluster", "controller.port": 19000, "broker.ports": [9092, 9093], "formatted": false}'
    (tmp_path / "cluster.json").write_text(text)
    assert read_state(OsDisk(), str(tmp_path)) == ClusterState(SHAPE, False)


def test_three_controllers_have_ports_and_directories_of_their_own(tmp_path: Path) -> None:
    write_state(OsDisk(), str(tmp_path), ClusterState(THREE, False))
    assert read_state(OsDisk(), str(tmp_path)) == ClusterState(THREE, False)
    shape = plan_shape(None, "a", 2, FREE, THREE.directory_ids)
    assert len({*shape.controller_ports, *shape.broker_ports}) == 5
    assert shape.directory_ids == THREE.directory_ids


def test_the_number_of_controllers_stays() -> None:
    check_controllers("data", None, 3)
    check_controllers("data", THREE, 3)
    with pytest.raises(WrongShape, match="data has 3 controllers, but --controllers is 1"):
        check_controllers("data", THREE, 1)


@pytest.mark.parametrize(("name", "problem"), [
    ("meta.properties", "has the data of a single broker, not of a cluster"),
    ("holiday.jpg", "is not empty and has no cluster"),
])  # fmt: skip
def test_a_directory_of_something_else_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(WrongShape, match=problem):
        read_state(OsDisk(), str(tmp_path))


@pytest.mark.parametrize("text", [
    "", "{}", "[]", '{"cluster.id": "a", "controller.port": 0, "broker.ports": [1], "formatted": true}',
    '{"cluster.id": "a", "controller.port": 1, "broker.ports": ["2"], "formatted": true}',
    '{"cluster.id": "a", "controller.port": 1, "broker.ports": 7, "formatted": true}',
    '{"cluster.id": "a", "controller.ports": [], "broker.ports": [1], "formatted": true}',
    '{"cluster.id": "a", "controller.ports": [2], "directory.ids": ["x"], "broker.ports": [1], "formatted": true}',
    '{"cluster.id": "a", "controller.ports": [2, 3], "directory.ids": ["JEXY6aqzQY-32P5TStzaFg"], "broker.ports": [1]}',
])  # fmt: skip
def test_a_damaged_state_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(WrongShape, match=r"cluster\.json cannot be read") as raised:
        read_state(OsDisk(), str(tmp_path))
    assert "\n" not in str(raised.value)


def test_brokers_may_be_added_and_not_just_taken_away(tmp_path: Path) -> None:
    for node_id in (1, 2, 3):
        (tmp_path / f"broker-{node_id}").mkdir()
        (tmp_path / f"broker-{node_id}.properties").touch()
    check_brokers(OsDisk(), str(tmp_path), 3)
    check_brokers(OsDisk(), str(tmp_path), 4)
    with pytest.raises(WrongShape, match=r"has 3 brokers, but --brokers is 2.*kafka-reassign.*broker-3, start with.*2"):
        check_brokers(OsDisk(), str(tmp_path), 2)


def test_ports_are_consecutive_or_free_ones() -> None:
    assert plan_shape(None, "a", 3, FirstAddress("h", 9092), IDS).broker_ports == (9092, 9093, 9094)
    shape = plan_shape(None, "a", 3, FREE, IDS)
    assert len({*shape.controller_ports, *shape.broker_ports}) == 4


def test_ports_that_were_free_last_over_restarts() -> None:
    assert plan_shape(SHAPE, "the-cluster", 2, FREE, IDS) == SHAPE
    more = plan_shape(SHAPE, "the-cluster", 3, FREE, IDS)
    assert more.broker_ports[:2] == SHAPE.broker_ports
    assert len({*more.controller_ports, *more.broker_ports}) == 4


def test_other_ports_may_be_given_later_but_not_the_controllers() -> None:
    moved = plan_shape(SHAPE, "the-cluster", 2, FirstAddress("h", 9192), IDS)
    assert moved == SHAPE._replace(broker_ports=(9192, 9193))
    with pytest.raises(ConfigError, match="the controller has port 19000"):
        plan_shape(SHAPE, "the-cluster", 2, FirstAddress("h", 18_999), IDS)
    with pytest.raises(ConfigError, match="2 brokers need ports up to 65535 and more"):
        plan_shape(None, "a", 2, FirstAddress("h", 65_535), IDS)


def test_free_ports_are_free_and_different() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", port))
