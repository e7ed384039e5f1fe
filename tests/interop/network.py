"""A network between the nodes of a cluster that can be cut and slowed: proxies on this machine before listeners.

They run in a separate process, so that a busy test doesn't delay them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.interop.processes import LineClient

Between = frozenset[int]
"""The ids of two nodes."""


class Network:
    """The proxies, the cut links, and the slow nodes.

    Bytes sent over a cut link are delivered after it has healed, unless either side has given up, as over a TCP
    connection whose packets are lost. `processes` has each node's process by node id, so that the two ends of a
    connection are known.
    """

    def __init__(self, folder: Path, processes: Callable[[], Mapping[int, int]]) -> None:
        self._processes = processes
        program = [sys.executable, "-m", "tests.interop.network_process"]
        self._client = LineClient("network", program, folder / "network.log")

    def before(self, node_id: int, address: str) -> str:
        """Returns an address by which other nodes reach a node's listener through this network."""
        (address,) = self._client.ask(f"before {node_id} {address}")
        return address

    def cut(self, one: int, *others: int) -> None:
        """Stops all traffic between a node and the others, in both directions."""
        self._introduce()
        for other in others:
            self._client.ask(f"cut {one} {other}")

    def slow(self, node_id: int, delay_s: float) -> None:
        """Delays bytes to and from a node."""
        self._introduce()
        self._client.ask(f"slow {node_id} {delay_s}")

    def heal(self) -> None:
        """Ends all cuts and delays; waiting bytes are delivered."""
        self._client.ask("heal")

    def carried(self) -> set[Between]:
        """Returns the pairs of nodes with connections over this network."""
        self._introduce()
        return {frozenset(map(int, line.split())) for line in self._client.ask("carried")}

    def close(self) -> None:
        """Ends the network, with all of its connections."""
        self._client.kill9()

    def _introduce(self) -> None:
        """Tells the network which process belongs to which node now."""
        pids = " ".join(f"{node_id}={pid}" for node_id, pid in self._processes().items())
        self._client.ask(f"processes {pids}")
