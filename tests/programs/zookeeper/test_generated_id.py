"""Tests a broker without an id: ZooKeeper generates the id, and the broker's directories keep it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from broker.config import BrokerConfig
from cli.main import main
from programs.zookeeper import client
from programs.zookeeper.generated_id import with_broker_id
from protocol.config import ConfigError
from storage.disk import OsDisk
from tests.programs.zookeeper.ensemble import Ensemble, MemoryClient

ENABLED = {"zookeeper.connect": "memory", "broker.id.generation.enable": "true"}
CLUSTER = "b2RyYWRlay1pbnRlcm9wLg"


@pytest.fixture(autouse=True)
def _a_dictionary(monkeypatch: pytest.MonkeyPatch, ensemble: Ensemble) -> None:
    sessions = itertools.count(1)
    monkeypatch.setattr(
        client, "ZookeeperClient", lambda settings, on_event: MemoryClient(ensemble, next(sessions), on_event)
    )


def numbered(folder: Path, **options: str) -> BrokerConfig:
    texts = {**ENABLED, "log.dirs": str(folder), **{name.replace("_", "."): text for name, text in options.items()}}
    return with_broker_id(BrokerConfig.parse(texts), OsDisk())


def formatted(folder: Path, *settings: str) -> int:
    """Returns the exit code of `odradek format`, for a broker whose controllers are other processes."""
    own = ("process.roles=broker", "controller.quorum.bootstrap.servers=127.0.0.1:9093", f"log.dirs={folder}")
    texts = (*own, *(f"{name}={text}" for name, text in ENABLED.items()), *settings)
    return main(["format", "-t", CLUSTER, *(word for text in texts for word in ("--set", text))])


def test_brokers_are_numbered_beyond_the_reserved_ids(tmp_path: Path, ensemble: Ensemble) -> None:
    assert [numbered(tmp_path / name).node_id for name in "abc"] == [1001, 1002, 1003]
    assert numbered(tmp_path / "d", reserved_broker_max_id="5", broker_id="-1").node_id == 9
    assert ensemble.nodes["/brokers/seqid"].data == b""


def test_the_directories_keep_the_number(
    tmp_path: Path, ensemble: Ensemble, capsys: pytest.CaptureFixture[str]
) -> None:
    assert formatted(tmp_path / "a") == 0
    assert numbered(tmp_path / "a").node_id == 1001
    assert formatted(tmp_path / "b") == 0
    assert numbered(tmp_path / "b", broker_id="-1").node_id == 1002
    assert ensemble.nodes["/brokers/seqid"].version == 2
    capsys.readouterr()
    settings = [f"{name}={text}" for name, text in ENABLED.items()]
    words = [word for text in (*settings, f"log.dirs={tmp_path / 'b'}") for word in ("--set", text)]
    assert main(["info", *words]) == 0
    assert "node.id=1002" in capsys.readouterr().out


def test_info_draws_no_number(tmp_path: Path, ensemble: Ensemble) -> None:
    settings = [f"{name}={text}" for name, text in (*ENABLED.items(), ("log.dirs", str(tmp_path / "new")))]
    assert main(["info", *(word for text in settings for word in ("--set", text))]) == 1
    assert "/brokers/seqid" not in ensemble.nodes


def test_a_configured_id_counts_and_is_a_reserved_one(tmp_path: Path, ensemble: Ensemble) -> None:
    assert numbered(tmp_path, node_id="7").node_id == 7
    assert numbered(tmp_path, broker_id="1000").node_id == 1000
    with pytest.raises(ConfigError, match=r"node.id 1001: must not be greater than reserved.broker.max.id 1000"):
        numbered(tmp_path, broker_id="1001")
    assert "/brokers/seqid" not in ensemble.nodes


def test_a_controller_and_a_broker_without_zookeeper_are_not_numbered() -> None:
    assert not BrokerConfig.parse({"broker.id.generation.enable": "true"}).generates_id
    assert not BrokerConfig.parse({"zookeeper.connect": "memory"}).generates_id
    with pytest.raises(ConfigError, match=r"broker.id -1: only ZooKeeper can generate an id"):
        BrokerConfig.parse({"broker.id.generation.enable": "true", "broker.id": "-1"})
    with pytest.raises(ConfigError, match=r"node.id"):
        BrokerConfig.parse({"zookeeper.connect": "memory", "broker.id": "-1"})
