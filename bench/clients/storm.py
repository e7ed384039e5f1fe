"""Takes a broker's time, or the machine's, from a process of its own.

    python -m bench.clients.storm KIND HOST:PORT SECONDS

The kinds: `one-by-one` opens a connection and closes it, again and again; `two-hundred` does so with that many
connections at a time; `requesting` sends ApiVersions on each connection before it closes it; `computing` opens no
connections and only keeps two cores busy. Prints a line when it begins, and at the end the connections per second. It
connects only to this machine.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import sys
import time
from collections.abc import Callable, Mapping
from multiprocessing import Process
from typing import Final

from bench import wire

BEGINS: Final = "storms"
AT_ONCE: Final = 200
CORES: Final = 2
IO_TIMEOUT_S: Final = 1.0
REFUSED_FOR_S: Final = 0.001
"""Pause after a rejected connection, because a loop that fails at once would take a whole core."""


def one_by_one(host: str, port: int, ends: float) -> int:
    made = 0
    while time.monotonic() < ends:
        try:
            socket.create_connection((host, port), IO_TIMEOUT_S).close()
        except OSError:
            time.sleep(REFUSED_FOR_S)
            continue
        made += 1
    return made


def requesting(host: str, port: int, ends: float) -> int:
    made = 0
    while time.monotonic() < ends:
        try:
            with wire.connect(f"{host}:{port}", IO_TIMEOUT_S) as connection:
                wire.ask(connection, wire.API_VERSIONS_REQUEST)
        except OSError:
            time.sleep(REFUSED_FOR_S)
            continue
        made += 1
    return made


def two_hundred(host: str, port: int, ends: float) -> int:
    async def one() -> int:
        made = 0
        while time.monotonic() < ends:
            try:
                _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), IO_TIMEOUT_S)
            except OSError:
                await asyncio.sleep(REFUSED_FOR_S)
                continue
            made += 1
            writer.close()
            try:
                await writer.wait_closed()
            except OSError:
                continue  # the broker has closed it first
        return made

    async def all_of_them() -> int:
        return sum(await asyncio.gather(*(one() for _ in range(AT_ONCE))))

    return asyncio.run(all_of_them())


def compute(ends: float) -> None:
    number = 0
    while time.monotonic() < ends:
        for _ in range(1_000):
            number = (number * 31 + 7) & 0xFFFF


def computing(_: str, __: int, ends: float) -> int:
    others = [Process(target=compute, args=(ends,), daemon=True) for _ in range(CORES - 1)]
    for other in others:
        other.start()
    compute(ends)
    for other in others:
        other.join()
    return 0


KINDS: Final[Mapping[str, Callable[[str, int, float], int]]] = {
    "computing": computing,
    "one-by-one": one_by_one,
    "two-hundred": two_hundred,
    "requesting": requesting,
}


def main(kind: str, address: str, seconds: float) -> None:
    host, _, port = address.rpartition(":")
    if not ipaddress.ip_address(host).is_loopback:
        raise SystemExit(f"{host} is not this machine: a storm may use loopback addresses only")
    print(BEGINS, flush=True)
    print(KINDS[kind](host, int(port), time.monotonic() + seconds) / seconds)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
