"""The base of every peer: a process with a ready line, a data directory, an address, and a cost."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from bench import wire
from bench.load import Load, Tool

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
ADMIN_TIMEOUT_S = 120.0
PARTITIONS_AT_ONCE = 5_000
"""Partitions in one request: a broker rejects a request that needs ten thousand records of metadata, and each partition
is one.
"""
ASK_AGAIN_S = 0.1
LOG_TAIL_BYTES = 600


class Unavailable(Exception):
    """This machine can't run a peer, or the peer doesn't offer what a load needs; the message is the reason."""


class NotStarted(Exception):
    """A peer ended, or did not report that it is ready; the message has the end of its log."""


def free_port() -> int:
    """Returns a port that was free a moment ago. Each peer gets its port from outside, so that its start can be
    timed.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def require(*commands: str) -> None:
    """Raises Unavailable if one of the commands is not installed."""
    for command in commands:
        if not shutil.which(command):
            raise Unavailable(f"`{command}` is not installed")


class PeerProcess(ABC):
    """A broker under load. Each start has a new data directory; `stop` leaves nothing running."""

    name: ClassVar[str]
    title: ClassVar[str]
    ready_line: ClassVar[re.Pattern[str]] = re.compile(r"^ready ")

    def __init__(self, work: Path) -> None:
        self.work = work / self.name
        self.work.mkdir(parents=True, exist_ok=True)
        self.data = self.work / "data"
        self.log = self.work / "log.txt"
        self.bootstrap = ""
        self.started_ns = 0
        self.ready_ns = 0
        self._process: subprocess.Popen[str] | None = None
        self._ready = threading.Event()
        self._reader: threading.Thread | None = None

    def prepare(self) -> None:  # noqa: B027 - most need nothing
        """Prepares a start; the time doesn't count. Raises Unavailable."""

    @abstractmethod
    def command(self) -> list[str]:
        """Returns the command line that serves on `bootstrap` with its data in `data`."""

    def lay_out(self) -> None:  # noqa: B027 - most need nothing
        """Writes the files that a start needs into the new data directory."""

    def start(self) -> None:
        """Starts the process and returns at once; call `wait_until_ready` next."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.bootstrap = f"127.0.0.1:{free_port()}"
        self.lay_out()
        command = self.command()
        self._ready.clear()
        self.started_ns = time.monotonic_ns()
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        """Stores the log, and the time of the ready line. The end of the process wakes the waiter, too."""
        assert process.stdout is not None
        with self.log.open("w") as log:
            for line in process.stdout:
                is_ready = not self._ready.is_set() and self.ready_line.search(line)
                if is_ready:
                    self.ready_ns = time.monotonic_ns()
                log.write(line)
                log.flush()
                if is_ready:
                    self._ready.set()
        self._ready.set()

    def wait_until_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Waits for the ready line. Raises NotStarted."""
        is_ready = self._ready.wait(timeout_s)
        if is_ready and self.is_running() and self.ready_ns >= self.started_ns:
            return
        self.stop()
        raise NotStarted(f"no ready line: {self.tail()}")

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._reader is not None:
            self._reader.join()
        self._process = None

    def tail(self) -> str:
        return self.log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace").strip() if self.log.exists() else ""

    def refusal(self, load: Load) -> str | None:
        """Returns the reason why this running peer can't serve a load; None if it can."""
        missing = sorted(load.needs - wire.api_keys(self.bootstrap)) if load.needs else []
        return f"does not serve {', '.join(f'{api.name} ({api.value})' for api in missing)}" if missing else None

    def wait_until_serving(self) -> int:
        """Returns `time.monotonic_ns()` when the first request was answered. Raises NotStarted."""
        try:
            return wire.wait_for_metadata(self.bootstrap, READY_TIMEOUT_S, self.is_running)
        except TimeoutError as error:
            self.stop()
            raise NotStarted(f"{error}: {self.tail()}") from None

    def tool(self, load: Load) -> Tool:
        """Returns the tool that puts the load on this peer."""
        return load.tool

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """Creates a topic. Raises KafkaException with the broker's reason."""
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewPartitions, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 3})
        count = min(partitions, PARTITIONS_AT_ONCE)
        topic = NewTopic(name, num_partitions=count, replication_factor=1, config=dict(configs))
        for created in admin.create_topics([topic], operation_timeout=ADMIN_TIMEOUT_S).values():
            created.result(ADMIN_TIMEOUT_S)
        while count < partitions:
            count = min(partitions, count + PARTITIONS_AT_ONCE)
            grown = admin.create_partitions([NewPartitions(name, count)], operation_timeout=ADMIN_TIMEOUT_S)
            for added in grown.values():
                added.result(ADMIN_TIMEOUT_S)
        deadline = time.monotonic() + ADMIN_TIMEOUT_S
        while len(admin.list_topics(name, ADMIN_TIMEOUT_S).topics[name].partitions) < partitions:
            if time.monotonic() > deadline:
                raise NotStarted(f"{name} doesn't have {partitions} partitions yet: {self.tail()}")
            time.sleep(ASK_AGAIN_S)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic. Raises KafkaException with the broker's reason."""
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 3})
        for deleted in admin.delete_topics([name], operation_timeout=ADMIN_TIMEOUT_S).values():
            deleted.result(ADMIN_TIMEOUT_S)
