"""Time and memory of a test suite that pytest-xdist divides among workers. Each test has its own topic and group.

`python -m bench.suite [--tests 200] [--workers 4] [--kafka]` runs the suite with one Odradek broker for each worker, by
the fixture `odradek_broker`, and prints a line. With `--kafka` it also runs the same tests with one Apache Kafka that
all workers share, and prints another line. The time includes the start and the stop of the brokers.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from bench.jars import ROOT
from bench.peers.brokers import ApacheKafka

SAMPLE_S: Final = 0.25
KB: Final = 1024

TESTS: Final = """\
import pytest
from confluent_kafka import Consumer, Producer
from odradek.testing.fixtures import topic_fixture

topic = topic_fixture("{broker}", partitions=1)

@pytest.mark.parametrize("number", range({tests}))
def test_what_is_written_is_read({broker}, topic, number):
    config = {{"bootstrap.servers": {broker}.bootstrap}}
    producer = Producer(config)
    for value in range(10):
        producer.produce(topic, str(value))
    assert producer.flush(60) == 0
    consumer = Consumer({{**config, "group.id": topic, "auto.offset.reset": "earliest"}})
    consumer.subscribe([topic])
    values = []
    while len(values) < 10:
        values += [int(one.value()) for one in consumer.consume(10, timeout=1) if one.error() is None]
    consumer.close()
    assert values == list(range(10))
"""


class SuiteCost(NamedTuple):
    """The duration and the memory of a suite."""

    title: str
    seconds: float
    brokers: int
    """Maximum number of brokers that ran at the same time."""
    megabytes: float
    """Their maximum memory at any time; a shared page is divided among the processes that share it."""

    def __str__(self) -> str:
        return f"{self.title:<28} {self.seconds:6.1f} s   {self.brokers} brokers, {self.megabytes:6.0f} MB"


class MemoryOfBrokers:
    """Measures the brokers' memory during a `with` block."""

    def __init__(self, is_broker: Callable[[bytes], bool]) -> None:
        self._is_broker = is_broker
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self.brokers = 0
        self.megabytes = 0.0

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_S):
            sizes = [size for size in map(self._kilobytes, Path("/proc").glob("[0-9]*")) if size]
            self.brokers = max(self.brokers, len(sizes))
            self.megabytes = max(self.megabytes, sum(sizes) / KB)

    def _kilobytes(self, process: Path) -> int:
        """Returns the proportional set size of a broker; 0 for any other process."""
        try:
            if not self._is_broker((process / "cmdline").read_bytes()):
                return 0
            lines = (process / "smaps_rollup").read_text().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        except (OSError, StopIteration):
            return 0

    def __enter__(self) -> MemoryOfBrokers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def run_tests(work: Path, broker: str, options: argparse.Namespace, environment: Mapping[str, str]) -> None:
    """Runs the suite, whose tests get their broker from a fixture. Raises RuntimeError if a test fails."""
    file = work / "test_suite.py"
    file.write_text(TESTS.format(broker=broker, tests=options.tests))
    plugins = ["-p", "odradek.pytest_plugin", "-p", "xdist", "-p", "no:cacheprovider"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        *plugins,
        "-n",
        str(options.workers),
        "--rootdir",
        str(work),
        str(file),
    ]
    settings = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "TMPDIR": str(work), **environment}
    ended = subprocess.run(
        command, cwd=work, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise RuntimeError(ended.stdout[-4000:])


def at_odradek(work: Path, options: argparse.Namespace) -> SuiteCost:
    """Measures the suite with a broker for each worker."""
    mark = f"{work}/odradek-".encode()
    with MemoryOfBrokers(lambda line: mark in line and b"broker.properties" in line) as memory:
        began = time.monotonic()
        run_tests(work, "odradek_broker", options, {})
        seconds = time.monotonic() - began
    return SuiteCost("Odradek, one for each worker", seconds, memory.brokers, memory.megabytes)


def at_kafka(work: Path, options: argparse.Namespace) -> SuiteCost:
    """Measures the suite with one broker for all workers, started before, because there is not enough memory for
    four.
    """
    kafka = ApacheKafka(work)
    kafka.prepare()
    with MemoryOfBrokers(lambda line: b"kafka.Kafka" in line and str(work).encode() in line) as memory:
        began = time.monotonic()
        kafka.start()
        kafka.wait_until_ready()
        try:
            run_tests(work, "odradek_external", options, {"ODRADEK_EXTERNAL": kafka.bootstrap})
        finally:
            kafka.stop()
        seconds = time.monotonic() - began
    return SuiteCost("Apache Kafka, one for all", seconds, memory.brokers, memory.megabytes)


def main(arguments: list[str]) -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.suite", description="time and memory of a suite of tests")
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kafka", action="store_true", help="the same at Apache Kafka")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="suite-") as work:
        print(at_odradek(Path(work), options))
        if options.kafka:
            print(at_kafka(Path(work), options))


if __name__ == "__main__":
    main(sys.argv[1:])
