"""Tests sessions with Apache ZooKeeper that end: brokers continue to serve, register again, and leave no stale
znodes."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests.interop.brokers import Odradek
from tests.interop.zookeeper import Ensemble, ZooKeeper, expire, looked, produce, started, until, znodes

pytestmark = [pytest.mark.zookeeper, pytest.mark.odradek_only]

AWAY_S = 60
OWN, ACTIVE = "/brokers/ids/1", "/controller"


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper") / "zookeeper")
    server.start()
    yield server
    server.forget()


def owners(client: KazooClient) -> set[int]:
    """Returns the sessions that own the broker's znodes; 0 for a missing znode."""
    stats = [client.exists(path) for path in (OWN, ACTIVE)]
    return {0 if stat is None else stat.ephemeralOwner for stat in stats}


def until_registered_anew(client: KazooClient, before: int, broker: Odradek) -> None:
    until(lambda: len(now := owners(client)) == 1 and not now & {0, before}, [broker])


def registered(client: KazooClient, topic: str, broker: Odradek) -> None:
    """Waits for a topic's registration by the active broker."""
    path = f"/brokers/topics/{topic}/partitions/0/state"
    until(lambda: client.exists(path), [broker])


def test_a_session_that_expires_while_the_broker_is_stopped_comes_back(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    broker = started(tmp_path / "data", f"{zookeeper.address}/stopped")
    with znodes(broker.properties["zookeeper.connect"]) as client:
        (before,) = owners(client)
        broker.signal(signal.SIGSTOP)
        until(lambda: owners(client) == {0}, [broker])
        broker.signal(signal.SIGCONT)
        until_registered_anew(client, before, broker)
        assert int(client.get("/controller_epoch")[0]) >= 2


def test_a_session_that_is_ended_by_force_is_followed_by_another(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    broker = started(tmp_path / "data", f"{zookeeper.address}/forced")
    with znodes(broker.properties["zookeeper.connect"]) as client:
        for number in range(3):
            (before,) = owners(client)
            expire(zookeeper.address, before)
            produce(broker, f"topic-{number}", range(10))
            until_registered_anew(client, before, broker)
            registered(client, f"topic-{number}", broker)
        assert int(client.get("/controller_epoch")[0]) >= 4
    assert broker.stop() == 0


def test_a_broker_that_was_killed_waits_for_its_last_session(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    broker = started(tmp_path / "data", f"{zookeeper.address}/killed")
    with znodes(broker.properties["zookeeper.connect"]) as client:
        (before,) = owners(client)
        broker.kill9()
        broker.start()
        until_registered_anew(client, before, broker)
        other = Odradek(tmp_path / "other", broker.properties)
        with pytest.raises(AssertionError, match="belongs to another broker"):
            other.start()
    assert broker.stop() == 0


def until_shown(broker: Odradek, topic: str) -> None:
    """Waits until a broker whose ensemble was away has published a topic, and owns both of its znodes in one
    session."""

    def is_shown(client: KazooClient) -> bool:
        now = owners(client)
        return len(now) == 1 and 0 not in now and bool(client.exists(f"/brokers/topics/{topic}/partitions/0/state"))

    until(lambda: looked(broker.properties["zookeeper.connect"], is_shown), [broker])


def test_clients_are_served_while_the_ensemble_has_no_leader_or_is_gone_for_a_minute(tmp_path: Path) -> None:
    ensemble = Ensemble(tmp_path / "ensemble")
    ensemble.start()
    broker = started(tmp_path / "data", f"{ensemble.address}/deep/path/kafka", num__partitions="1")
    produce(broker, "before", range(10))
    until_shown(broker, "before")

    leader = ensemble.leader()
    leader.kill9()
    produce(broker, "without-its-leader", range(10))
    until_shown(broker, "without-its-leader")
    leader.start()

    ensemble.kill()
    gone = time.monotonic()
    while time.monotonic() < gone + AWAY_S:
        produce(broker, "meanwhile", range(10))
        time.sleep(0.2)  # clients come and go for a minute
    ensemble.start()
    until_shown(broker, "meanwhile")
    assert looked(broker.properties["zookeeper.connect"], lambda client: client.get_children("/brokers/ids")) == ["1"]
    assert broker.stop() == 0
    assert looked(broker.properties["zookeeper.connect"], owners) == {0}

    broker.start()
    ensemble.kill()
    assert broker.stop() == 0, "it waits for an ensemble that is gone"
