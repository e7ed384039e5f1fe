"""Measures how long one client's large request stops the event loop: `python -m tests.fuzz.callbacks`.

Each array of each version of each API has as many entries as are asked for, sent to a node or, by `--place controller`,
to a controller's listener, where requests of brokers name a registered broker, and clients' requests come in Envelopes,
too. All times are processor times, so that other work of the machine doesn't count:

    wait      the longest turn of the loop, in processor time of the whole process: the loop may wait for a thread that
              keeps the interpreter's lock. No other client waits longer for its turn.
    callback  the longest callback, in processor time of the loop's thread
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from asyncio.events import Handle
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from broker.config import BrokerConfig
from broker.config.authorization import STANDARD_AUTHORIZER
from broker.dispatch.api import CONTROLLER, Api
from broker.handlers import APIS
from broker.handlers.controller import CONTROLLER_APIS
from broker.metadata.forwarding import envelope
from broker.request.context import Principal
from coordinator.cluster.requester import Requester
from programs.run.controller_server import ControllerServer
from protocol.api_key import ApiKey
from protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
from protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.versions import Versions
from storage.disk import OsDisk
from storage.meta_properties import MetaProperties, write_meta_properties
from tests.broker.controllers import is_active
from tests.broker.doors import EVE, OPTIONS, furnished
from tests.broker.extremes import TOPIC
from tests.broker.inprocess import LONG_S, Client, InProcess, request_frame
from tests.broker.many import Many, requests_of_many
from tests.coordinator.cluster import given
from tests.waiting import until

BROKER: Final = 1
CLIENT: Final = Requester("User", "admin", "a-client", "127.0.0.1")
CONTROLLER_OPTIONS: Final = {
    "process.roles": "controller",
    "node.id": "100",
    "listeners": "C://:0",
    "controller.listener.names": "C",
    "controller.quorum.voters": "100@127.0.0.1:9093",
    "broker.session.timeout.ms": "3600000",
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:admin; User:ANONYMOUS",
}
RIGHTS: Final = {"with": Principal("User", "admin"), "without": EVE}
VERSIONS: Final[Mapping[str, Callable[[Versions], Iterable[int]]]] = {
    "newest": lambda versions: (versions.last,),
    "ends": lambda versions: dict.fromkeys(versions),
    "all": lambda versions: range(versions.first, versions.last + 1),
}
"""The versions of an API that are measured: the newest, the oldest and the newest, or all."""


class Stopwatch:
    """Measures the callbacks of event loops in this thread, and the turns of a loop."""

    def __init__(self) -> None:
        self._run: Callable[[Handle], None] = Handle._run
        self._began_s = self._turn_began_s = 0.0
        self._next_turn: Handle | None = None
        """The end of the current turn; None unless turns are measured."""
        self.wait_s = self.callback_s = 0.0

    @contextmanager
    def running(self) -> Iterator[Stopwatch]:
        Handle._run = lambda handle: self._measure(handle)  # type: ignore[method-assign, assignment]
        try:
            yield self
        finally:
            Handle._run = self._run  # type: ignore[method-assign, assignment]

    def start(self) -> None:
        """Discards the measurements so far, including the current callback's time."""
        if self._next_turn is not None:
            self._next_turn.cancel()
        self.wait_s = self.callback_s = 0.0
        self._began_s, self._turn_began_s = time.thread_time(), time.process_time()
        self._turn()

    def stop(self) -> None:
        """Ends the current callback and turn."""
        assert self._next_turn is not None
        self._next_turn.cancel()
        self._lap()
        self.wait_s = max(self.wait_s, time.process_time() - self._turn_began_s)

    def _turn(self) -> None:
        """Ends a turn of the loop, and begins the next. The loop is always busy, except when it waits for threads."""
        now_s = time.process_time()
        self.wait_s, self._turn_began_s = max(self.wait_s, now_s - self._turn_began_s), now_s
        self._next_turn = asyncio.get_running_loop().call_soon(self._turn)

    def _lap(self) -> None:
        self.callback_s = max(self.callback_s, time.thread_time() - self._began_s)

    def _measure(self, handle: Handle) -> None:
        self._began_s = time.thread_time()
        self._run(handle)
        self._lap()


class Place(NamedTuple):
    """A server in this process, and the topic that requests are about."""

    client: Callable[[], Client]
    topic_id: bytes
    fill: Callable[[Any], Any]
    """Fills in values that only the server knows."""


@asynccontextmanager
async def node(folder: Path) -> AsyncIterator[Place]:
    """Yields a broker with its own controller."""
    async with InProcess(folder, OPTIONS) as served:
        yield Place(served.client, await furnished(served), lambda request: request)


@asynccontextmanager
async def controller(folder: Path) -> AsyncIterator[Place]:
    """Yields a controller with one broker, which leads the partitions of a topic."""
    write_meta_properties(OsDisk(), str(folder), MetaProperties("the-cluster", 100, b"directory-of-100"))
    server = ControllerServer(BrokerConfig.parse({**CONTROLLER_OPTIONS, "log.dirs": str(folder)}), asyncio.Event())
    await server.start()
    await until(lambda: is_active(server))
    cluster = server.part.cluster
    submit, image = cluster.controller.submit, cluster.image
    await submit(given.registration(BROKER), BrokerRegistrationResponse)
    await submit(given.heartbeat(image, BROKER), BrokerHeartbeatResponse)
    created = await submit(CreateTopicsRequest(topics=[given.creatable(TOPIC, 2, 1)]), CreateTopicsResponse)

    def fill(request: Any) -> Any:
        for name, value in (("broker_id", BROKER), ("broker_epoch", image.brokers[BROKER].epoch)):
            if hasattr(request, name) and not isinstance(request, BrokerRegistrationRequest):
                setattr(request, name, value)
        return request

    yield Place(lambda: Client(server), created.topics[0].topic_id, fill)
    await server.stop()


PLACES: Final = {"node": (APIS, node), "controller": (CONTROLLER_APIS, controller)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.callbacks", description=__doc__)
    parser.add_argument("--entries", default="20000", help="entries of each array: 20000,100000,200000")
    parser.add_argument("--api", default="", help="only these: FETCH,METADATA")
    parser.add_argument("--versions", choices=VERSIONS, default="newest", help="of each request")
    parser.add_argument("--rights", choices=[*RIGHTS, "both"], default="both", help="of the client that asks for much")
    parser.add_argument("--place", choices=PLACES, default="node", help="the server of the requests")
    options = parser.parse_args()
    only = {name for name in options.api.split(",") if name}
    counts = [int(count) for count in options.entries.split(",")]
    rights = RIGHTS if options.rights == "both" else {options.rights: RIGHTS[options.rights]}
    apis, place = PLACES[options.place]
    forwarded = [row.key for row in APIS if row.answered_by is CONTROLLER] if options.place == "controller" else ()
    wanted = [api for api in apis if not only or api.key.name in only]
    requests = [*requests_of(wanted, forwarded, VERSIONS[options.versions])]
    print("    wait callback  request")
    for name, principal in rights.items():
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(place(Path(folder)), requests, counts, name, principal))


def requests_of(
    apis: Iterable[Api], forwarded: Collection[ApiKey], versions: Callable[[Versions], Iterable[int]]
) -> Iterator[tuple[Many, bool]]:
    """Yields the requests of some versions of each API; the flag is True for requests that also come in Envelopes."""
    for api in apis:
        for version in versions(api.versions):
            for many in requests_of_many(api.request, version):
                yield many, False
                if api.key in forwarded:
                    yield many, True


async def measure(
    place: AbstractAsyncContextManager[Place],
    requests: Iterable[tuple[Many, bool]],
    counts: list[int],
    rights: str,
    principal: Principal,
) -> None:
    """Prints the longest callback during each of the requests, which one server answers."""
    async with place as served:
        with Stopwatch().running() as stopwatch:
            for many, is_forwarded in requests:
                for count in (1, *counts):
                    client = served.client()
                    client.connection.principal = principal
                    request, version = served.fill(many.build(count, served.topic_id)), many.version
                    if is_forwarded:
                        request, version = envelope(request, version, CLIENT), 0
                    frame = request_frame(request, version)
                    stopwatch.start()
                    client.send(frame)
                    async with asyncio.timeout(LONG_S):
                        await client.wire.answered.wait()
                    stopwatch.stop()
                    client.connection.connection_lost(None)
                    if count != 1:  # the first request compiles codecs
                        name = f"{'Envelope of ' * is_forwarded}{many} {count} entries, {rights} rights"
                        print(f"{stopwatch.wait_s:8.3f} {stopwatch.callback_s:8.3f}  {name}", flush=True)


if __name__ == "__main__":
    main()
