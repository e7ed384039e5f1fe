"""Sequences of a quorum as transcripts: each command is followed by what the nodes do. `WRITE=1` writes them anew.

A line has a node and its new role, a request to another node, a write, or a new high watermark; Fetch is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.cluster.quorum_state import QuorumState
from coordinator.quorum.leadership import Location
from coordinator.quorum.raft import Raft
from coordinator.quorum.ready import AppendBatches, LocalReplica, ReadRecords, Ready, RecoveredLog, Send, TruncateTo
from coordinator.quorum.voter_set import VoterSet
from protocol.errors import error_code
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.messages.vote import VoteRequest
from protocol.records.building import build
from protocol.records.record import Record
from tests.coordinator.quorum.rafts import CLUSTER, CONFIG, LISTENER, directory, formatted, key, voter
from tests.simulation.quorum_disk import QuorumDisk

FOLDER = Path(__file__).parent / "transcripts"


class Transcript:
    """Three voters with a network that takes no time; node n draws random numbers that make it the n-th to act."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now_ms = 0
        self._cut: set[int] = set()
        self._disks = {node_id: QuorumDisk(directory(node_id)) for node_id in (1, 2, 3)}
        self._rafts = {node_id: self._raft(node_id) for node_id in (1, 2, 3)}
        self._senders: dict[tuple[int, int], Send] = {}
        self._ticket = 0
        for node_id in self._rafts:
            self._carry_out(node_id)

    def _raft(self, node_id: int) -> Raft:
        def draws(n: int) -> int:
            return min(100 * (node_id - 1), n - 1)

        replica = LocalReplica(CLUSTER, key(node_id), voter(node_id).endpoints, LISTENER, True)
        log = formatted((1, 2, 3), RecoveredLog())
        addresses = [Location(f"n{other}", 9093) for other in (1, 2, 3)]
        return Raft(replica, CONFIG, log, QuorumState(), VoterSet(), addresses, draws, lambda: 0, 0)

    def run(self, command: str) -> None:
        """Runs a command: pass MS, cut NODE, join NODE, propose NODE, remove NODE of LEADER."""
        verb, *words = command.split()
        numbers = [int(word) for word in words if word.isdecimal()]
        if verb == "pass":
            self._pass(numbers[0])
        elif verb in ("cut", "join"):
            self._cut ^= {numbers[0]}
        elif verb == "propose":
            self._rafts[numbers[0]].propose(build([Record(0, 0, None, b"value")]), self.now_ms)
            self._carry_out(numbers[0])
        else:
            removed, leader = numbers
            request = RemoveRaftVoterRequest(
                cluster_id=CLUSTER, voter_id=removed, voter_directory_id=directory(removed)
            )
            self._rafts[leader].request(request, 0, LISTENER, 0, self.now_ms)
            self._carry_out(leader)

    def _pass(self, duration_ms: int) -> None:
        until_ms = self.now_ms + duration_ms
        while True:
            due_ms, node_id = min((raft.deadline_ms, node_id) for node_id, raft in self._rafts.items())
            if due_ms > until_ms:
                break
            self.now_ms = max(self.now_ms, due_ms)
            self._rafts[node_id].tick(self.now_ms)
            self._carry_out(node_id)
        self.now_ms = until_ms

    def _carry_out(self, node_id: int) -> None:
        ready, disk = self._rafts[node_id].ready(), self._disks[node_id]
        self.lines += [f"{self.now_ms:5} {node_id} {line}" for line in described(ready)]
        for write in ready.writes:
            if isinstance(write, AppendBatches):
                disk.append(write)
            elif isinstance(write, TruncateTo):
                disk.truncate(write.offset)
        for reply in ready.replies:
            if isinstance(reply.read, ReadRecords) and isinstance(reply.response, FetchResponse):
                reply.response.responses[0].partitions[0].records = disk.read(reply.read.offset, reply.read.max_bytes)
            send = self._senders.pop((node_id, reply.ticket), None)
            if send is None:
                code = getattr(reply.response, "error_code", 0)
                self.lines.append(f"{self.now_ms:5} {node_id} answers {error_code(code).name}")
            elif not self._cut & {node_id, send.node_id}:
                sender = reply.ticket % 10
                self._rafts[sender].response(send.correlation_id, reply.response, self.now_ms)
                self._carry_out(sender)
        for send in ready.sends:
            self._deliver(node_id, send)
        if ready.flush is not None:
            self._rafts[node_id].flushed(ready.flush, self.now_ms)
            self._carry_out(node_id)

    def _deliver(self, node_id: int, send: Send) -> None:
        receiver = int(send.destination.host[1:])
        if self._cut & {node_id, receiver}:
            return
        self._ticket += 10
        ticket = self._ticket + node_id
        self._senders[receiver, ticket] = send
        version = 18 if isinstance(send.request, FetchRequest) else 1
        self._rafts[receiver].request(send.request, version, LISTENER, ticket, self.now_ms)  # type: ignore[arg-type]
        self._carry_out(receiver)


def described(ready: Ready) -> Iterator[str]:
    """Yields the lines of what a node does."""
    for write in ready.writes:
        if isinstance(write, AppendBatches):
            names = [type(control.record).__name__ for control in write.control]
            yield f"appends {write.base_offset}-{write.next_offset - 1} {' '.join(names)}".rstrip()
        elif isinstance(write, TruncateTo):
            yield f"truncates to {write.offset}"
    if ready.quorum_state is not None:
        state = ready.quorum_state
        yield f"stores epoch {state.leader_epoch}, leader {state.leader_id}, vote {state.voted_id}"
    if ready.leader is not None:
        yield f"is {ready.leader.role.value} in epoch {ready.leader.epoch}"
    if ready.high_watermark is not None:
        yield f"commits {ready.high_watermark}"
    for send in ready.sends:
        if not isinstance(send.request, FetchRequest):
            pre = isinstance(send.request, VoteRequest) and send.request.topics[0].partitions[0].pre_vote
            yield f"sends {type(send.request).__name__}{' (pre-vote)' if pre else ''} to {send.node_id}"
    yield from (f"reports: {problem}" for problem in ready.problems)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_a_sequence_is_as_in_its_transcript(path: Path) -> None:
    expected = path.read_text()
    transcript = Transcript()
    out = [line for line in expected.splitlines() if line.startswith("#")]
    for command in (line[2:] for line in expected.splitlines() if line.startswith("> ")):
        transcript.lines.clear()
        transcript.run(command)
        out += [f"> {command}", *transcript.lines]
    text = "\n".join(out) + "\n"
    if os.environ.get("WRITE"):
        path.write_text(text)
    assert text == expected
