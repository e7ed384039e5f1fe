"""Unauthenticated clients at a broker's listeners: `python -m tests.fuzz.strangers 0-9 --visits 100000`, or `make
fuzz-strangers`.

A visit is a connection that is not authenticated: a handshake of TLS, or an exchange of SASL, in frames or without, or
one in the other, of which a step is broken, or which stops halfway. The broker is a whole one in this process, with
everything but the sockets. What a seed draws, a visit's number replays. With `--large` the broken step of most visits
is a request of any API with many entries, and no callback may hold the loop for long.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import random
import re
import ssl
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from broker.clock import SystemClock
from broker.network.connection import ServerConnection
from broker.network.tls import TlsTransport
from broker.request.context import ANONYMOUS
from broker.security.authentication import Authentication
from programs.run.securing import TlsDoor
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.inprocess import InProcess, Wire, decode_response
from tests.broker.security.certificates import Authority
from tests.broker.security.sasl import PLAIN_USERS, add_user
from tests.fuzz.callbacks import Stopwatch
from tests.fuzz.exchanges import SCRIPTS, TLS_SCRIPTS, Script, Steps, request_bytes
from tests.fuzz.large import LONGEST_CALLBACK_S, MOST_BYTES, LargeFrames
from tests.fuzz.mutations import garble
from tests.log_lines import errors, log_lines
from tests.simulation.__main__ import parse_seeds

TURNS: Final = 40
"""Number of turns of the event loop within which an answer arrives, if there is one."""

AUTHENTICATION_MS: Final = 1_500
MOST_STRANGERS: Final = 200
LONG_S: Final = 60
WARM_VISITS: Final = 300
"""Number of visits after which all imports, compilations and caches are complete."""

OF_KERNEL: Final = re.compile(r":\[\d+\]$")
"""The number after the kind of a file that has no path: socket:[4711]."""

FEW_OBJECTS: Final = 500
"""Tolerance for the number of all objects, because of the interpreter's caches."""

MORE_OBJECTS: Final = 50_000
"""The same with large requests: clients that get in ask for APIs whose modules and codecs are made then."""

OF_CONNECTIONS: Final = (ServerConnection, TlsTransport, Authentication, ssl.SSLObject)
OPTIONS: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:0,BARE://127.0.0.1:0,SECURE://127.0.0.1:0,MUTUAL://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BARE:SASL_PLAINTEXT,SECURE:SASL_SSL,MUTUAL:SSL",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.bare.plain.sasl.jaas.config": PLAIN_USERS,
    "listener.name.secure.plain.sasl.jaas.config": PLAIN_USERS,
    "listener.name.mutual.ssl.client.auth": "required",
    "connection.failed.authentication.delay.ms": "0",
    "odradek.authentication.timeout.ms": str(AUTHENTICATION_MS),
    "odradek.unauthenticated.connections.max": str(MOST_STRANGERS),
    "ssl.keystore.type": "PEM",
    "ssl.truststore.type": "PEM",
}
BARE, SECURE, MUTUAL = 1, 2, 3
"""The listeners, by their index."""


class Socket(Wire):
    """A replacement for a socket."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data


class Visitor:
    """One connection, from the client's side."""

    def __init__(self, broker: InProcess, listener: int, door: TlsDoor | None) -> None:
        self.wire = Socket()
        accepting = broker.server.listeners[listener]
        self.connection = ServerConnection(accepting)
        self.protocol: Any = self.connection if door is None else door.accepted(lambda: self.connection)
        self.protocol.connection_made(self.wire)

    def send(self, data: bytes) -> None:
        """Delivers bytes as long as the broker reads any."""
        while data and not self.wire.closing:
            room = self.protocol.get_buffer(-1)
            count = min(len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            self.protocol.buffer_updated(count)

    async def answer(self) -> bytes:
        """Returns the broker's bytes so far; empty if it waits for more."""
        for _ in range(TURNS):
            if self.wire.sent or self.wire.closing:
                break
            await asyncio.sleep(0)
        answer = bytes(self.wire.sent)
        self.wire.sent.clear()
        return answer

    def leave(self) -> None:
        self.protocol.connection_lost(None)


class Outcome(NamedTuple):
    """The outcome of a run."""

    seed: int
    visits: int
    counts: Counter[str]
    problems: list[str]

    def line(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        return f"seed {self.seed}: {self.visits} visits: {counts}; {len(self.problems)} problems"


class Doors:
    """A broker's listeners, and the log lines about their connections."""

    def __init__(
        self, broker: InProcess, authority: Authority, stopwatch: Stopwatch, large: LargeFrames | None = None
    ) -> None:
        self.broker = broker
        self.stopwatch = stopwatch
        self.large = large
        """The large requests of unauthenticated clients; None if they send none."""
        live, clock = broker.server.broker.live_config, SystemClock()
        self._doors = {
            BARE: None,
            SECURE: TlsDoor(live, "SECURE", clock, names=False),
            MUTUAL: TlsDoor(live, "MUTUAL", clock, names=True),
        }
        self.trusting = ssl.create_default_context(cafile=str(authority.certificate))
        self._certified = ssl.create_default_context(cafile=str(authority.certificate))
        self._certified.load_cert_chain(authority.directory / "alice.pem")
        self.counts: Counter[str] = Counter()
        self.abandoned: list[Visitor] = []

    def steps(self, rng: random.Random) -> tuple[int, Script, Steps]:
        """Draws a listener, and the steps of a client."""
        listener = rng.choices((BARE, SECURE, MUTUAL), (70, 20, 10))[0]
        script = rng.choice(SCRIPTS if listener == BARE else TLS_SCRIPTS)
        context = self._certified if listener == MUTUAL and rng.random() < 0.5 else self.trusting
        return listener, script, script.begin(rng, context, has_sasl=listener != MUTUAL)

    async def visit(self, rng: random.Random) -> str | None:
        """Makes one visit, and returns the problems with its outcome."""
        listener, script, steps = self.steps(rng)
        visitor = Visitor(self.broker, listener, self._doors[listener])
        broken, stops = rng.randrange(script.length), rng.random() < 0.1
        delivered = meant = b""
        data, at = next(steps), 0
        while True:
            sent = self.broken(rng, data, script) if at == broken and not stops else data
            delivered, meant = delivered + sent, meant + data
            self.deliver(visitor, sent, rng)
            answer = await visitor.answer()
            if visitor.wire.closing or (stops and at == broken):
                break
            try:
                data, at = steps.send(answer), at + 1
            except (StopIteration, ssl.SSLError):
                break
        problem = self.judge(visitor, script, delivered, meant)
        self.part(visitor, rng)
        return problem

    def broken(self, rng: random.Random, data: bytes, script: Script) -> bytes:
        """Returns the bytes that are sent instead of a step: a large request, or damaged bytes."""
        if self.large is not None and not script.is_secured and rng.random() < 0.8:
            self.counts["large requests"] += 1
            request = self.large.draw(rng)
            self.stopwatch.start()
            return request
        return garble(rng, data)

    def deliver(self, visitor: Visitor, data: bytes, rng: random.Random) -> None:
        """Delivers bytes whole, or in pieces."""
        if rng.random() < 0.8 or len(data) > 2_000:
            visitor.send(data)
            return
        while data:
            size = rng.randint(1, 40)
            visitor.send(data[:size])
            data = data[size:]

    def judge(self, visitor: Visitor, script: Script, delivered: bytes, meant: bytes) -> str | None:
        """Checks that no client is authenticated without its proof."""
        principal = visitor.connection.principal
        if principal == ANONYMOUS:
            self.counts["refused" if visitor.wire.closing else "left outside"] += 1
            return None
        self.counts["let in"] += 1
        if principal.name not in ("alice", "CN=alice"):
            return f"{script.name}: somebody is {principal}"
        if not script.proves(delivered, meant):
            return f"{script.name}: {principal} is let in without a proof"
        return None

    def part(self, visitor: Visitor, rng: random.Random) -> None:
        """Closes most connections; leaves some open, without sending more."""
        if rng.random() < 0.02 and not visitor.wire.closing:
            self.abandoned.append(visitor)
        else:
            visitor.leave()
        for one in [one for one in self.abandoned if one.wire.closing]:
            one.leave()
            self.abandoned.remove(one)
            self.counts["cut off"] += 1

    async def emptied(self) -> list[str]:
        """Waits until all unauthenticated connections are closed, and returns those that remain."""
        for one in [one for one in self.abandoned if one.connection.principal != ANONYMOUS]:
            one.leave()
            self.abandoned.remove(one)
        try:
            async with asyncio.timeout(LONG_S):
                while not all(one.wire.closing for one in self.abandoned):  # noqa: ASYNC110 (nothing tells)
                    await asyncio.sleep(AUTHENTICATION_MS / 20_000)
        except TimeoutError:
            return [f"{len(self.abandoned)} half-open connections are not closed in time"]
        for one in self.abandoned:
            one.leave()
        self.counts["cut off"] += len(self.abandoned)
        self.abandoned.clear()
        for size_bytes in (0, MOST_BYTES):  # a thread may still encode the answer to a client that is gone
            await self.broker.server.broker.codec_threads.of(size_bytes).call(lambda: None)
        left = sum(len(listener.connections) for listener in self.broker.server.listeners)
        return [f"{left} connections are left"] if left else []


@asynccontextmanager
async def doors(
    folder: Path, heard: list[str], stopwatch: Stopwatch, large: LargeFrames | None = None
) -> AsyncIterator[Doors]:
    """Yields a broker whose errors are collected."""
    authority = Authority(folder)
    options = {
        **OPTIONS,
        "ssl.keystore.location": str(authority.issue("broker")),
        "ssl.truststore.location": str(authority.certificate),
    }
    authority.issue("alice", "/CN=alice")
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(f"the loop: {context}"))
    async with InProcess(folder / "data", options) as broker:
        add_user(broker.server, "alice", "alice-secret")
        yield Doors(broker, authority, stopwatch, large)


class Counted(NamedTuple):
    """The objects and open files of this process."""

    own: int
    """Number of objects of connections."""
    every: int
    """Number of all objects."""
    open_files: Counter[str]
    """The open files by kind or name, without the files of the broker, which its threads open at any time."""


def objects(folder: Path) -> Counted:
    """Counts objects and open files. `folder` has the files of the broker."""
    gc.collect()
    every = gc.get_objects()
    own = sum(isinstance(one, OF_CONNECTIONS) for one in every)
    targets = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    open_files = (target for target in targets if not target.startswith(f"{folder}/"))
    return Counted(own, len(every), Counter(OF_KERNEL.sub("", Path(target).name) for target in open_files))


async def run(
    seed: int, visits: int, folder: Path, only: int | None = None, large: LargeFrames | None = None
) -> Outcome:
    """Makes the visits of a seed, or one of them."""
    problems: list[str] = []
    listening = log_lines(lambda line: problems.extend(f"{line.event}: {line.fields}" for line in errors([line])))
    with listening, Stopwatch().running() as stopwatch:
        async with doors(folder, problems, stopwatch, large) as made:
            numbers = range(visits) if only is None else range(only, only + 1)
            before = Counted(0, 0, Counter())
            for at, number in enumerate(numbers):
                if at == min(WARM_VISITS, visits // 2):
                    problems += await made.emptied()
                    before = objects(folder)
                heard = len(problems)
                stopwatch.start()
                if (problem := await made.visit(random.Random(f"{seed}/{number}"))) is not None:
                    problems.append(problem)
                stopwatch.stop()
                if large is not None and stopwatch.callback_s > LONGEST_CALLBACK_S:
                    problems.append(f"a callback held the loop for {stopwatch.callback_s:.3f} s")
                problems[heard:] = [f"visit {number}: {problem}" for problem in problems[heard:]]
            problems += await made.emptied()
            problems += grown(before, objects(folder), FEW_OBJECTS if large is None else MORE_OBJECTS)
            problems += await let_in(made)
            return Outcome(seed, len(numbers), made.counts, problems)


def grown(before: Counted, after: Counted, most: int) -> list[str]:
    """Returns the objects that remain of ended visits."""
    problems = []
    if after.own > before.own:
        problems.append(f"{after.own - before.own} more objects of connections")
    if after.every > before.every + most:
        problems.append(f"{after.every - before.every} more objects")
    if after.open_files.total() > before.open_files.total():
        problems.append(f"more open files: {dict(after.open_files - before.open_files)}")
    return problems


async def let_in(made: Doors) -> list[str]:
    """Checks that a client with the right password is authenticated afterwards, and gets an answer."""
    visitor = Visitor(made.broker, BARE, None)
    (script,) = (one for one in SCRIPTS if one.name == "PLAIN in frames")
    steps = script.begin(random.Random(0), made.trusting, has_sasl=True)
    message = next(steps, b"")
    while message:
        visitor.send(message)
        answer = await visitor.answer()
        try:
            message = steps.send(answer)
        except StopIteration:
            break
    visitor.send(request_bytes(MetadataRequest(topics=[]), 12))
    answer = await visitor.answer()
    visitor.leave()
    if not answer or not decode_response(answer[4:], 3, 12, MetadataResponse).brokers:
        return ["who has the right password is not let in any more"]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.strangers", description=__doc__)
    parser.add_argument("seeds", nargs="?", default="0", help="one seed, or a range of them: 17, 0-9")
    parser.add_argument("--visits", type=int, default=100_000, help="for each seed")
    parser.add_argument("--only", type=int, help="replay this visit alone")
    parser.add_argument("--large", action="store_true", help="most send a request of 20,000 to 200,000 entries")
    options = parser.parse_args()
    large = LargeFrames() if options.large else None
    failed = 0
    for seed in parse_seeds(options.seeds):
        with tempfile.TemporaryDirectory() as folder:
            outcome = asyncio.run(run(seed, options.visits, Path(folder), options.only, large))
        print(outcome.line(), *outcome.problems[:20], sep="\n  ", flush=True)
        failed += bool(outcome.problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
