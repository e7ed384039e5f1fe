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
from typing import TypeVar

import pytest
from confluent_kafka import ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata

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
from tests.interop.several_controllers import DIRECTORIES, ODRADEK, SeveralControllers, described, lags, leader_of
from tests.interop.voters import Operator
from tests.waiting import eventually, wait_until

K = TypeVar("K")

TOPIC = "under-load"
PARTITIONS = 3
SOON_S = 240
FAULT_S = (0.5, 5.0)
"""Shortest and longest duration of a freeze or a cut."""

NO_LEADER = -1
LED = 0.6
"""The probability that a fault is of the leader."""

REPLACED = 10
"""The difference between the node ids of a voter and of the next in its place."""

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
@pytest.mark.timeout(3_600)
def test_voters_of_apache_are_replaced_one_by_one_and_back(
    tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(request.config.getoption("--cluster-seed"))
    to_add = [node_id + REPLACED * turn for turn in (1, 2) for node_id in DIRECTORIES]
    quorum = SeveralControllers(tmp_path, (Make.APACHE,) * 3, CALM, to_add=to_add)
    for node_id, make in enumerate((Make.ODRADEK, Make.APACHE, Make.ODRADEK), 1):
        quorum.join(node_id, make)
    try:
        quorum.start()
        trial, operator, begun_s = Trial(quorum, seed), Operator(quorum.bootstrap), time.monotonic()
        for make in (Make.ODRADEK, Make.APACHE):
            for node_id in list(quorum.nodes):
                replace(quorum, operator, node_id, make)
                with capsys.disabled():
                    voters = ", ".join(f"{node!r}" for node in quorum.nodes.values())
                    took_s, leader = time.monotonic() - begun_s, leader_of(quorum.bootstrap)
                    print(f"\n  {took_s:5.0f} s: voters {voters}; {leader} leads", end="", flush=True)
        records = trial.finish()
        with capsys.disabled():
            print(f"\nseed {seed}: {trial}; {records} records of metadata, equal on all three")
    finally:
        quorum.forget()


def replace(quorum: SeveralControllers, operator: Operator, node_id: int, make: Make) -> None:
    """Adds a voter, and removes another for good."""
    former = quorum.nodes[node_id]
    new = quorum.nodes[node_id + REPLACED] = quorum.controller_to_add(node_id + REPLACED, make)
    operator.add(new, new.node_id, "--address", new.address)
    operator.change("remove", str(node_id))
    former.end()
    del quorum.nodes[node_id]
    operator.change("unregister", str(node_id))
    assert set(operator.directories()) == set(quorum.nodes)


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


def _figures(times_s: Mapping[K, Sequence[float]]) -> str:
    return "; ".join(
        f"{getattr(key, 'value', key)} last {times[-1]:.2f} s, p50 {statistics.median(times):.2f} s, p99 "
        f"{sorted(times)[math.ceil(len(times) * 0.99) - 1]:.2f} s"
        for key, times in times_s.items()
        if times
    )


@pytest.mark.cluster
@pytest.mark.timeout(14_400)
def test_time_from_the_loss_of_a_machine_until_its_partition_is_led_again(
    tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Measures nodes of both roles, and brokers whose controllers are processes of their own, in turn."""
    rounds = max(int(request.config.getoption("--controller-failovers")) // 5, 1)
    quorums = {}
    times_s: dict[str, list[float]] = {}
    try:
        for are_brokers in (True, False):
            (tmp_path / str(are_brokers)).mkdir()
            quorum = quorums[are_brokers] = SeveralControllers(
                tmp_path / str(are_brokers), ODRADEK, CALM, are_brokers=are_brokers
            )
            for node_id in () if are_brokers else (1, 2, 3):
                quorum.join(node_id)
            quorum.start()
            admin = AdminClient({"bootstrap.servers": quorum.bootstrap})
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(SOON_S)
        for number in range(rounds):
            for are_brokers, quorum in quorums.items():
                for with_active in (True, False):
                    which = f"{'both roles' if are_brokers else 'apart'}, {'active' if with_active else 'standby'}"
                    times_s.setdefault(which, []).append(_loss_s(quorum, are_brokers, with_active))
            with capsys.disabled():
                print(f"\n  {number + 1} of {rounds}: {_figures(times_s)}", end="", flush=True)
    finally:
        for quorum in quorums.values():
            quorum.forget()


def _loss_s(quorum: SeveralControllers, are_brokers: bool, with_active: bool) -> float:
    """Kills a machine, of which the controller is active or not, and returns the time until clients write to the next
    leader of a partition that its broker led. If the roles are apart, the machine has one process of each, or only the
    broker if the active controller is to stay. Then all replicas catch up."""
    admin = AdminClient({"bootstrap.servers": quorum.bootstrap})
    leader_id = leader_of(quorum.bootstrap)
    partitions = admin.list_topics(TOPIC, SOON_S).topics[TOPIC].partitions
    led = {partition.leader: index for index, partition in partitions.items()}
    hosts = [node_id for node_id in led if not are_brokers or (node_id == leader_id) is with_active]
    assert hosts, f"no machine leads a partition: {led}"
    index = led[hosts[0]]
    killed = [(quorum.nodes if are_brokers else quorum.brokers)[hosts[0]]]
    if not are_brokers and with_active:
        killed.append(quorum.nodes[leader_id])
    for node in killed:
        node.kill9()
    begun_s = time.monotonic()
    wait_until(lambda: _partitions(admin)[index].leader not in (hosts[0], NO_LEADER), within_s=SOON_S)
    producer = Producer({"bootstrap.servers": quorum.bootstrap, "acks": "all", "message.timeout.ms": SOON_S * 1000})
    producer.produce(TOPIC, b"on the next leader", partition=index)
    assert producer.flush(SOON_S) == 0
    took_s = time.monotonic() - begun_s
    for node in reversed(killed):
        node.start()
    eventually(lambda: all(len(found.isrs) == 3 for found in _partitions(admin)), True, within_s=SOON_S)
    elect_preferred(quorum.bootstrap)
    return took_s


def _partitions(admin: AdminClient) -> list[PartitionMetadata]:
    return [found for _, found in sorted(admin.list_topics(TOPIC, SOON_S).topics[TOPIC].partitions.items())]


def elect_preferred(bootstrap: str) -> None:
    """Lets each broker lead a partition again."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    places = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    admin.elect_leaders(ElectionType.PREFERRED, places).result(SOON_S)
    eventually(lambda: len({found.leader for found in _partitions(admin)}), PARTITIONS, within_s=SOON_S)
