"""The brokers that are compared: Odradek, Apache Kafka, and franz-go's kfake."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import ClassVar

from bench import jars, wheel
from bench.load import Load, Tool
from bench.peers.peer import READY_TIMEOUT_S, NotStarted, PeerProcess, Unavailable, free_port, require
from release import image
from release.dist import Failed

BUILD_TIMEOUT_S = 600
IMAGE = "odradek"
KFAKE = Path(__file__).with_name("kfake")
SCRAPE_INTERVAL_S = 15.0
"""The interval in the configuration that comes with Prometheus."""
SCRAPE_TIMEOUT_S = 10.0

# One node, so one replica of everything; a group's first member doesn't wait for others; retention keeps up; the memory
# of deleted topics serves the next rounds.
ONE_NODE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.delete.delay.ms": "1000",
    "log.retention.check.interval.ms": "10000",  # at a steady 100 MB/s, 30 GB arrive in the default of five minutes
}


class Odradek(PeerProcess):
    """Odradek as installed: a wheel of this tree, with the compiled core."""

    name = "odradek"
    title = "Odradek"

    def prepare(self) -> None:
        try:
            wheel.program()
        except wheel.NotBuilt as error:
            raise Unavailable(str(error)) from error

    @property
    def program(self) -> str:
        return wheel.program()

    def command(self) -> list[str]:
        settings = [word for key, value in ONE_NODE.items() for word in ("--set", f"{key}={value}")]
        return [self.program, "run", "--listen", self.bootstrap, "--data", str(self.data), *settings]


class OdradekImage(Odradek):
    """Odradek's image, which `make image` builds, with the network of this machine and its data in a folder."""

    name = "odradek-image"
    title = "Odradek, its image"

    @property
    def program(self) -> str:
        return image.engine()

    @property
    def container(self) -> str:
        return f"odradek-bench-{self.bootstrap.rpartition(':')[2]}"

    def prepare(self) -> None:
        try:
            found = subprocess.run([self.program, "image", "inspect", IMAGE], capture_output=True, check=False)
        except Failed as error:
            raise Unavailable(str(error)) from error
        if found.returncode:
            raise Unavailable(f"there is no image `{IMAGE}`: run `make dist image`")

    def lay_out(self) -> None:
        self.data.mkdir()

    def command(self) -> list[str]:
        listener = f"PLAINTEXT://{self.bootstrap}"
        addresses = {"KAFKA_LISTENERS": listener, "KAFKA_ADVERTISED_LISTENERS": listener}
        environment = [word for key, value in addresses.items() for word in ("--env", f"{key}={value}")]
        settings = [word for key, value in ONE_NODE.items() for word in ("--set", f"{key}={value}")]
        owner = ["--user", f"{os.getuid()}:{os.getgid()}", "--volume", f"{self.data}:/data"]
        place = ["--rm", "--name", self.container, "--network", "host"]
        return [self.program, "run", *place, *owner, *environment, IMAGE, "run", *settings]

    @property
    def pid(self) -> int:
        """The broker's process, not the engine's."""
        words = [self.program, "inspect", "--format", "{{.State.Pid}}", self.container]
        return int(subprocess.run(words, capture_output=True, check=True).stdout)


class PurePython(Odradek):
    """Odradek as it runs in the source tree, or on a platform without compiled code."""

    name = "odradek-pure"
    title = "Odradek, pure Python"

    def prepare(self) -> None:
        """Does nothing: the source tree needs no preparation."""

    @property
    def program(self) -> str:
        return str(Path(sys.executable).with_name("odradek"))


class MeteredOdradek(Odradek):
    """Odradek with metrics, but without scrapes."""

    name = "odradek-metered"
    title = "Odradek with metrics"

    def __init__(self, work: Path) -> None:
        super().__init__(work)
        self.metrics = ""
        """The address of its metrics."""

    def command(self) -> list[str]:
        return [*super().command(), "--set", f"odradek.metrics.listener={self.metrics}"]

    def lay_out(self) -> None:
        self.metrics = f"127.0.0.1:{free_port()}"


class EarlierOdradek(Odradek):
    """Odradek at an earlier revision of this repository, also as a wheel."""

    name = "odradek-earlier"
    title = "Odradek, earlier"
    revision: ClassVar[str] = "HEAD"

    def prepare(self) -> None:
        try:
            wheel.program_at(self.revision)
        except wheel.NotBuilt as error:
            raise Unavailable(str(error)) from error

    @property
    def program(self) -> str:
        return wheel.program_at(self.revision)


class ControlledOdradek(Odradek):
    """Odradek with profile=test and a control server that gets no requests."""

    name = "odradek-controlled"
    title = "Odradek, with the control server"

    def command(self) -> list[str]:
        profile = ("--set", "odradek.profile=test", "--set", "odradek.control.listener=127.0.0.1:0")
        return [*super().command(), *profile]

    def wait_until_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Waits for the ready line. Raises NotStarted, also if the broker doesn't report a control server."""
        super().wait_until_ready(timeout_s)
        if not re.search(r"^control \S+:\d+$", self.tail(), re.MULTILINE):
            raise NotStarted(f"there is no control server: {self.tail()}")


class WatchedOdradek(MeteredOdradek):
    """Odradek with metrics, scraped as by Prometheus."""

    name = "odradek-metrics"
    title = "Odradek, scraped each 15 seconds"

    def __init__(self, work: Path) -> None:
        super().__init__(work)
        self._ended = threading.Event()
        self._scraping: threading.Thread | None = None
        self._problem = ""

    def wait_until_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Waits for the ready line, and starts scraping. Raises NotStarted."""
        super().wait_until_ready(timeout_s)
        self._ended.clear()
        self._problem = ""
        self._scraping = threading.Thread(target=self._scrape, daemon=True)
        self._scraping.start()

    def stop(self) -> None:
        self._ended.set()
        if self._scraping is not None:
            self._scraping.join()
        self._scraping = None
        super().stop()

    def tool(self, load: Load) -> Tool:
        """Returns the tool of a load. Raises NotStarted if the scraper has ended."""
        if self._problem:
            raise NotStarted(self._problem)
        return super().tool(load)

    def _scrape(self) -> None:
        url = f"http://{self.metrics}/metrics"
        try:
            while not self._ended.wait(SCRAPE_INTERVAL_S):
                with urllib.request.urlopen(url, timeout=SCRAPE_TIMEOUT_S) as page:
                    page.read()
        except OSError as error:
            self._problem = f"{url}: {error}"


class ApacheKafka(PeerProcess):
    """Apache Kafka as a broker that is its own controller, with the JVM flags of its own start script."""

    name = "kafka"
    title = f"Apache Kafka {jars.APACHE_KAFKA}"
    ready_line = re.compile(r"Kafka Server started")
    FLAGS: ClassVar = (
        *("-Xms1G", "-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
        *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"),
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
    )
    CLUSTER_ID = "b2RyYWRlay1iZW5jaC0tLQ"

    @property
    def template(self) -> Path:
        return self.work / "formatted"

    def prepare(self) -> None:
        """Formats a directory once; every start gets a copy, so that its time doesn't include formatting."""
        require("java", "mvn")
        if self.template.exists():
            return
        properties = self.write_properties(self.template, "127.0.0.1:1")
        command = jars.storage_tool("format", "-t", self.CLUSTER_ID, "-c", str(properties))
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise Unavailable(f"formatting failed: {ended.stdout[-500:]}{ended.stderr[-500:]}")

    def write_properties(self, data: Path, bootstrap: str) -> Path:
        controller = f"127.0.0.1:{free_port()}"
        settings = ONE_NODE | {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{bootstrap},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(data),
        }
        file = self.work / "server.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return file

    def lay_out(self) -> None:
        shutil.copytree(self.template, self.data)

    def command(self) -> list[str]:
        properties = self.write_properties(self.data, self.bootstrap)
        return ["java", *self.FLAGS, "-cp", f"{jars.apache_kafka()}/*", "kafka.Kafka", str(properties)]


class Kfake(PeerProcess):
    """franz-go's kfake, which stores its data on disk if it gets a directory; built once into .cache."""

    name = "kfake"
    title = "kfake (franz-go)"

    @property
    def binary(self) -> Path:
        sources = b"".join((KFAKE / name).read_bytes() for name in ("main.go", "go.mod", "go.sum"))
        return jars.CACHE / f"kfake-{hashlib.sha256(sources).hexdigest()[:12]}"

    def prepare(self) -> None:
        if self.binary.exists():
            return
        require("go")
        command = ["go", "build", "-trimpath", "-o", str(self.binary), "."]
        ended = subprocess.run(command, cwd=KFAKE, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
        if ended.returncode:
            raise Unavailable(f"building it failed: {ended.stderr[-500:]}")

    def command(self) -> list[str]:
        return [str(self.binary), self.bootstrap, str(self.data)]
