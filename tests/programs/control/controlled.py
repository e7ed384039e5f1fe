"""A broker in the test's process with its control server, which tests call over HTTP like any client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from programs.control.travelling import TravellingClock, TravellingLoop
from programs.run.server import Server
from tests.broker.inprocess import InProcess

OPTIONS = {"odradek.profile": "test", "odradek.control.listener": "127.0.0.1:0"}


class Answered(NamedTuple):
    """A status, and the parsed JSON of the body."""

    status: int
    content: Any
    headers: dict[str, str]


class ControlClient:
    """A connection to a control server."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, data: bytes) -> Answered:
        """Sends a request unchanged, and returns the answer."""
        if self._streams is None:
            host, _, port = self._address.rpartition(":")
            self._streams = (
                await asyncio.open_unix_connection(port)
                if host == "unix"
                else await asyncio.open_connection(host, int(port))
            )
        reader, writer = self._streams
        writer.write(data)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(headers["Content-Length"]))
        return Answered(int(head[0].split(" ")[1]), json.loads(body), headers)

    async def ask(self, method: str, path: str, content: object = None, **headers: str) -> Answered:
        body = b"" if content is None else json.dumps(content).encode()
        lines = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return await self.send(f"{method} {path} HTTP/1.1\r\n{text}\r\n".encode() + body)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


class Controlled(InProcess):
    """A context manager: `async with Controlled(tmp_path, {...options}) as broker`."""

    def __init__(
        self, directory: Path, options: dict[str, str] | None = None, clock: TravellingClock | None = None
    ) -> None:
        super().__init__(directory, {**OPTIONS, **(options or {})})
        if clock is not None:
            self.server = Server(self.server.config, asyncio.Event(), clock=clock)

    async def __aenter__(self) -> Controlled:
        await super().__aenter__()
        self.control = self.control_client()
        return self

    def control_client(self) -> ControlClient:
        assert self.server.control is not None
        return ControlClient(self.server.control.address)

    async def get(self, path: str) -> Any:
        """Returns the result of a GET."""
        answer = await self.control.ask("GET", path)
        assert answer.status == 200, answer
        return answer.content

    async def post(self, path: str, **content: object) -> Any:
        """Sends a POST, and returns the result."""
        answer = await self.control.ask("POST", path, content)
        assert answer.status in (200, 201), answer
        return answer.content

    async def fault(self, **fields: object) -> str:
        """Sets a fault, and returns its id."""
        return str((await self.post("/v1/faults", **fields))["id"])

    async def fired(self, fault: str) -> int:
        """Returns the number of times that a fault has fired."""
        return int((await self.get(f"/v1/faults/{fault}"))["fired"])

    async def end_fault(self, fault: str) -> Any:
        """Removes a fault."""
        answer = await self.control.ask("DELETE", f"/v1/faults/{fault}")
        assert answer.status == 200, answer
        return answer.content


def on_a_journey(
    directory: Path, options: dict[str, str], main: Callable[[Controlled], Coroutine[object, object, None]]
) -> None:
    """Runs a test of a broker whose clock can be advanced. Its hourly garbage collections do nothing: they would
    traverse the objects of all tests, several hundred times in a century."""
    clock = TravellingClock()

    async def controlled() -> None:
        async with Controlled(directory, options, clock) as broker:
            await main(broker)

    loop = partial(TravellingLoop, clock)
    with mock.patch("programs.run.jobs.collect_frozen"), asyncio.Runner(loop_factory=loop) as runner:
        runner.run(controlled())
