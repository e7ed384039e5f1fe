"""The same jobs on a standalone cluster: a master and two workers, started by PySpark's own scripts."""

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

from tests.interop.brokers import Broker
from tests.interop.processes import CACHE, Server, free_port
from tests.pipeline.spark.records import activity, create, is_complete

SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
DEPLOY = "org.apache.spark.deploy"
SMALL_DAEMON = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
EXECUTORS = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.driver.host": "127.0.0.1"}


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[Server]]]:
    """The master's URL, and its two workers."""
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
    """The processes that a worker has started for jobs."""
    tasks = Path(f"/proc/{worker.pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def test_an_executor_that_is_killed_costs_nothing(
    spark: SparkSession, odradek: Broker, topic: str, store: str, script: list[str], workers: tuple[str, list[Server]]
) -> None:
    url, servers = workers
    create(odradek, topic, 4)
    activity(odradek, topic, 20_000, partitions=4)
    settings = {**EXECUTORS, "spark.jars.ivy": str(CACHE / "ivy"), "spark.driver.memory": "512m"}
    conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    words = ["load", "--bootstrap", odradek.bootstrap, "--topics", topic, "--out", store, "--master", url, *conf]
    job = subprocess.Popen([*script, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ})
    deadline = time.monotonic() + 120
    while not list(Path(store).glob("_staging/*/_temporary")) and time.monotonic() < deadline and job.poll() is None:
        time.sleep(0.02)
    for number in executors(servers[0]):
        os.kill(number, signal.SIGKILL)
    out, _ = job.communicate(timeout=180)

    assert job.returncode == 0, out.decode()[-3000:]
    assert b"20000 records, 0 quarantined" in out
    assert is_complete(spark, odradek, topic, store)
