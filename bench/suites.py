"""The duration and the memory of a test suite over several workers of pytest-xdist. `make bench-tests`.

    python -m bench.suites [--brokers NAME …] [--tests N] [--workers N]

Each test creates a topic, writes ten records and reads them as a group. `odradek` has a broker for each worker, by the
fixture `odradek_broker`; `kafka` is one Apache Kafka for all workers, including the time of its start;
`kafka-each` is an Apache Kafka for each worker.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from bench import cost
from bench.figures import MB
from bench.jars import ROOT
from bench.peers.brokers import ApacheKafka

TESTS: Final = 200
WORKERS: Final = 4
LOOK_S: Final = 0.2
SUITE_TIMEOUT_S: Final = 1800
WITHOUT: Final = ("-p", "no:cacheprovider", "-p", "no:asyncio")
"""Plugins that the suite doesn't need."""

SUITE: Final = '''\
"""Orders that are written and read."""

import uuid

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic


@pytest.mark.parametrize("number", range({tests}))
def test_what_is_written_is_read(bootstrap, number):
    topic = f"orders-{{uuid.uuid4().hex}}"
    admin = AdminClient({{"bootstrap.servers": bootstrap}})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    producer = Producer({{"bootstrap.servers": bootstrap}})
    for value in range(10):
        producer.produce(topic, str(value))
    assert producer.flush(60) == 0
    consumer = Consumer({{"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}})
    consumer.subscribe([topic])
    values = []
    while len(values) < 10:
        message = consumer.poll(60)
        assert message is not None
        if message.error() is None:
            values.append(int(message.value()))
    consumer.close()
    assert values == list(range(10))
'''

OURS: Final = """\
import pytest


@pytest.fixture
def bootstrap(odradek_broker):
    return odradek_broker.bootstrap
"""

SHARED: Final = """\
import os

import pytest


@pytest.fixture
def bootstrap():
    return os.environ["BOOTSTRAP"]
"""

OF_EACH_WORKER: Final = """\
import pytest

from bench.peers.brokers import ApacheKafka


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory):
    broker = ApacheKafka(tmp_path_factory.mktemp("kafka"))
    broker.prepare()
    broker.start()
    broker.wait_until_ready()
    yield broker.bootstrap
    broker.stop()
"""

CONFTESTS: Final = {"odradek": OURS, "kafka": SHARED, "kafka-each": OF_EACH_WORKER}


class WorkersCost(NamedTuple):
    """The duration and the memory of a suite with its brokers."""

    brokers: str
    seconds: float
    peak_mb: float
    """Maximum resident memory of all its processes at the same time; shared pages count for each."""

    def __str__(self) -> str:
        return f"| {self.brokers} | {self.seconds:.1f} s | {self.peak_mb:,.0f} MB |"


class PeakMemory:
    """The maximum memory of this process and all its descendants, from its creation to `end`."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._peak_bytes = 0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> float:
        """Stops measuring. Returns the peak in MB."""
        self._ended.set()
        self._thread.join()
        return self._peak_bytes / MB

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_S):
            with suppress(OSError):  # the process has ended meanwhile
                self._peak_bytes = max(self._peak_bytes, cost.memory(os.getpid()).resident_bytes)


@contextmanager
def started_before(brokers: str, work: Path) -> Iterator[dict[str, str]]:
    """Yields the environment of the suite, with a broker that is started before the tests if the suite needs that."""
    if brokers != "kafka":
        yield {}
        return
    broker = ApacheKafka(work)
    broker.prepare()
    broker.start()
    try:
        broker.wait_until_ready()
        yield {"BOOTSTRAP": broker.bootstrap}
    finally:
        broker.stop()


def run(brokers: str, tests: int, workers: int) -> WorkersCost:
    """Runs a suite. Raises CalledProcessError if a test fails."""
    with tempfile.TemporaryDirectory(prefix="odradek-suite-") as name:
        work = Path(name)
        (work / "conftest.py").write_text(CONFTESTS[brokers])
        (work / "test_orders.py").write_text(SUITE.format(tests=tests))
        (work / "pytest.ini").write_text("[pytest]\n")
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), *WITHOUT, str(work)]
        peak, began = PeakMemory(), time.monotonic()
        try:
            with started_before(brokers, work) as settings:
                environment = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
                subprocess.run(
                    command, cwd=work, env=environment, check=True, timeout=SUITE_TIMEOUT_S, stdout=sys.stderr
                )
            return WorkersCost(brokers, time.monotonic() - began, peak.end())
        finally:
            peak.end()


def main(words: Sequence[str]) -> int:
    """Runs the suites one after the other, and prints a table."""
    parser = argparse.ArgumentParser(prog="bench.suites", description="A suite of tests over several workers.")
    parser.add_argument("--brokers", nargs="+", choices=CONFTESTS, default=list(CONFTESTS))
    parser.add_argument("--tests", type=int, default=TESTS, help=f"({TESTS})")
    parser.add_argument("--workers", type=int, default=WORKERS, help=f"({WORKERS})")
    options = parser.parse_args(words)
    print(f"| {options.tests} tests, {options.workers} workers | time | peak memory |\n| --- | --- | --- |")
    for brokers in options.brokers:
        print(run(brokers, options.tests, options.workers), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
