"""Groups of members on plain sockets, which join, heartbeat and commit as fast as they are answered.

A client library would send a heartbeat only every three seconds; without one, the bench shows how many a broker can
answer. The requests have old, plain versions that every broker supports: FindCoordinator 0, JoinGroup 2, SyncGroup 1,
Heartbeat 1, OffsetCommit 2. They are packed by hand, because `client` takes one and a half times the processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import struct
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from bench.figures import ToolResult, percentiles_ms
from bench.wire import request

FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP, HEARTBEAT, OFFSET_COMMIT = 10, 11, 14, 12, 8
SESSION_MS, REBALANCE_MS = 60_000, 60_000
RETRY_S = 0.1
HEARTBEAT_S = 0.1
NOT_READY = (14, 15, 16)  # loading, not available, not coordinator
REJOIN = (22, 27)  # another generation, rebalance in progress


def text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


def data(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


SUBSCRIPTION = struct.pack(">hi", 0, 1) + text("bench") + data(b"")


class MemberOptions(NamedTuple):
    """The options of one run."""

    bootstrap: str
    topic: str
    group: str
    records: int
    clients: int


class RequestRefused(Exception):
    """The broker answered with an error code."""


class MemberConnection:
    """A connection with one request in flight."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, bootstrap: str) -> MemberConnection:
        host, _, port = bootstrap.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def ask(self, api_key: int, version: int, body: bytes) -> bytes:
        """Returns the answer's body, after its correlation id."""
        self._writer.write(request(api_key, version, body))
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return (await self._reader.readexactly(size))[4:]


def check(code: int, what: str) -> None:
    if code:
        raise RequestRefused(f"{what} was answered with error code {code}")


class SocketMember:
    """A member of a group, with its own connection."""

    def __init__(self, connection: MemberConnection, group: str) -> None:
        self._connection = connection
        self.group = group
        self.generation = -1
        self.member_id = ""
        self.others: list[str] = []

    async def join(self) -> None:
        body = text(self.group) + struct.pack(">ii", SESSION_MS, REBALANCE_MS) + text(self.member_id) + text("consumer")
        body += struct.pack(">i", 1) + text("range") + data(SUBSCRIPTION)
        answer = await self._ask_until_ready(JOIN_GROUP, 2, body, lambda answer: answer[4:6])
        code, self.generation = struct.unpack_from(">hi", answer, 4)
        check(code, "JoinGroup")
        position = 10
        names = []
        for _ in range(3):  # strategy, leader, member id
            name, position = read_text(answer, position)
            names.append(name)
        self.member_id = names[2]
        (count,) = struct.unpack_from(">i", answer, position)
        position += 4
        self.others = []
        for _ in range(count):
            member_id, position = read_text(answer, position)
            (size,) = struct.unpack_from(">i", answer, position)
            position += 4 + size
            self.others.append(member_id)

    async def sync(self) -> bool:
        """Sends SyncGroup; returns False if the group rebalances again."""
        given = b"".join(text(member_id) + data(bytes(40)) for member_id in self.others)
        body = text(self.group) + struct.pack(">i", self.generation) + text(self.member_id)
        answer = await self._connection.ask(SYNC_GROUP, 1, body + struct.pack(">i", len(self.others)) + given)
        return self.is_fine(struct.unpack_from(">h", answer, 4)[0], "SyncGroup")

    @staticmethod
    def is_fine(code: int, what: str) -> bool:
        """Returns False if the member must join again. Raises RequestRefused for any other error."""
        if code not in REJOIN:
            check(code, what)
        return not code

    async def heartbeat(self, _: int = 0) -> bool:
        """Sends a heartbeat; returns False if the group rebalances."""
        body = text(self.group) + struct.pack(">i", self.generation) + text(self.member_id)
        return self.is_fine(struct.unpack_from(">h", await self._connection.ask(HEARTBEAT, 1, body), 4)[0], "Heartbeat")

    async def come_in(self) -> None:
        """Joins until the member has an assignment in the current generation."""
        await self.join()
        while not await self.sync():
            await self.join()

    async def commit(self, topic: str, offset: int) -> None:
        body = text(self.group) + struct.pack(">i", self.generation) + text(self.member_id)
        body += struct.pack(">qi", -1, 1) + text(topic) + struct.pack(">iiq", 1, 0, offset) + text("")
        answer = await self._ask_until_ready(OFFSET_COMMIT, 2, body, lambda answer: answer[-2:])
        check(struct.unpack(">h", answer[-2:])[0], "OffsetCommit")

    async def _ask_until_ready(self, api_key: int, version: int, body: bytes, code: Callable[[bytes], bytes]) -> bytes:
        """Repeats a request until the coordinator is available; `code` returns the error code of an answer."""
        while True:
            answer = await self._connection.ask(api_key, version, body)
            if struct.unpack(">h", code(answer))[0] not in NOT_READY:
                return answer
            await asyncio.sleep(RETRY_S)


def read_text(body: bytes, position: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", body, position)
    return body[position + 2 : position + 2 + size].decode(), position + 2 + size


async def wait_for_coordinator(options: MemberOptions) -> None:
    """Waits until the coordinator serves: the first request makes the broker create its topic."""
    connection = await MemberConnection.open(options.bootstrap)
    while True:
        answer = await connection.ask(FIND_COORDINATOR, 0, text(options.group))
        (code,) = struct.unpack_from(">h", answer)
        if code not in NOT_READY:
            break
        await asyncio.sleep(RETRY_S)
    check(code, "FindCoordinator")


async def members(options: MemberOptions) -> list[SocketMember]:
    """Returns the members of a group, as many as there are clients."""
    joined = [
        SocketMember(await MemberConnection.open(options.bootstrap), options.group) for _ in range(options.clients)
    ]
    await together(joined)
    return joined


async def together(joining: list[SocketMember]) -> None:
    """Joins until all members are in one generation: each later member makes the others join again, as their heartbeats
    tell them.
    """
    generations: dict[SocketMember, int] = {}

    async def stay(member: SocketMember) -> None:
        await member.come_in()
        generations[member] = member.generation
        while len(generations) < len(joining) or len(set(generations.values())) > 1:
            await asyncio.sleep(HEARTBEAT_S)
            if not await member.heartbeat():
                await member.come_in()
                generations[member] = member.generation

    await asyncio.gather(*map(stay, joining))


async def repeat(options: MemberOptions, action: Callable[[SocketMember, int], Awaitable[object]]) -> ToolResult:
    """Lets the members repeat the action, `records` times in all."""
    group = await members(options)
    numbers = iter(range(options.records))
    taken_ns: list[int] = []

    async def work(member: SocketMember) -> None:
        for number in numbers:
            began_ns = time.perf_counter_ns()
            await action(member, number)
            taken_ns.append(time.perf_counter_ns() - began_ns)

    start = time.perf_counter()
    await asyncio.gather(*(work(member) for member in group))
    return ToolResult(options.records, 0, time.perf_counter() - start, percentiles_ms(taken_ns))


async def heartbeats(options: MemberOptions) -> ToolResult:
    return await repeat(options, SocketMember.heartbeat)


async def commits(options: MemberOptions) -> ToolResult:
    return await repeat(options, lambda member, number: member.commit(options.topic, number))


async def groups(options: MemberOptions) -> ToolResult:
    """Commits once for each of `records` groups that have no members."""
    connections = [await MemberConnection.open(options.bootstrap) for _ in range(options.clients)]
    numbers = itertools.count()

    async def work(connection: MemberConnection) -> None:
        while (number := next(numbers)) < options.records:
            await SocketMember(connection, f"{options.group}-{number}").commit(options.topic, number)

    start = time.perf_counter()
    await asyncio.gather(*map(work, connections))
    return ToolResult(options.records, 0, time.perf_counter() - start)


async def join(options: MemberOptions) -> ToolResult:
    """Measures the time from the first member's request to the last member's assignment."""
    connections = [await MemberConnection.open(options.bootstrap) for _ in range(options.clients)]
    joining = [SocketMember(connection, options.group) for connection in connections]
    start = time.perf_counter()
    await together(joining)
    return ToolResult(options.clients, 0, time.perf_counter() - start)


VERBS = {"heartbeats": heartbeats, "commits": commits, "groups": groups, "join": join}


async def run(verb: str, options: MemberOptions) -> None:
    await wait_for_coordinator(options)
    print((await VERBS[verb](options)).as_json())


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.clients.groups", description=__doc__)
    parser.add_argument("verb", choices=VERBS)
    for name in ("bootstrap", "topic", "group"):
        parser.add_argument(name)
    parser.add_argument("--records", type=int, default=1)
    parser.add_argument("--clients", type=int, default=1)
    given = parser.parse_args()
    options = MemberOptions(given.bootstrap, given.topic, given.group, given.records, given.clients)
    asyncio.run(run(given.verb, options))


if __name__ == "__main__":
    main()
