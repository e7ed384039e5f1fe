"""A network between the nodes of a cluster that can be cut and slowed: proxies of this machine before listeners."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.interop.recording import close

RECEIVED_BYTES = 1 << 16
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""The kernel's connections; a JVM's are in the second."""
LOCAL, REMOTE, INODE = 1, 2, 9
"""Columns of these tables."""


class Network:
    """Proxies, who is cut off from whom, and who is slow.

    What is sent over a cut is delivered once it heals, unless either side has given up, as over a TCP connection whose
    packets are lost. `processes` says which process is whose, by node id: so a connection has two ends that are known.
    """

    def __init__(self, processes: Callable[[], Mapping[int, int]]) -> None:
        self._processes = processes
        self._listeners: list[socket.socket] = []
        self._changed = threading.Condition()
        self._cuts: set[frozenset[int]] = set()
        self._delays_s: dict[int, float] = {}
        self.carried: set[frozenset[int]] = set()
        """Between which nodes something has passed."""

    def before(self, node_id: int, address: str) -> str:
        """Returns an address by which others reach a node's listener through this network."""
        listener = socket.create_server(("127.0.0.1", 0))
        self._listeners.append(listener)
        threading.Thread(target=self._accept, args=(listener, node_id, address), daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    def close(self) -> None:
        """Heals it, and takes no new connections; those that are there end with their processes."""
        self.heal()
        for listener in self._listeners:
            close(listener)

    # Faults

    def cut(self, one: int, other: int) -> None:
        """Nothing passes between the two any more, in either direction."""
        with self._changed:
            self._cuts.add(frozenset((one, other)))

    def slow(self, node_id: int, delay_s: float) -> None:
        """Bytes to and from a node take so much longer."""
        self._delays_s[node_id] = delay_s

    def heal(self) -> None:
        """All is as before; what waited at a cut goes on."""
        self._delays_s.clear()
        with self._changed:
            self._cuts.clear()
            self._changed.notify_all()

    # Connections

    def _accept(self, listener: socket.socket, node_id: int, address: str) -> None:
        host, port = address.split(":")
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                try:
                    far = socket.create_connection((host, int(port)))
                except OSError:
                    close(near)
                    continue
                between = frozenset((node_id, self._owner(near)))
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(*ends, between), daemon=True).start()

    def _owner(self, near: socket.socket) -> int:
        """The id of the node that has connected; 0 if it is none."""
        inode = inode_of(near.getpeername()[1], near.getsockname()[1])
        owners = (node_id for node_id, pid in self._processes().items() if inode in sockets_of(pid))
        return next(owners, 0)

    def _carry(self, source: socket.socket, target: socket.socket, between: frozenset[int]) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(RECEIVED_BYTES):
                time.sleep(max(self._delays_s.get(node_id, 0) for node_id in between))
                with self._changed:
                    self._changed.wait_for(lambda: between not in self._cuts)
                self.carried.add(between)
                target.sendall(data)
        close(source, target)


def inode_of(local_port: int, remote_port: int) -> str:
    """The inode of the end of a connection that has this port here and that port there; "" if there is none."""
    ends = (f":{local_port:04X}", f":{remote_port:04X}")
    for table in TABLES:
        for line in table.read_text().splitlines():
            columns = line.split()
            if columns[LOCAL].endswith(ends[0]) and columns[REMOTE].endswith(ends[1]):
                return columns[INODE]
    return ""


def sockets_of(pid: int) -> Iterator[str]:
    """The inodes of the sockets that a process has open."""
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                yield os.readlink(link).removeprefix("socket:[").removesuffix("]")
