"""Interleaved rounds: every peer in turn, forward and backward, so that other work of the machine affects all alike.

A peer may leave work behind, such as pages that the kernel must still write. By alternating the direction, each peer
comes after each of its neighbours as often as before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench import pages, warmth
from bench.figures import cpu_figure
from bench.load import Load, Method
from bench.peers.peer import PeerProcess, Unavailable
from bench.results import PeerResult
from bench.trial import TOPICS_LEFT, Trial


def reason_of(error: Exception) -> str:
    return str(error) if isinstance(error, Unavailable) else f"{type(error).__name__}: {error}"


def in_turns(names: Sequence[str], number: int) -> Sequence[str]:
    """Returns the order of the peers in a round; rounds are counted from 0."""
    return names if number % 2 == 0 else names[::-1]


class InterleavedRounds:
    """The rounds of one load. If a peer fails, its row has the reason, and the others continue."""

    def __init__(self, load: Load, peers: Iterable[type[PeerProcess]], work: Path, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._load = load
        self._cost = cpu_figure(load.figures)
        self._trials = {peer.name: Trial(peer(work), load, work) for peer in peers}
        self._rows = {name: PeerResult(trial.peer.title, []) for name, trial in self._trials.items()}

    def run(self, rounds: int, *, warm_up: bool) -> Mapping[str, PeerResult]:
        """Starts all peers, warms each until its cost has stopped falling, measures `rounds` rounds, and stops all."""
        written_bytes = self._load.size_bytes * len(self._trials) * (TOPICS_LEFT + 1)
        with ExitStack() as stack:
            stack.enter_context(pages.backed(2 * written_bytes))  # the brokers and clients need memory as well
            for name, trial in self._trials.items():
                stack.callback(trial.close)
                self._try(name, "start", trial.open)
            if warm_up and self._load.method is not Method.START_UP:  # starts are measured cold
                self._warm_up()
            for number in range(max(rounds, self._load.rounds_at_least)):
                for name in in_turns(tuple(self._trials), number):
                    self._try(name, f"round {number + 1}", partial(self._count, name, number))
        return self._rows

    def _warm_up(self) -> None:
        """Warms the peers up. A warm peer rests while the others continue; no round is measured before all are warm."""
        for number in range(1, self._load.warm_up_at_most + 1):
            cold = [name for name, row in self._rows.items() if row.reason is None and self._needs_more(row)]
            for name in cold:
                self._try(name, f"warm-up {number}", partial(self._warm, name, -number))

    def _needs_more(self, row: PeerResult) -> bool:
        if self._cost is None:
            return not row.warm_up
        return warmth.needs_more([sample[self._cost] for sample in row.warm_up])

    def _warm(self, name: str, number: int) -> None:
        row = self._rows[name]
        self._rows[name] = row._replace(warm_up=(*row.warm_up, self._trials[name].measure(number)))

    def _count(self, name: str, number: int) -> None:
        self._rows[name].samples.append(self._trials[name].measure(number))

    def _try(self, name: str, step: str, action: Callable[[], None]) -> None:
        if self._rows[name].reason is not None:
            return
        self._tell(f"{self._load.name}: {name}: {step}")
        try:
            action()
        except Exception as error:
            self._rows[name] = self._rows[name]._replace(
                reason=reason_of(error), failed=not isinstance(error, Unavailable)
            )
