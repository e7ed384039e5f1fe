"""Opens many tabs of the console with live tails, from a process of its own, until its standard input ends.

    python -m bench.clients.tabs URL PATH COUNT

Prints a line once all tabs are open, and at the end the numbers of records and updates that each tab got, as JSON. The
tabs stand for browsers on other machines, so once they are open, the process runs only when nothing else does: it takes
no core from the broker, the console or the producer.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from urllib.parse import urlsplit

BEGINS = "open"
ROW = b"<tr>"
UPDATE = b"event: records\n"
CHUNK = 65_536


class Tab:
    """A stream of server-sent events."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self.records = 0
        self.updates = 0

    async def count(self) -> None:
        """Counts records and updates until the stream ends."""
        while data := await self._reader.read(CHUNK):
            self.records += data.count(ROW)
            self.updates += data.count(UPDATE)


async def request(url: str, path: str, cookie: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """Sends a request. Returns its connection and the head of the answer."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nCookie: {cookie}\r\n\r\n".encode())
    return reader, writer, await reader.readuntil(b"\r\n\r\n")


async def log_in(url: str) -> str:
    """Returns the cookie of a login by the URL's token."""
    _, writer, head = await request(url, f"/?{urlsplit(url).query}", "")
    writer.close()
    line = next(line for line in head.decode().split("\r\n") if line.lower().startswith("set-cookie:"))
    return line.partition(":")[2].partition(";")[0].strip()


async def main(url: str, path: str, count: int) -> None:
    cookie = await log_in(url)
    tabs = []
    for _ in range(count):
        reader, writer, head = await request(url, path, cookie)
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise SystemExit(head.decode())
        tabs.append(Tab(reader, writer))
    counting = [asyncio.ensure_future(tab.count()) for tab in tabs]
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    print(BEGINS, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for task in counting:
        task.cancel()
    await asyncio.gather(*counting, return_exceptions=True)
    for tab in tabs:
        tab.writer.close()
    print(json.dumps([(tab.records, tab.updates) for tab in tabs]))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
