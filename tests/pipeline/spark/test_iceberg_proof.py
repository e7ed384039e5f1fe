"""Loads many records in ten runs, with a kill in each: `make test-pipeline-kills`. Without options it is short."""

from __future__ import annotations

import itertools
import signal
import subprocess
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.interop.brokers import Broker
from tests.interop.processes import run
from tests.pipeline.spark.killing import EMBEDDED, ended, started
from tests.pipeline.spark.records import START_MS, create
from tests.pipeline.spark.standalone import Standalone
from tests.pipeline.spark.tables import NAME, counted_in

PARTITIONS = 4
RECORD_BYTES = 100
STAGES = ("planned", "staged", "counted", "committed")
RUNS = 10
SHORT_RUNS = 2
SHORT_RECORDS = 20_000
TIMEOUT_S = 3_600

pytestmark = pytest.mark.timeout(4 * TIMEOUT_S)


class Proof:
    """A topic that grows with each run, and its table."""

    def __init__(self, broker: Broker, topic: str, folder: Path, records: int) -> None:
        self.broker, self.topic, self.folder = broker, topic, folder
        self.runs = RUNS if records else SHORT_RUNS
        self.per_run = (records or SHORT_RECORDS) // self.runs
        create(broker, topic, PARTITIONS)

    def produce(self) -> None:
        """Writes the records of a run, of 100 bytes each."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "linger.ms": 20, "enable.idempotence": True})
        value = b"v" * (RECORD_BYTES - 8)
        for number in range(self.per_run):
            while True:
                try:
                    producer.produce(
                        self.topic, value, f"{number:08}", number % PARTITIONS, timestamp=START_MS + number
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(300) == 0

    def start(self, stage: str = "", master: str = "local[1]") -> subprocess.Popen[bytes]:
        return started("tables", self.broker.bootstrap, self.topic, str(self.folder), stage, master)

    def files(self) -> int:
        return sum(1 for _ in self.folder.glob("tables/kafka/loaded/data/**/*.parquet"))

    def check(self, script: list[str]) -> None:
        """Asserts that the audit is complete, and that PyIceberg counts each offset once."""
        catalog = ["--catalog", f"jdbc:sqlite:{self.folder}/catalog.db", "--warehouse", f"{self.folder}/tables"]
        conf = {**EMBEDDED, "spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "8"}
        settings = [word for name, value in conf.items() for word in ("--set", f"{name}={value}")]
        source = ["--bootstrap", self.broker.bootstrap, "--topic", self.topic, "--table", NAME]
        audited = run([*script, "audit", *source, *catalog, *settings], timeout_s=TIMEOUT_S).stdout.decode()
        print(audited)
        assert audited.rstrip().endswith("complete")
        rows, offsets = counted_in(self.folder)
        print(f"PyIceberg: {rows} rows, {offsets} offsets")
        assert rows == offsets == self.per_run * self.runs


@pytest.fixture
def proof(request: pytest.FixtureRequest, odradek: Broker, topic: str, tmp_path: Path) -> Proof:
    return Proof(odradek, topic, tmp_path, int(request.config.getoption("--pipeline-records")))


def test_runs_on_a_cluster_whose_drivers_and_executors_are_killed(
    proof: Proof, workers: Standalone, script: list[str]
) -> None:
    stages = itertools.cycle(STAGES)
    for number in range(proof.runs):
        proof.produce()
        began = time.monotonic()
        if number % 2 == 0:
            stage = next(stages)
            ended(proof.start(stage, workers.url), -signal.SIGKILL, TIMEOUT_S)
            said = f"driver killed when {stage}"
        else:
            before, job = proof.files(), proof.start("", workers.url)
            while proof.files() == before and job.poll() is None:
                time.sleep(0.02)  # a task tells nobody that it writes
            assert workers.kill_executors(number // 2 % 2) or workers.kill_executors(1 - number // 2 % 2)
            said = f"executor killed, {ended(job, timeout_s=TIMEOUT_S).splitlines()[-1]}"
        print(f"run {number}: {said}, {time.monotonic() - began:.1f} s", flush=True)
    ended(proof.start("", workers.url), timeout_s=TIMEOUT_S)
    proof.check(script)


def test_two_loaders_at_once_one_of_which_is_killed(proof: Proof, script: list[str]) -> None:
    stages = itertools.cycle(STAGES)
    for number in range(proof.runs):
        proof.produce()
        stage = next(stages)
        victim, other = proof.start(stage), proof.start()
        said = ended(other, timeout_s=TIMEOUT_S).splitlines()[-1]
        victim.communicate(timeout=TIMEOUT_S)
        assert victim.returncode in (-signal.SIGKILL, 0)  # 0 if the other has loaded everything before
        print(f"run {number}: {stage}, victim {victim.returncode}, other {said}", flush=True)
    ended(proof.start(), timeout_s=TIMEOUT_S)
    proof.check(script)
