"""Tests that each shipped alert fires because of its fault: a real Prometheus evaluates it.

The rules are the shipped ones, with seconds in place of minutes.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from tests.interop.brokers import Odradek
from tests.interop.local import SOON_S
from tests.interop.own_quorum import OdradekNode, OwnQuorum
from tests.interop.processes import free_port, run
from tests.interop.prometheus import MONITORING, Prometheus, Target
from tests.interop.watched import LAGS, PARTITIONS, Load, WatchedCluster, fall_behind

pytestmark = [pytest.mark.metrics, pytest.mark.odradek_only]

QUICK = {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "500", "replica.lag.time.max.ms": "2000"}
VOLUME_BYTES = 64 << 20
HELD_UP_S = 0.4
CALM_WITHIN_S = 240
"""Time until the alerts are silent: a broker reports the last minute, and Prometheus evaluates the seconds after it."""
ALERT = re.compile(r"^ +- alert: (\w+)$", re.MULTILINE)
NAME = re.compile(r'"(\w+)"')


def shipped() -> str:
    return (MONITORING / "alerts.yaml").read_text(encoding="utf-8")


def quick(rules: str) -> str:
    """Returns rules with seconds in place of minutes."""
    return re.sub(r"(?<=for: )(\d+)m\b", r"\1s", re.sub(r"\[(\d+)m\]", r"[\1s]", rules))


def fires(prometheus: Prometheus, *names: str) -> None:
    prometheus.wait_for(lambda: set(names) <= prometheus.firing(), f"{names} do not fire")


@contextmanager
def silent_before_and_after(prometheus: Prometheus) -> Iterator[Prometheus]:
    """Checks that no alert fires before the fault, nor after its end."""
    prometheus.scraped(3)
    prometheus.wait_for(lambda: not prometheus.firing(), "nothing is wrong yet, and alerts fire", CALM_WITHIN_S)
    yield prometheus
    prometheus.wait_for(lambda: not prometheus.firing(), "all is well, and alerts fire", CALM_WITHIN_S)


def shows(prometheus: Prometheus, *names: str) -> None:
    """Checks that the alerts fire because of their fault."""
    fires(prometheus, *names)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedCluster]:
    cluster = WatchedCluster(tmp_path_factory.mktemp("alerts") / "cluster", QUICK)
    cluster.start()
    yield cluster
    for pid in cluster.pids().values():
        wake(pid)
    assert cluster.stop() == 0
    cluster.forget()


@pytest.fixture(scope="module")
def of_cluster(cluster: WatchedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    prometheus = Prometheus(tmp_path_factory.mktemp("of-cluster"), cluster.targets, quick(shipped()))
    prometheus.start()
    yield prometheus
    prometheus.stop()
    prometheus.forget()


@pytest.fixture
def watched(of_cluster: Prometheus) -> Iterator[Prometheus]:
    with silent_before_and_after(of_cluster):
        yield of_cluster


def freeze(*pids: int) -> None:
    """Stops processes, as in a machine that hangs."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


def wake(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def frozen(cluster: WatchedCluster, *names: str) -> list[int]:
    pids = [cluster.pids()[name] for name in names]
    freeze(*pids)
    return pids


def test_brokers_that_hang_leave_partitions_with_too_few_replicas(cluster: WatchedCluster, watched: Prometheus) -> None:
    cluster.create("three", [[1, 2, 3], [1, 2, 3], [1, 2, 3]], min_insync_replicas="2")
    cluster.create("one", [[3], [3], [3]])
    third = frozen(cluster, "broker-3")
    shows(watched, "BrokerUnreachable", "UnderReplicatedPartitions", "OfflinePartitions")
    assert "UnderMinIsrPartitions" not in watched.firing()
    second = frozen(cluster, "broker-2")
    load = Load(cluster.bootstrap, ["three"], reads=False)
    load.start()
    shows(watched, "UnderMinIsrPartitions", "AppendsFail")
    load.stop()
    wake(*second, *third)


def test_a_leader_that_was_not_in_sync_is_told(cluster: WatchedCluster, watched: Prometheus) -> None:
    cluster.create("two", [[2, 3]], min_insync_replicas="1", unclean_leader_election_enable="true")
    third = frozen(cluster, "broker-3")
    fires(watched, "UnderReplicatedPartitions")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    producer.produce("two", b"on the second alone")
    assert producer.flush(SOON_S) == 0
    second = frozen(cluster, "broker-2")
    fires(watched, "OfflinePartitions")
    assert "UncleanLeaderElection" not in watched.firing()
    wake(*third)
    shows(watched, "UncleanLeaderElection")
    wake(*second)


def test_brokers_without_a_controller_follow_old_metadata(cluster: WatchedCluster, watched: Prometheus) -> None:
    controller = frozen(cluster, "controller")
    shows(watched, "NoActiveController", "MetadataIsOld")
    wake(*controller)


def test_a_controller_that_is_elected_again_and_again(cluster: WatchedCluster, watched: Prometheus) -> None:
    def elected_after(epoch: float) -> bool:
        """True if all brokers have been seen in a later epoch."""
        return watched.query("min(kafka_server_raftmetrics_current_epoch)")[0].value > epoch

    for _ in range(4):
        epoch = watched.query("max(kafka_server_raftmetrics_current_epoch)")[0].value
        os.kill(cluster.pids()["controller"], signal.SIGKILL)
        watched.wait_for(lambda epoch=epoch: elected_after(epoch), "no election")  # type: ignore[misc]
    shows(watched, "ControllersElectAgain")


def test_a_broker_that_finds_no_controller_is_not_running(tmp_path: Path) -> None:
    address, quorum = f"127.0.0.1:{free_port()}", OwnQuorum(tmp_path)
    broker = quorum.odradek(1, **{"odradek.metrics.listener": address})
    prometheus = Prometheus(tmp_path / "prometheus", [Target(address, "alone")], quick(shipped()))
    servers: tuple[OdradekNode | Prometheus, ...] = (quorum.controller, broker, prometheus)
    for server in servers:
        server.start()
    with silent_before_and_after(prometheus):
        quorum.controller.stop()
        broker.kill9()
        broker.launch(broker.command, r"metrics are served", SOON_S)
        shows(prometheus, "BrokerNotRunning")
        assert "BrokerUnreachable" not in prometheus.firing(), "it is there, and says why"
        quorum.controller.start()
    for server in reversed(servers):
        server.kill9()
        server.forget()


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """Yields a small volume."""
    folder = tmp_path / "volume"
    folder.mkdir()
    run(["mount", "-t", "tmpfs", "-o", f"size={VOLUME_BYTES}", "tmpfs", str(folder)])  # as root
    yield folder
    run(["umount", "--lazy", str(folder)])


@pytest.fixture
def alone(tmp_path: Path, volume: Path) -> Iterator[tuple[Odradek, Prometheus]]:
    """Yields a broker with two log directories, one of them on a small volume."""
    address, data = f"127.0.0.1:{free_port()}", tmp_path / "data"
    properties = {
        "log.dirs": f"{data},{volume / 'logs'}",
        "odradek.metrics.listener": address,
        "log.cleaner.backoff.ms": "200",
        "log.cleaner.dedupe.buffer.size": "2097152",
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "1",
    }
    broker = TwoDirectories(data, properties)
    broker.start()
    prometheus = Prometheus(tmp_path / "prometheus", [Target(address, "alone")], quick(shipped()))
    prometheus.start()
    with silent_before_and_after(prometheus):
        yield broker, prometheus
    for server in (prometheus, broker):
        server.kill9()
        server.forget()


class TwoDirectories(Odradek):
    """A broker whose directories are among its options."""

    def command(self) -> list[str]:
        command = super().command()
        at = command.index("--data")
        return command[:at] + command[at + 2 :]


def create(broker: Odradek, topic: str, partitions: int = PARTITIONS, **configs: str) -> None:
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(SOON_S)


def free_bytes(volume: Path) -> int:
    status = os.statvfs(volume)
    return status.f_bavail * status.f_frsize


def test_a_volume_fills_up_and_then_fails(alone: tuple[Odradek, Prometheus], volume: Path) -> None:
    broker, prometheus = alone
    filler = volume / "filler"
    filler.write_bytes(bytes(free_bytes(volume) - VOLUME_BYTES // 20))
    shows(prometheus, "LogDirectoryAlmostFull")
    assert "LogDirectoryFull" not in prometheus.firing()
    with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    shows(prometheus, "LogDirectoryFull")
    filler.unlink()
    prometheus.wait_for(lambda: not prometheus.firing(), "there is room again")
    (volume / "logs").rename(volume / "gone")
    shows(prometheus, "OfflineLogDirectory")
    broker.stop()
    (volume / "gone").rename(volume / "logs")
    broker.start()


def test_a_group_falls_further_and_further_behind(alone: tuple[Odradek, Prometheus]) -> None:
    broker, prometheus = alone
    create(broker, "orders")
    fall_behind(broker.bootstrap, "orders", 20_000)
    prometheus.wait_for(
        lambda: prometheus.query(f'sum(kafka_consumergroup_lag{{consumergroup="{LAGS}"}}) > 10000'), "no lag"
    )
    growth = f'delta(kafka_consumergroup_lag{{consumergroup="{LAGS}"}}[10s]) > 0'
    prometheus.wait_for(lambda: not prometheus.query(growth), "it grows")
    assert "ConsumerGroupLags" not in prometheus.firing(), "it stays as it is"
    load = Load(broker.bootstrap, ["orders"], reads=False)
    load.start()
    shows(prometheus, "ConsumerGroupLags")
    load.stop()


def test_a_loop_that_is_held_up_again_and_again_is_late(alone: tuple[Odradek, Prometheus]) -> None:
    broker, prometheus = alone
    ended = threading.Event()

    def hold_up() -> None:
        while not ended.wait(HELD_UP_S):
            freeze(broker.pid)
            time.sleep(HELD_UP_S)  # the pause is the fault
            wake(broker.pid)

    holding = threading.Thread(target=hold_up, daemon=True)
    holding.start()
    try:
        shows(prometheus, "EventLoopLate")
    finally:
        ended.set()
        holding.join()


def test_a_damaged_log_is_compacted_no_more(alone: tuple[Odradek, Prometheus], tmp_path: Path) -> None:
    broker, prometheus = alone
    create(broker, "compacted", 1, cleanup_policy="compact", segment_bytes="1048576", min_compaction_lag_ms="3600000")
    segments = write_segments(broker, tmp_path)
    for segment in segments[:-1]:
        damage(segment)
    make_due(broker, "compacted")
    shows(prometheus, "LogsCannotBeCleaned")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics(["compacted"])["compacted"].result(SOON_S)


def write_segments(broker: Odradek, tmp_path: Path) -> Sequence[Path]:
    """Writes some segments of a topic, which may be in either directory."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for number in range(4_000):
        producer.produce("compacted", bytes(1000), key=b"%d" % (number % 7))
        producer.poll(0)
    assert producer.flush(SOON_S) == 0
    (folder,) = [*broker.data.glob("compacted-0"), *(tmp_path / "volume" / "logs").glob("compacted-0")]
    return sorted(folder.glob("*.log"))


def damage(segment: Path) -> None:
    """Flips some bits of a record on the disk."""
    with segment.open("r+b") as file:
        file.seek(500)
        file.write(b"\xff" * 16)


def make_due(broker: Odradek, topic: str) -> None:
    """Makes a topic due for compaction, even if its records are new."""
    entry = ConfigEntry("min.compaction.lag.ms", "0", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(SOON_S)


def test_every_shipped_alert_is_shown_above() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    calls = re.findall(r"^    +shows\(\w+, ([^)]+)\)", source, re.MULTILINE)
    shown = {name for names in calls for name in NAME.findall(names)}
    assert shown == set(ALERT.findall(shipped()))
