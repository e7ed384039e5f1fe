"""A real `odradek cluster`: its processes, according to its log lines."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.interop.brokers import Odradek
from tests.interop.processes import Server
from tests.waiting import wait_until

READY_TIMEOUT_S = 60
SOON_S = 60


class LocalCluster(Server):
    """Three brokers and a controller of one `odradek cluster`, on ports that they keep over restarts."""

    def __init__(self, data: Path, properties: Mapping[str, str] | None = None, brokers: int = 3) -> None:
        super().__init__("odradek cluster", data.with_name(f"{data.name}.log"))
        self.data = data
        self.brokers = brokers
        self.properties = dict(properties or {})
        self.bootstrap = ""

    def command(self) -> list[str]:
        settings = [word for key, value in self.properties.items() for word in ("--set", f"{key}={value}")]
        where = ["--data", str(self.data), "--listen", "127.0.0.1:0"]
        return [Odradek.program, "cluster", "--brokers", str(self.brokers), *where, *settings]

    def start(self) -> None:
        self.bootstrap = self.launch(self.command(), r"^ready (\S+:\d+)$", READY_TIMEOUT_S)[1]

    def events(self) -> Iterator[dict[str, object]]:
        """Returns the lines of the supervisor itself."""
        for line in self.tail(1 << 24).splitlines():
            if line.startswith("{"):
                yield json.loads(line)

    def pids(self) -> dict[str, int]:
        """Returns the newest process of each name."""
        started = [event for event in self.events() if event["event"] == "process started"]
        return {str(event["process"]): int(str(event["pid"])) for event in started}

    def kill_process(self, name: str) -> None:
        """Kills one of the processes, and waits until another is ready in its place."""
        ready = self._times_ready(name)
        os.kill(self.pids()[name], signal.SIGKILL)
        wait_until(lambda: self._times_ready(name) > ready, lambda: f"{name} did not come back\n{self.tail()}")

    def _times_ready(self, name: str) -> int:
        return sum(event["event"] == "process is ready again" and event["process"] == name for event in self.events())
