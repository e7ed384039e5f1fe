"""One run: a broker, its world, a well-behaved client, and the visits of a seed; then the final checks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import uvloop

from broker.config.authorization import STANDARD_AUTHORIZER
from protocol.acl import ALL_OPERATIONS, CLUSTER_NAME, PatternType, Permission, Resource
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest
from tests.fuzz.corpus import Corpus
from tests.fuzz.plan import FRAMES_OF_A_VISIT, Plan, Visit
from tests.fuzz.sending import Sender
from tests.fuzz.vocabulary import Vocabulary
from tests.fuzz.watching import Log, descriptors, resident_mb
from tests.fuzz.world import FuzzWorld
from tests.interop.brokers import Odradek
from tests.interop.conformance.peers import Peer
from tests.interop.processes import LineClient

PROPERTIES: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "log.cleaner.backoff.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
LARGE_PROPERTIES: Final = {"auto.create.topics.enable": "false"}
RIGHTS_BY_ADDRESS: Final = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "allow.everyone.if.no.acl.found": "true",
}
"""The authorizer allows everything until `rights_of` gives one address all rights; other addresses then have none."""

OWN_HOST: Final = "127.0.0.1"
CHAPTER: Final = 5000
"""Number of frames after which the log is checked, and the changes of fuzzing to the world are undone."""

WARM_UP_S: Final = 4
SETTLE_S: Final = 3
BEHAVES_S: Final = 20
MEMORY_MB: Final = 400
"""Memory by which a run may grow: groups, topics and producers of its requests, and the allocator's overhead."""

SHOWN_VISITS: Final = 8
PEER: Final = "odradek"


@dataclass
class Outcome:
    """The outcome of a run."""

    seed: int
    frames: int = 0
    answers: int = 0
    seconds: float = 0
    problems: list[str] = field(default_factory=list)
    suspects: list[int] = field(default_factory=list)
    """The visits that may have caused a problem."""

    sent: Counter[tuple[int, int]] = field(default_factory=Counter)
    notes: dict[str, str] = field(default_factory=dict)

    def line(self) -> str:
        rate = self.frames / max(self.seconds, 0.001)
        notes = ", ".join(f"{name} {value}" for name, value in self.notes.items())
        return (
            f"seed {self.seed}: {self.frames} frames in {self.seconds:.0f} s ({rate:.0f}/s), {self.answers} answers, "
            f"{notes}: {'well' if not self.problems else f'{len(self.problems)} problems'}"
        )


def world_name(chapter: int) -> str:
    """Returns the name of a chapter's world, which a mutation of another chapter's name must not equal, because
    requests for topics create them."""
    return f"f{zlib.crc32(b'%d' % chapter):08x}"


def rights_of(host: str) -> CreateAclsRequest:
    """Gives all rights to the clients at one address. Clients at other addresses lose their rights."""
    names = {Resource.CLUSTER: CLUSTER_NAME}
    return CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=resource,
                resource_name=names.get(resource, "*"),
                resource_pattern_type=PatternType.LITERAL,
                principal="User:*",
                host=host,
                operation=ALL_OPERATIONS,
                permission_type=Permission.ALLOW,
            )
            for resource in Resource
        ]
    )


class Run:
    """The run of a seed. `only` replays some of its visits."""

    def __init__(
        self, seed: int, frames: int, folder: Path, corpus: Corpus, *, only: Sequence[int] = (), beside: bool = True,
        command: Sequence[str] = (), goes_on: bool = False, rate: float = 0, are_large: bool = False,
        has_rights: bool = True,
    ) -> None:  # fmt: skip
        """`are_large` and `has_rights` describe the frames and their sender."""
        self.frames = frames
        self.goes_on = goes_on
        self.rate = rate
        self.only = only
        self.are_large = are_large
        self.has_rights = has_rights
        self.plan = Plan(seed, corpus, are_large=are_large)
        properties = {
            **PROPERTIES,
            **(LARGE_PROPERTIES if are_large else {}),
            **({} if has_rights else RIGHTS_BY_ADDRESS),
        }
        self.broker = Fuzzed(folder / "data", properties, command)
        self.folder = folder
        self.has_beside = beside
        self.outcome = Outcome(seed)

    def __call__(self) -> Outcome:
        self.broker.start()
        try:
            self.go()
        except Exception as error:
            self.outcome.problems.append(f"{error!r}\n{self.broker.tail(6000)}")
        finally:
            self.broker.forget()
        return self.outcome

    def go(self) -> None:
        self.log = Log(self.broker.log)
        self.sender = Sender(self.broker.bootstrap, self.rate, are_large=self.are_large, has_rights=self.has_rights)
        self.peer = Peer(PEER, self.broker.bootstrap, self.broker.data)
        if not self.has_rights:
            self.peer.ask(rights_of(OWN_HOST), 3, CreateAclsResponse)
        self.world = FuzzWorld(self.peer, world_name(0))
        self.chapter = 0
        client = self.start_beside() if self.has_beside else None
        if client is not None and self.rate:
            uvloop.run(self.behave())
            self.outcome.notes[f"p99 beside {self.rate:.0f} frames/s that behave"] = self.p99(client)
        before_mb = resident_mb(self.broker.pid)
        began = time.monotonic()
        try:
            uvloop.run(self.send())
        finally:
            self.outcome.seconds = time.monotonic() - began
            self.outcome.frames, self.outcome.answers = self.sender.frames, self.sender.answers
            self.outcome.sent = self.sender.answered
        self.peer.close()
        if client is not None and self.broker.is_running:
            self.outcome.notes["p99 under it"] = self.p99(client)
            self.outcome.problems += [f"beside: {line}" for line in client.ask("finish", timeout_s=200)]
        self.look_after(before_mb)
        self.stop_and_verify(client)
        if client is not None:
            client.close()

    def start_beside(self) -> LineClient:
        command = [sys.executable, "-m", "tests.fuzz.beside", self.broker.bootstrap]
        client = LineClient("beside", command, self.folder / "beside.log")
        client.ask("start")
        time.sleep(WARM_UP_S)  # its own pace is what is measured
        client.ask("lap")
        time.sleep(WARM_UP_S)  # and the lap that is measured
        self.outcome.notes["p99 alone"] = self.p99(client)
        return client

    def p99(self, client: LineClient) -> str:
        _, _, last = client.ask("lap")[0].split()
        return f"{last} ms"

    # Sending.

    async def behave(self) -> None:
        """Sends requests of well-behaved clients, as many as fuzzing will send."""
        sender = Sender(self.broker.bootstrap, self.rate)
        vocabulary = await asyncio.to_thread(self.next_world)
        count = int(self.rate * BEHAVES_S) // FRAMES_OF_A_VISIT[-1]
        await sender.send_all(self.plan.behaved(number, vocabulary) for number in range(count))

    async def send(self) -> None:
        numbers = iter(self.only) if self.only else iter(range(1 << 62))
        while self.sender.frames < self.frames and self.broker.is_running:
            if self.outcome.problems and not self.goes_on:
                return
            vocabulary = await asyncio.to_thread(self.next_world)
            begin = self.sender.frames
            visits = self.visits(numbers, vocabulary, begin + min(CHAPTER, self.frames - begin))
            await self.sender.send_all(visits)
            self.look()
            if self.sender.frames == begin:
                return  # all that was to be replayed

    def next_world(self) -> Vocabulary:
        """Builds a new world, and removes the last one."""
        for name in self.world.names():
            self.peer.quietly(DeleteTopicsRequest(topic_names=[name], timeout_ms=5000), 5)
        self.chapter += 1
        self.world = FuzzWorld(self.peer, world_name(self.chapter))
        return self.world.build()

    def visits(self, numbers: Iterator[int], vocabulary: Vocabulary, most: int) -> Iterator[Visit]:
        while self.sender.frames < most:
            number = next(numbers, None)
            if number is None:
                return
            yield self.plan.visit(number, vocabulary)

    # Looking.

    def look(self) -> None:
        for trouble in self.log.troubles():
            visit = None if trouble.port is None else self.sender.visit_of(trouble.port)
            shown = "" if visit is None else f"\n{visit.shown()}"
            self.outcome.problems.append(f"{trouble.text}{shown}")
            if visit is not None:
                self.outcome.suspects.append(visit.number)
        self.outcome.problems += self.sender.wrong
        self.sender.wrong.clear()
        if not self.broker.is_running:
            last = "\n".join(visit.shown(3) for _, visit in list(self.sender.recent)[-SHOWN_VISITS:])
            self.outcome.problems.append(f"the broker has ended\n{self.broker.tail(4000)}\n{last}")
            self.outcome.suspects += [visit.number for _, visit in list(self.sender.recent)[-100:]]

    def look_after(self, before_mb: int) -> None:
        """Checks the broker after all connections are closed."""
        if not self.broker.is_running:
            return
        time.sleep(SETTLE_S)  # memory is given back some seconds later, which nothing tells from outside
        self.look()
        after_mb = resident_mb(self.broker.pid)
        self.outcome.notes["memory"] = f"{before_mb} → {after_mb} MB"
        self.outcome.notes["descriptors"] = str(descriptors(self.broker.pid))
        if after_mb > before_mb + MEMORY_MB:
            self.outcome.problems.append(f"{after_mb} MB of memory are in use, {before_mb} before")

    def stop_and_verify(self, client: LineClient | None) -> None:
        if not self.broker.is_running:
            return
        status = self.broker.stop()
        if status:
            self.outcome.problems.append(f"the broker ended with status {status}")
        self.look_at_end()
        checked = subprocess.run(
            [Odradek.program, "log", "verify", str(self.broker.data)], capture_output=True, check=False
        )
        if checked.returncode:
            output = (checked.stdout + checked.stderr).decode(errors="replace")
            self.outcome.problems.append(f"odradek log verify: {output[-3000:]}")
        self.broker.start()
        if client is not None:
            self.outcome.problems += [f"after a restart: {line}" for line in client.ask("kept", timeout_s=200)]
        self.broker.stop()
        self.look_at_end()

    def look_at_end(self) -> None:
        self.outcome.problems += [trouble.text for trouble in self.log.troubles()]


class Fuzzed(Odradek):
    """A broker whose command can be replaced, to measure its coverage."""

    def __init__(self, data: Path, properties: dict[str, str], command: Sequence[str]) -> None:
        super().__init__(data, properties)
        self._by = list(command)

    def command(self) -> list[str]:
        words = super().command()
        return [*self._by, *words[1:]] if self._by else words
