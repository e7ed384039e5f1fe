"""The process of `network.py`: proxies between nodes, with commands on standard input.

    before NODE HOST:PORT     answers the address of a new proxy before a node's listener
    processes NODE=PID…       sets the process of each node
    cut NODE NODE             stops all traffic between the two
    slow NODE SECONDS         delays all traffic to and from a node
    heal                      ends cuts and delays
    carried                   answers NODE NODE for each connected pair

Each answer ends with `done`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

RECEIVED_BYTES = 1 << 16
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""The kernel's tables of connections; a JVM's are in the second."""
LOCAL, REMOTE, INODE = 1, 2, 9
"""Columns of these tables."""
NOBODY = 0


@dataclass(eq=False)
class Connection:
    """A connection to a node's proxy, by its two ports, with its owner if that is known."""

    node_id: int
    ports: tuple[int, int]
    owner: int = NOBODY

    @property
    def between(self) -> frozenset[int]:
        return frozenset((self.node_id, self.owner))


class Proxies:
    """All proxies, their connections, and what delays them."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._processes: dict[int, int] = {}
        self._cuts: set[frozenset[int]] = set()
        self._delays_s: dict[int, float] = {}
        self._healed = asyncio.Event()

    # Commands

    async def before(self, node_id: str, address: str) -> list[str]:
        host, port = address.split(":")

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                try:
                    await self._join(int(node_id), reader, writer, *await asyncio.open_connection(host, int(port)))
                finally:
                    writer.close()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self._servers.append(server)
        return [f"127.0.0.1:{server.sockets[0].getsockname()[1]}"]

    async def processes(self, *pids: str) -> list[str]:
        self._processes = {int(node_id): int(pid) for node_id, pid in (word.split("=") for word in pids)}
        return []

    async def cut(self, one: str, other: str) -> list[str]:
        self._cuts.add(frozenset((int(one), int(other))))
        self._healed.clear()
        self._find_owners()
        return []

    async def slow(self, node_id: str, delay_s: str) -> list[str]:
        self._delays_s[int(node_id)] = float(delay_s)
        self._find_owners()
        return []

    async def heal(self) -> list[str]:
        self._cuts.clear()
        self._delays_s.clear()
        self._healed.set()
        return []

    async def carried(self) -> list[str]:
        self._find_owners()
        pairs = {one.between for one in self._connections if one.owner not in (NOBODY, one.node_id)}
        return [" ".join(map(str, sorted(pair))) for pair in pairs]

    # Connections

    async def _join(
        self,
        node_id: int,
        near_reader: asyncio.StreamReader,
        near: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far: asyncio.StreamWriter,
    ) -> None:
        ports = near.get_extra_info("peername")[1], near.get_extra_info("sockname")[1]
        connection = Connection(node_id, ports)
        self._connections.add(connection)
        if self._cuts or self._delays_s:
            self._find_owners()
        try:
            await asyncio.gather(self._carry(near_reader, far, connection), self._carry(far_reader, near, connection))
        finally:
            self._connections.discard(connection)
            near.close()
            far.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, on: Connection) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(RECEIVED_BYTES):
                await asyncio.sleep(max(self._delays_s.get(node_id, 0) for node_id in on.between))
                while on.between in self._cuts:
                    await self._healed.wait()
                writer.write(data)
                await writer.drain()
        writer.close()

    def _find_owners(self) -> None:
        """Finds the owners of connections whose owner is unknown."""
        unknown = [one for one in self._connections if one.owner == NOBODY]
        inodes = inodes_by_ports() if unknown else {}
        owners = {inode: node_id for node_id, pid in self._processes.items() for inode in sockets_of(pid)}
        for one in unknown:
            one.owner = owners.get(inodes.get(one.ports, ""), NOBODY)


def inodes_by_ports() -> dict[tuple[int, int], str]:
    """Returns the inodes of the ends of this machine's connections, by (local port, remote port)."""
    inodes = {}
    for table in TABLES:
        for line in table.read_text().splitlines()[1:]:
            columns = line.split()
            here, there = (int(columns[end].rpartition(":")[2], 16) for end in (LOCAL, REMOTE))
            inodes[here, there] = columns[INODE]
    return inodes


def sockets_of(pid: int) -> Iterator[str]:
    """Returns the inodes of a process's open sockets."""
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                target = os.readlink(link)
                if target.startswith("socket:["):
                    yield target.removeprefix("socket:[").removesuffix("]")


async def serve() -> None:
    """Carries out the commands on standard input until it ends."""
    proxies = Proxies()
    commands: dict[str, Callable[..., object]] = {
        name: getattr(proxies, name) for name in ("before", "processes", "cut", "slow", "heal", "carried")
    }
    lines = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(lines)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while line := await lines.readline():
        name, *words = line.decode().split()
        for answer in await commands[name](*words):  # type: ignore[misc]  # each is a coroutine of lines
            print(answer)
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(serve())
