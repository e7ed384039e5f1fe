"""The floor as a peer: the cost of the kernel alone."""

from __future__ import annotations

import time
from collections.abc import Mapping

from bench import wire
from bench.load import Load, Method, Tool, module
from bench.peers.peer import READY_TIMEOUT_S, PeerProcess
from bench.tools import PUMP


class Floor(PeerProcess):
    """bench.floor.server, in a process of its own."""

    name = "floor"
    title = "floor"

    def command(self) -> list[str]:
        return module("bench.floor.server", self.bootstrap, str(self.data))

    def refusal(self, load: Load) -> str | None:
        if load.method is Method.TOOL and load.flow is not None:
            return None
        return "has no protocol, so it cannot do this"

    def wait_until_serving(self) -> int:
        self.wait_until_ready(READY_TIMEOUT_S)
        wire.connect(self.bootstrap).close()
        return time.monotonic_ns()

    def tool(self, load: Load) -> Tool:
        return PUMP

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """Does nothing: the first byte creates the file."""

    def delete_topic(self, name: str) -> None:
        (self.data / name).unlink(missing_ok=True)
