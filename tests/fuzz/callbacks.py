"""Measures the longest callback of the event loop during one client's large request: `python -m tests.fuzz.callbacks`.

Each array of each version of each API has as many entries as are asked for. A callback's time is the processor time of
the loop's thread, so that other work of the machine, and of other threads, doesn't count. No other client waits longer.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from asyncio.events import Handle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from broker.handlers import APIS
from broker.request.context import Principal
from tests.broker.doors import EVE, OPTIONS, furnished
from tests.broker.inprocess import LONG_S, InProcess, request_frame
from tests.broker.many import Many, requests_of_many

RIGHTS: Final = {"with": Principal("User", "admin"), "without": EVE}


class Stopwatch:
    """Measures the callbacks of event loops in this thread."""

    def __init__(self) -> None:
        self._run: Callable[[Handle], None] = Handle._run
        self._began_s = 0.0
        self.longest_s = self.total_s = 0.0

    @contextmanager
    def running(self) -> Iterator[Stopwatch]:
        Handle._run = lambda handle: self._measure(handle)  # type: ignore[method-assign, assignment]
        try:
            yield self
        finally:
            Handle._run = self._run  # type: ignore[method-assign, assignment]

    def start(self) -> None:
        """Forgets what was measured, and what the current callback did before."""
        self.longest_s = self.total_s = 0.0
        self._began_s = time.thread_time()

    def lap(self) -> None:
        """Ends the current callback."""
        took_s = time.thread_time() - self._began_s
        self.longest_s = max(self.longest_s, took_s)
        self.total_s += took_s

    def _measure(self, handle: Handle) -> None:
        self._began_s = time.thread_time()
        self._run(handle)
        self.lap()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.callbacks", description=__doc__)
    parser.add_argument("--entries", default="20000", help="entries of each array: 20000,100000,200000")
    parser.add_argument("--api", default="", help="only these: FETCH,METADATA")
    parser.add_argument("--all-versions", action="store_true", help="older versions of each API, too")
    parser.add_argument("--rights", choices=[*RIGHTS, "both"], default="both", help="of the client that asks for much")
    options = parser.parse_args()
    only = {name for name in options.api.split(",") if name}
    counts = [int(count) for count in options.entries.split(",")]
    rights = RIGHTS if options.rights == "both" else {options.rights: RIGHTS[options.rights]}
    requests = list(requests_of(only, all_versions=options.all_versions))
    print(" longest    total  request")
    for name, principal in rights.items():
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(Path(folder), requests, counts, name, principal))


def requests_of(only: set[str], *, all_versions: bool) -> Iterator[Many]:
    """Yields the requests of each API, or of the named ones: of the newest version, or of all."""
    for api in APIS:
        first, last = api.versions
        for version in range(first if all_versions else last, last + 1):
            if not only or api.key.name in only:
                yield from requests_of_many(api.request, version)


async def measure(data: Path, requests: list[Many], counts: list[int], rights: str, principal: Principal) -> None:
    """Prints the longest callback during each of the requests, which one broker answers."""
    async with InProcess(data, OPTIONS) as served:
        topic_id = await furnished(served)
        with Stopwatch().running() as stopwatch:
            for many in requests:
                for count in (1, *counts):
                    client = served.client()
                    client.connection.principal = principal
                    frame = request_frame(many.build(count, topic_id), many.version)
                    stopwatch.start()
                    client.send(frame)
                    async with asyncio.timeout(LONG_S):
                        await client.wire.answered.wait()
                    stopwatch.lap()
                    client.connection.connection_lost(None)
                    if count != 1:  # the first request compiles codecs
                        name = f"{many} {count} entries, {rights} rights"
                        print(f"{stopwatch.longest_s:8.3f} {stopwatch.total_s:8.3f}  {name}", flush=True)


if __name__ == "__main__":
    main()
