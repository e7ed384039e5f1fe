"""A standalone cluster of Spark, a master and two workers, started by PySpark's own scripts."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pyspark

from tests.interop.processes import CACHE, Server, free_port

SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
DEPLOY = "org.apache.spark.deploy"
SMALL_DAEMON = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
CONF = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.jars.ivy": str(CACHE / "ivy"),
}
"""The settings of a job on the cluster."""
START_S = 60


class Standalone(NamedTuple):
    """The URL of the master, and the workers."""

    url: str
    workers: list[Server]

    def executors(self, worker: int = 0) -> list[int]:
        """Returns the processes that a worker has started for jobs."""
        tasks = Path(f"/proc/{self.workers[worker].pid}/task").iterdir()
        children = list[int]()
        for task in tasks:
            with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
                children += map(int, (task / "children").read_text().split())
        return children

    def ran(self) -> list[str]:
        """Returns the names of the jobs for which workers have started executors."""
        return [name for worker in self.workers for name in re.findall(r"app-[0-9-]+", worker.log.read_text())]

    def kill_executors(self, worker: int = 0) -> int:
        """Kills the executors of a worker. Returns their number."""
        victims = self.executors(worker)
        for number in victims:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        return len(victims)


@contextmanager
def standalone(folder: Path) -> Iterator[Standalone]:
    """Runs a master and two workers."""
    port = free_port()
    master = Server("spark master", folder / "master.log")
    command = [SPARK_CLASS, f"{DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    master.launch(command, r"I have been elected leader", START_S, SMALL_DAEMON)
    url = f"spark://127.0.0.1:{port}"
    started = []
    for number in range(2):
        worker = Server(f"spark worker {number}", folder / f"worker-{number}.log")
        words = ["--cores", "1", "--memory", "512m", "--webui-port", "0", "--work-dir", str(folder / f"work-{number}")]
        command = [SPARK_CLASS, f"{DEPLOY}.worker.Worker", *words, url]
        worker.launch(command, r"Successfully registered with master", START_S, SMALL_DAEMON)
        started.append(worker)
    yield Standalone(url, started)
    for server in (*started, master):
        server.stop()
        server.forget()
