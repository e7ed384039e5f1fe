"""A network between the nodes of a cluster that can be cut and slowed: proxies of this machine before listeners.

They are in a process of their own, which a test that is busy does not hold up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.interop.processes import LineClient

Between = frozenset[int]
"""The ids of two nodes."""


class Network:
    """Proxies, who is cut off from whom, and who is slow.

    What is sent over a cut is delivered once it heals, unless either side has given up, as over a TCP connection whose
    packets are lost. `processes` says which process is whose, by node id: so a connection has two ends that are known.
    """

    def __init__(self, folder: Path, processes: Callable[[], Mapping[int, int]]) -> None:
        self._processes = processes
        program = [sys.executable, "-m", "tests.interop.network_process"]
        self._client = LineClient("network", program, folder / "network.log")

    def before(self, node_id: int, address: str) -> str:
        """Returns an address by which others reach a node's listener through this network."""
        (address,) = self._client.ask(f"before {node_id} {address}")
        return address

    def cut(self, one: int, *others: int) -> None:
        """Nothing passes between a node and the others any more, in either direction."""
        self._introduce()
        for other in others:
            self._client.ask(f"cut {one} {other}")

    def slow(self, node_id: int, delay_s: float) -> None:
        """Bytes to and from a node take so much longer."""
        self._introduce()
        self._client.ask(f"slow {node_id} {delay_s}")

    def heal(self) -> None:
        """Ends all cuts and delays; what waited goes on."""
        self._client.ask("heal")

    def carried(self) -> set[Between]:
        """Returns between which nodes there are connections over this network."""
        self._introduce()
        return {frozenset(map(int, line.split())) for line in self._client.ask("carried")}

    def close(self) -> None:
        """Ends the network, with all that passes over it."""
        self._client.kill9()

    def _introduce(self) -> None:
        """Says whose the processes of this moment are."""
        pids = " ".join(f"{node_id}={pid}" for node_id, pid in self._processes().items())
        self._client.ask(f"processes {pids}")
