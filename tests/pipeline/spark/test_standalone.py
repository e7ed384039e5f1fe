"""Tests the same jobs on a standalone cluster: a master and two workers, started by PySpark's own scripts."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from pipeline.audit import AuditConfig, MirrorOf, audit
from pipeline.cluster import Cluster
from pipeline.topics import PartitionName
from tests.interop.brokers import Broker
from tests.interop.processes import CACHE, Server, free_port
from tests.pipeline.spark.killing import TIMEOUT_S
from tests.pipeline.spark.records import activity, create, is_complete

SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
DEPLOY = "org.apache.spark.deploy"
SMALL_DAEMON = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
EXECUTORS = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.driver.host": "127.0.0.1"}


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[Server]]]:
    """Yields the URL of the master of two workers."""
    folder = tmp_path_factory.mktemp("standalone")
    port = free_port()
    master = Server("spark master", folder / "master.log")
    command = [SPARK_CLASS, f"{DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    master.launch(command, r"I have been elected leader", 60, SMALL_DAEMON)
    url = f"spark://127.0.0.1:{port}"
    started = []
    for number in range(2):
        worker = Server(f"spark worker {number}", folder / f"worker-{number}.log")
        words = ["--cores", "1", "--memory", "512m", "--webui-port", "0", "--work-dir", str(folder / f"work-{number}")]
        worker.launch(
            [SPARK_CLASS, f"{DEPLOY}.worker.Worker", *words, url],
            r"Successfully registered with master",
            60,
            SMALL_DAEMON,
        )
        started.append(worker)
    yield url, started
    for server in (*started, master):
        server.stop()
        server.forget()


def executors(worker: Server) -> list[int]:
    """Returns the processes that a worker has started for jobs."""
    tasks = Path(f"/proc/{worker.pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


pytestmark = pytest.mark.timeout(3 * TIMEOUT_S)

RECORDS = 20_000
CONF = {**EXECUTORS, "spark.jars.ivy": str(CACHE / "ivy"), "spark.driver.memory": "512m"}


def job_of(name: str, broker: Broker, topic: str, store: str, other: Broker) -> list[str]:
    """Returns the words of a job's command line, with work for several tasks."""
    into_store = ["--bootstrap", broker.bootstrap, "--topic", topic, "--out", store]
    words = {
        "load": into_store,
        "stream": [*into_store, "--max-offsets", "5000"],
        "mirror": ["--source", broker.bootstrap, "--target", other.bootstrap, "--topic", topic],
    }
    return [name, *words[name]]


def under_way(name: str, topic: str, store: str, other: Broker) -> bool:
    """True while a job's tasks are writing; for a stream, the tasks of its second batch."""
    if name == "mirror":
        there = Cluster(other.bootstrap)
        keys = [PartitionName(topic, number) for number in range(4)]
        return topic in there.topic_names() and any(there.end_offsets(keys).values())
    begun = name == "load" or Path(store, "_manifests", f"{1:020}.json").exists()
    return begun and any(Path(store).glob("_staging/*/_temporary"))


@pytest.mark.parametrize("name", ["load", "stream", "mirror"])
def test_an_executor_that_is_killed_costs_nothing(
    name: str,
    spark: SparkSession,
    odradek: Broker,
    other: Broker,
    topic: str,
    store: str,
    script: list[str],
    workers: tuple[str, list[Server]],
) -> None:
    url, servers = workers
    create(odradek, topic, 4)
    activity(odradek, topic, RECORDS, partitions=4)
    conf = [word for key, value in CONF.items() for word in ("--set", f"{key}={value}")]
    words = [*script, *job_of(name, odradek, topic, store, other), "--master", url, *conf]
    job = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + TIMEOUT_S
    while not under_way(name, topic, store, other) and time.monotonic() < deadline and job.poll() is None:
        time.sleep(0.02)  # a job tells nobody that it has begun
    victims = executors(servers[0])
    for number in victims:
        os.kill(number, signal.SIGKILL)
    out, _ = job.communicate(timeout=TIMEOUT_S)

    assert job.returncode == 0, out.decode()[-3000:]
    assert victims
    if name == "mirror":  # which does not count what a killed task has written
        assert audit(spark, AuditConfig(odradek.bootstrap, (topic,), mirror=MirrorOf(other.bootstrap))).clean
    else:
        assert f"{RECORDS} records" in out.decode()
        assert is_complete(spark, odradek, topic, store)
