"""Tests three controllers, of Odradek or mixed with Apache Kafka's, through kills, freezes and cuts while clients work:
no acknowledged change is lost, no epoch has two leaders, and no broker is fenced."""

from __future__ import annotations

import math
import random
import signal
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from bench.jars import APACHE_KAFKA, APACHE_TOOLS
from tests.interop.administration import (
    Administration,
    active,
    committed,
    dumped,
    fenced,
    leaders,
    metadata,
)
from tests.interop.either_node import EitherNode, Make
from tests.interop.load import Load
from tests.interop.several_controllers import ODRADEK, SeveralControllers, described, lags, leader_of
from tests.waiting import eventually

TOPIC = "under-load"
PARTITIONS = 3
SOON_S = 240
FAULT_S = (0.5, 5.0)
"""Shortest and longest duration of a freeze or a cut."""

LED = 0.6
"""The probability that a fault is of the leader."""

CALM = {
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "replica.lag.time.max.ms": "30000",
    "min.insync.replicas": "2",
}
"""Kafka's default session: longer than an election."""


class Trial:
    """A quorum with three brokers, clients at work, and faults of its controllers from a seed."""

    def __init__(self, quorum: SeveralControllers, seed: int) -> None:
        self.quorum = quorum
        self.counts: Counter[str] = Counter()
        self.led: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._bootstrap = quorum.bootstrap
        new = NewTopic(TOPIC, PARTITIONS, len(quorum.brokers))
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        admin.create_topics([new])[TOPIC].result(SOON_S)
        self.unfenced_at = self._high_watermark()
        """The offset after which all brokers must stay unfenced."""
        self.load = Load(self._bootstrap, TOPIC, PARTITIONS)
        self.administration = Administration(self._bootstrap, seed)
        self.administration.start()

    def _high_watermark(self) -> int:
        offset = described(self._bootstrap)["high_watermark"]
        assert isinstance(offset, int)
        return offset

    def strike(self, fault: str, *, of_leader: bool = False) -> str:
        """Causes a fault of a controller, ends it, and waits until all voters have caught up. Returns a description."""
        former_id = leader_of(self._bootstrap)
        followers = [node_id for node_id in self.quorum.nodes if node_id != former_id]
        hits_leader = of_leader or self._random.random() < LED
        node = self.quorum.nodes[former_id if hits_leader else self._random.choice(followers)]
        self.counts[f"{fault} {'leader' if hits_leader else 'follower'} ({node.make.value})"] += 1
        getattr(self, f"_{fault}")(node)
        eventually(self._progress, dict.fromkeys(self.quorum.nodes, True), within_s=SOON_S)
        now_led_by = leader_of(self._bootstrap)
        if now_led_by != former_id:
            self.led[self.quorum.nodes[now_led_by].make.value] += 1
        return f"{fault} {node!r}, {'the leader' if hits_leader else 'a follower'}; now led by {now_led_by}"

    def _progress(self) -> dict[int, bool]:
        """Returns, for each voter, if it follows."""
        return {node: isinstance(lag, int) and lag < 10 for node, lag in lags(self._bootstrap).items()}

    def _kill(self, node: EitherNode) -> None:
        node.kill9()
        time.sleep(self._random.uniform(0, 4))  # another voter leads by then, or not, by the seed
        node.start()

    def _freeze(self, node: EitherNode) -> None:
        node.signal(signal.SIGSTOP)
        time.sleep(self._random.uniform(*FAULT_S))
        node.signal(signal.SIGCONT)

    def _cut(self, node: EitherNode) -> None:
        assert self.quorum.network is not None
        others = [*self.quorum.nodes, *self.quorum.brokers]
        self.quorum.network.cut(node.node_id, *(other for other in others if other != node.node_id))
        time.sleep(self._random.uniform(*FAULT_S))
        self.quorum.network.heal()

    def finish(self) -> int:
        """Ends the clients, stops all nodes, and checks everything. Returns the number of records in the log."""
        administration = self.administration
        administration.finish()
        self.load.finish()
        assert not administration.faults
        assert self.load.check()
        eventually(self._progress, dict.fromkeys(self.quorum.nodes, True), within_s=SOON_S)
        for broker in self.quorum.brokers.values():
            eventually(lambda broker=broker: administration.found(broker.address), administration.expected)  # type: ignore[misc]
        high_watermark = self._high_watermark()
        eventually(lambda: min(_ends(self._bootstrap)) >= high_watermark, True, within_s=SOON_S)
        for node in self.quorum.nodes.values():
            node.kill9()
        logs = [metadata(node.data) for node in self.quorum.nodes.values()]
        first, *others = (committed(batches, high_watermark) for batches in logs)
        assert first[-1][0] >= high_watermark - 2
        assert all(other == first for other in others), "what is committed is the same"
        assert all(len(ids) == 1 for batches in logs for ids in leaders(batches).values())
        own = [node.log for node in self.quorum.nodes.values() if node.make is Make.ODRADEK]
        assert all(len(nodes) == 1 for nodes in active(own).values())
        assert [offset for offset in fenced(logs[0], self.unfenced_at) if offset < high_watermark] == []
        return high_watermark

    def __str__(self) -> str:
        of = self.administration
        return (
            f"{dict(self.counts)}; elections {dict(self.led)}; {of.changes} changes acknowledged, the longest after "
            f"{of.longest_s:.1f} s, {of.repeated} attempts failed"
        )


def _ends(bootstrap: str) -> list[int]:
    replicas = described(bootstrap)["replicas"]
    assert isinstance(replicas, list)
    return [replica["log_end"] for replica in replicas if replica["role"] != "observer"]


def started(folder: Path, makes: Sequence[Make], brokers: Sequence[Make], **more: object) -> SeveralControllers:
    """Starts three controllers and brokers."""
    quorum = SeveralControllers(folder, makes, CALM, has_network=True, **more)  # type: ignore[arg-type]
    for node_id, make in enumerate(brokers, 1):
        quorum.join(node_id, make)
    return quorum


@pytest.mark.timeout(14_400)
def test_faults_of_three_controllers(
    tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    kills, seed = (int(request.config.getoption(name)) for name in ("--controller-kills", "--cluster-seed"))
    others = -(-kills // 2)
    order = random.Random(seed)
    faults = ["kill"] * kills + [order.choice(("freeze", "cut")) for _ in range(others)]
    order.shuffle(faults)
    quorum = started(tmp_path, ODRADEK, ODRADEK)
    try:
        quorum.start()
        trial, begun_s = Trial(quorum, seed), time.monotonic()
        for number, fault in enumerate(faults, 1):
            struck = trial.strike(fault)
            with capsys.disabled():  # it takes long: the developer sees its progress
                print(
                    f"\n  {time.monotonic() - begun_s:5.0f} s: {number} of {len(faults)}: {struck}", end="", flush=True
                )
        records = trial.finish()
        with capsys.disabled():
            print(f"\nseed {seed}: {trial}; {records} records of metadata, equal on all three")
    finally:
        quorum.forget()


MIXTURES = {
    "one of Odradek": (Make.ODRADEK, Make.APACHE, Make.APACHE),
    "two of Odradek": (Make.ODRADEK, Make.ODRADEK, Make.APACHE),
}


@pytest.mark.cluster
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("version", [APACHE_TOOLS, APACHE_KAFKA])
@pytest.mark.parametrize("makes", MIXTURES.values(), ids=MIXTURES)
def test_elections_of_mixed_controllers(
    tmp_path: Path,
    makes: tuple[Make, ...],
    version: str,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    elections, seed = (int(request.config.getoption(name)) for name in ("--controller-elections", "--cluster-seed"))
    release = ("--release-version", ".".join(version.split(".")[:2]))
    quorum = started(tmp_path, makes, (Make.ODRADEK,), format_with=release)
    for node in quorum.nodes.values():
        node.version = version
    order = random.Random(seed)
    try:
        quorum.start()
        trial, begun_s = Trial(quorum, seed), time.monotonic()
        while trial.led.total() < elections:
            struck = trial.strike(order.choice(("kill", "freeze", "cut")), of_leader=True)
            with capsys.disabled():
                print(
                    f"\n  {time.monotonic() - begun_s:5.0f} s: {trial.led.total()} elections: {struck}",
                    end="",
                    flush=True,
                )
        high_watermark = trial.finish()
        dumps = [dumped(node.data, high_watermark) for node in quorum.nodes.values()]
        assert len(dumps[0]) > high_watermark
        assert dumps[0] == dumps[1] == dumps[2]
        with capsys.disabled():
            print(f"\n{version}, seed {seed}: {trial}; {len(dumps[0])} equal lines of kafka-dump-log")
    finally:
        quorum.forget()


@pytest.mark.cluster
@pytest.mark.timeout(14_400)
def test_time_from_a_kill_of_the_active_controller_to_the_next_topic(
    tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Measures Odradek's and Apache Kafka's controllers in turn, on one machine and with brokers of Odradek."""
    rounds = int(request.config.getoption("--controller-failovers"))
    quorums: dict[Make, SeveralControllers] = {}
    times_s: dict[Make, list[float]] = {}
    try:
        for make in Make:
            (tmp_path / make.value).mkdir()
            quorums[make] = SeveralControllers(tmp_path / make.value, (make,) * 3, CALM)
            quorums[make].join(1)
            quorums[make].start()
            times_s[make] = []
        for number in range(rounds):
            for make, quorum in quorums.items():
                times_s[make].append(_failover_s(quorum, f"failover-{number}"))
            with capsys.disabled():
                print(f"\n  {number + 1} of {rounds}: {_figures(times_s)}", end="", flush=True)
    finally:
        for quorum in quorums.values():
            quorum.forget()


def _failover_s(quorum: SeveralControllers, name: str) -> float:
    """Kills the active controller, and returns the time until a topic is created. Then all voters catch up."""
    admin = AdminClient({"bootstrap.servers": quorum.bootstrap})
    leader = quorum.nodes[leader_of(quorum.bootstrap)]
    leader.kill9()
    begun_s = time.monotonic()
    new = NewTopic(name, 1, 1)
    admin.create_topics([new], operation_timeout=SOON_S, request_timeout=SOON_S)[name].result(SOON_S)
    took_s = time.monotonic() - begun_s
    leader.start()
    eventually(lambda: set(lags(quorum.bootstrap).values()) <= set(range(10)), True, within_s=SOON_S)
    return took_s


def _figures(times_s: Mapping[Make, Sequence[float]]) -> str:
    return "; ".join(
        f"{make.value} last {times[-1]:.2f} s, p50 {statistics.median(times):.2f} s, p99 "
        f"{sorted(times)[math.ceil(len(times) * 0.99) - 1]:.2f} s"
        for make, times in times_s.items()
    )
