"""Tests Apache Kafka's StreamsSmokeTest on three brokers, while its instances and the brokers are killed: each sum is
exact, and each record is processed once."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.jars import APACHE_TOOLS, resolve
from tests.interop import jvm
from tests.interop.either_node import PATIENCE_S, EitherNode, Make
from tests.interop.mixture import Cluster
from tests.interop.processes import Server

PARTITIONS = 3
TOPICS = (
    "data", "echo", "max", "min", "min-suppressed", "min-raw", "dif", "sum", "sws-raw", "sws-suppressed", "cnt", "avg",
    "tagg", "fk",
)  # fmt: skip
KEYS = 20
RECORDS_PER_S = 100
EVERY_S = 10
"""Time between two kills."""

VERIFIED_WITHIN_S = 900
SESSION_MS = 6_000
TRANSACTION_MS = 60_000
"""Timeout of a transaction. The application's own, 10 seconds, is shorter than an election and a restart can take on a
busy machine; an instance whose transaction times out ends with INVALID_TXN_STATE, with Apache Kafka as well."""

SETTINGS: dict[str, Any] = {
    "offsets__topic__num__partitions": str(PARTITIONS),
    "transaction__state__log__num__partitions": str(PARTITIONS),
    "group__initial__rebalance__delay__ms": "500",
    "group__streams__initial__rebalance__delay__ms": "500",
    "group__streams__min__session__timeout__ms": str(SESSION_MS),
    "group__streams__session__timeout__ms": str(SESSION_MS),
    "group__streams__min__heartbeat__interval__ms": "1000",
    "group__streams__heartbeat__interval__ms": "1000",
}
PROTOCOLS = {"streams": "", "classic": f"session.timeout.ms={SESSION_MS}\n"}
"""The options of an instance with each group.protocol."""


@pytest.fixture
def cluster(peer: str, tmp_path: Path) -> Iterator[Cluster]:
    make = Make(peer)
    cluster = Cluster(tmp_path, [make] * 3, make, **SETTINGS)
    cluster.start()
    yield cluster
    cluster.forget()


def classpath() -> str:
    jars = resolve(f"streams-smoke-{APACHE_TOOLS}", jvm.HERE / "streams-smoke.xml", f"-Dkafka.version={APACHE_TOOLS}")
    return jvm.compiled_against("SmokeDriver.java", jars, f"streams-smoke-{APACHE_TOOLS}")


class Instance(Server):
    """An instance of StreamsSmokeTest."""

    def __init__(self, folder: Path, number: int, bootstrap: str, protocol: str) -> None:
        super().__init__(f"instance {number}", folder / f"instance-{number}.log")
        file = folder / f"instance-{number}.properties"
        file.write_text(
            f"bootstrap.servers={bootstrap}\ngroup.protocol={protocol}\nprocessing.guarantee=exactly_once_v2\n"
            f"commit.interval.ms=100\nproducer.transaction.timeout.ms={TRANSACTION_MS}\n"
            f"state.dir={folder / f'state-{number}'}\n{PROTOCOLS[protocol]}"
        )
        main = "org.apache.kafka.streams.tests.StreamsSmokeTest"
        self._command = jvm.java(classpath(), main, str(file), "process")

    def start(self) -> None:
        self.launch(self._command, r"^StreamsTest instance started", PATIENCE_S)

    def check(self) -> None:
        """Checks that it has not failed: kills of others are no reason."""
        assert self.is_running, f"{self.name} has ended"
        assert "FATAL" not in self.log.read_text()


class Driver(Server):
    """Writes records for a time, and then reads the output and verifies it."""

    def __init__(self, folder: Path, bootstrap: str, duration_s: int) -> None:
        super().__init__("driver", folder / "driver.log")
        per_key = RECORDS_PER_S * duration_s // KEYS
        self.count = per_key * KEYS
        words = (bootstrap, str(KEYS), str(per_key), str(duration_s))
        self._command = jvm.java(classpath(), "SmokeDriver", *words)

    def start(self) -> None:
        self.launch(self._command, r"records produced$", PATIENCE_S)

    def verify(self) -> None:
        """Waits until the driver has found the output exact."""
        status = self.wait(VERIFIED_WITHIN_S)
        text = self.log.read_text()
        processed = re.findall(r"^recordProcessed=(\d+)$", text, re.MULTILINE)
        assert (status, {*processed}) == (0, {str(self.count)}), self.tail()
        assert {"ALL-RECORDS-DELIVERED", "SUCCESS"} < {*text.splitlines()}, self.tail()


class Kills:
    """Kills of an instance or of a broker, by a seed. Each process starts again at once."""

    def __init__(self, instances: list[Instance], brokers: list[EitherNode], seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self._kinds: dict[str, Sequence[Instance | EitherNode]] = {"instance": instances, "broker": brokers}
        self._chance = random.Random(seed)
        self._turns = self._deal()

    def _deal(self) -> Iterator[str]:
        while True:
            yield from self._chance.sample([*self._kinds], len(self._kinds))

    def strike(self) -> None:
        kind = next(self._turns)
        victim = self._chance.choice(self._kinds[kind])
        self.counts[kind] += 1
        victim.kill9()
        victim.start()


def errors(brokers: list[EitherNode]) -> list[str]:
    """Returns the lines of level error in the brokers' logs."""
    lines = [line for broker in brokers for line in broker.log.read_text().splitlines()]
    return [line for line in lines if line.startswith("{") and json.loads(line)["level"] == "error"]


@pytest.mark.timeout(0)
@pytest.mark.parametrize("protocol", ["streams", pytest.param("classic", marks=pytest.mark.cluster)])
def test_sums_are_exact_though_instances_and_brokers_are_killed(
    cluster: Cluster, tmp_path: Path, protocol: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    duration_s = int(request.config.getoption("--smoke-s"))
    for topic in TOPICS:
        cluster.create(topic, [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    instances = [Instance(tmp_path, number, cluster.bootstrap, protocol) for number in (1, 2, 3)]
    for instance in instances:
        instance.start()
    driver = Driver(tmp_path, cluster.bootstrap, duration_s)
    driver.start()
    brokers = [*cluster.members.values()]
    kills = Kills(instances, brokers, int(request.config.getoption("--cluster-seed")))
    begun_s = time.monotonic()
    for at_s in range(EVERY_S, duration_s + 1, EVERY_S):
        time.sleep(max(0.0, begun_s + at_s - time.monotonic()))  # a kill each ten seconds
        if time.monotonic() - begun_s > duration_s + EVERY_S:
            break  # a busy machine restarts brokers more slowly
        for instance in instances:
            instance.check()
        kills.strike()
        with capsys.disabled():
            print(f"\n  {time.monotonic() - begun_s:5.0f} s: {dict(kills.counts)} killed", end="", flush=True)
    driver.verify()
    for instance in instances:
        instance.check()
    assert not errors(brokers)
    with capsys.disabled():
        took_s = time.monotonic() - begun_s
        print(f"\n{protocol}: {driver.count} records, {dict(kills.counts)} killed, sums exact after {took_s:.0f} s")
