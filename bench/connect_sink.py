"""Iceberg's sink for Kafka Connect under kills: counts the records that its table lacks or has twice.

    python -m bench.connect_sink [--records N] [--runs N] [--seed N]

Each run produces its share of the records, and kills one of two workers while they load, at a time that the seed
decides; the worker starts again at once. `make test-pipeline-kills` does the same to `odradek pipeline load`.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple, cast

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyiceberg.catalog.sql import SqlCatalog

from bench.jars import apache_kafka, resolve
from bench.peers.brokers import Odradek
from bench.peers.peer import free_port

VERSION: Final = "4.3.1"
POM: Final = Path(__file__).with_name("iceberg-connect.xml")
TOPIC: Final = "events"
CONTROL: Final = "control-iceberg"
TABLE: Final = "kafka.loaded"
NAME: Final = "sink"
GROUP: Final = f"connect-{NAME}"
PARTITIONS: Final = 4
RECORD_BYTES: Final = 100
COMMIT_MS: Final = 5_000
"""The sink commits every five minutes by default."""
TIMEOUT_S: Final = 120.0
LAST_TIMEOUT_S: Final = 600.0
"""Time without a commit after which the sink is given up at the end. After a kill it may commit nothing for minutes."""
QUIET_S: Final = 6 * COMMIT_MS / 1000
"""Time without a change after which the table is final, once all offsets are committed."""


class TableCounts(NamedTuple):
    """The rows of the table, and how they differ from the records of the topic."""

    records: int
    rows: int
    lost: int
    doubled: int


class ConnectWorker:
    """A worker of Kafka Connect in distributed mode."""

    def __init__(self, folder: Path, bootstrap: str, number: int) -> None:
        self.port = free_port()
        self._log = folder / f"worker-{number}.txt"
        self._properties = folder / f"worker-{number}.properties"
        plugins = folder / "plugins"
        plugins.mkdir(exist_ok=True)
        with suppress(FileExistsError):
            (plugins / "iceberg").symlink_to(resolve("iceberg-connect", POM))
        properties = {
            "bootstrap.servers": bootstrap,
            "group.id": "connect",
            "listeners": f"http://127.0.0.1:{self.port}",
            "plugin.path": str(plugins),
            "plugin.discovery": "service_load",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "scheduled.rebalance.max.delay.ms": "1000",
        }
        for kind in ("config", "offset", "status"):
            properties |= {f"{kind}.storage.topic": f"connect-{kind}", f"{kind}.storage.replication.factor": "1"}
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        command = ["java", "-Xmx1g", "-cp", f"{apache_kafka(VERSION)}/*", main, str(self._properties)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        """Ends the worker without a farewell."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def ask(self, path: str, body: object = None) -> object:
        """Returns the answer of the worker's REST API. Raises OSError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def failures(self) -> list[str]:
        """Returns the reasons of the sink's tasks that have failed. Raises OSError."""
        status = cast(dict[str, list[dict[str, str]]], self.ask(f"/connectors/{NAME}/status"))
        return [task["trace"] for task in status["tasks"] if task["state"] == "FAILED"]

    def wait(self) -> None:
        """Waits until the worker serves. Raises TimeoutError with the end of its log."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                self.ask("/connectors")
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise TimeoutError(self._log.read_text()[-2000:]) from None
                time.sleep(0.2)


def sink(folder: Path) -> Mapping[str, str]:
    """Returns the configs of the connector. All others have their defaults."""
    return {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "tasks.max": "2",
        "topics": TOPIC,
        "iceberg.tables": TABLE,
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.control.topic": CONTROL,
        "iceberg.control.commit.interval-ms": str(COMMIT_MS),
        "iceberg.catalog": "odradek",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "iceberg.catalog.warehouse": str(folder),
        "iceberg.catalog.jdbc.schema-version": "V1",
        "iceberg.catalog.jdbc.busy_timeout": "60000",
    }


class SinkTopic:
    """The topic, and what the sink has committed of it."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        for created in self.admin.create_topics([NewTopic(TOPIC, PARTITIONS), NewTopic(CONTROL, 1)]).values():
            created.result()

    def produce(self, first: int, count: int) -> None:
        """Writes records whose field `id` counts from `first`."""
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 20, "enable.idempotence": True})
        for number in range(first, first + count):
            value = json.dumps({"id": number, "text": ""})
            value = json.dumps({"id": number, "text": "v" * (RECORD_BYTES - len(value))})
            while True:
                try:
                    producer.produce(TOPIC, value, partition=number % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)
        if left := producer.flush(TIMEOUT_S):
            raise TimeoutError(f"{left} records were not acknowledged")

    def committed(self) -> int:
        """Returns the number of records whose offsets the sink has committed."""
        wanted = ConsumerGroupTopicPartitions(GROUP, [TopicPartition(TOPIC, number) for number in range(PARTITIONS)])
        found = self.admin.list_consumer_group_offsets([wanted])[GROUP].result()
        return sum(max(0, one.offset) for one in found.topic_partitions)

    def wait(self, records: int, timeout_s: float = TIMEOUT_S) -> int:
        """Waits until so many records are committed, or nothing happens for `timeout_s`; returns their number."""
        found, since = self.committed(), time.monotonic()
        while found < records and time.monotonic() - since < timeout_s:
            time.sleep(0.2)
            before, found = found, self.committed()
            if found != before:
                since = time.monotonic()
        return found


def counted(folder: Path, records: int) -> TableCounts:
    """Returns what PyIceberg finds in the table."""
    catalog = SqlCatalog("odradek", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    if not catalog.table_exists(TABLE):
        return TableCounts(records, 0, records, 0)
    found = catalog.load_table(TABLE).scan(selected_fields=("id",)).to_arrow()
    different = len(found["id"].unique())
    return TableCounts(records, found.num_rows, records - different, found.num_rows - different)


def settled(folder: Path, records: int) -> TableCounts:
    """Returns the counts when the table no longer changes."""
    counts, since = counted(folder, records), time.monotonic()
    while time.monotonic() - since < QUIET_S:
        time.sleep(COMMIT_MS / 1000)
        before, counts = counts, counted(folder, records)
        if counts != before:
            since = time.monotonic()
    return counts


@contextmanager
def connected(work: Path) -> Iterator[tuple[SinkTopic, list[ConnectWorker]]]:
    """Runs a broker and two workers with the sink."""
    with ExitStack() as stack:
        broker = Odradek(work)
        broker.prepare()
        broker.start()
        stack.callback(broker.stop)
        broker.wait_until_ready()
        topic = SinkTopic(broker.bootstrap)
        workers = [ConnectWorker(work, broker.bootstrap, number) for number in range(2)]
        for worker in workers:
            stack.callback(worker.kill)
            worker.start()
        for worker in workers:
            worker.wait()
        workers[0].ask("/connectors", {"name": NAME, "config": sink(work)})
        yield topic, workers


def run(
    topic: SinkTopic, workers: list[ConnectWorker], victim: ConnectWorker | None, first: int, count: int, delay_s: float
) -> None:
    """Produces records, kills a worker if one is given, and waits until all offsets are committed. Raises RuntimeError
    if a task of the sink has failed."""
    began, said = time.monotonic(), "no kill"
    topic.produce(first, count)
    if victim is not None:
        time.sleep(delay_s)
        said = f"killed when {topic.committed()} offsets were committed"
        victim.kill()
        victim.start()
        victim.wait()
    end = topic.wait(first + count)
    if end < first + count and (failures := workers[0].failures()):
        raise RuntimeError("\n".join(failures))
    print(f"to {first + count}: {said}; {end} are committed after {time.monotonic() - began:.1f} s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.connect_sink", description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-kills", action="store_true", help="the same without kills")
    options = parser.parse_args()
    draw, share = random.Random(options.seed), options.records // options.runs
    with tempfile.TemporaryDirectory(prefix="odradek-connect-") as name, connected(Path(name)) as (topic, workers):
        for number in range(options.runs):
            victim = None if options.no_kills else workers[number % len(workers)]
            run(topic, workers, victim, number * share, share, draw.uniform(0, 2 * COMMIT_MS / 1000))
        topic.wait(options.runs * share, LAST_TIMEOUT_S)
        counts = settled(Path(name), options.runs * share)
    print(", ".join(f"{name} {value}" for name, value in counts._asdict().items()))
    return int(bool(counts.lost or counts.doubled))


if __name__ == "__main__":
    sys.exit(main())
