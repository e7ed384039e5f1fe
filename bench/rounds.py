"""Interleaved rounds: every peer in turn, again and again, so that what the machine does meanwhile hits all alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.figures import Sample
from bench.load import Load
from bench.peers.peer import Peer, Unavailable
from bench.results import Row
from bench.trial import Trial

WARM_UP = -1


def reason_of(error: Exception) -> str:
    return str(error) if isinstance(error, Unavailable) else f"{type(error).__name__}: {error}"


def record(samples: list[Sample], trial: Trial, number: int) -> None:
    samples.append(trial.measure(number))


class Rounds:
    """The rounds of one load. A peer that fails is a row of the report, and the others go on without it."""

    def __init__(self, load: Load, peers: Iterable[type[Peer]], work: Path, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._load = load
        self._trials = {peer.name: Trial(peer(work), load, work) for peer in peers}
        self._rows = {name: Row(trial.peer.title, []) for name, trial in self._trials.items()}

    def run(self, rounds: int, *, warm_up: bool) -> Mapping[str, Row]:
        """Start all peers, measure `rounds` rounds after one that does not count, stop all peers."""
        with ExitStack() as stack:
            for name, trial in self._trials.items():
                stack.callback(trial.close)
                self._try(name, "start", trial.open)
            for number in range(WARM_UP if warm_up else 0, max(rounds, self._load.rounds_at_least)):
                self._round(number)
        return self._rows

    def _round(self, number: int) -> None:
        for name, trial in self._trials.items():
            row = self._rows[name]
            if row.reason is None:
                samples = row.samples if number >= 0 else []
                step = f"round {number + 1}" if number >= 0 else "warm-up"
                self._try(name, step, partial(record, samples, trial, number))

    def _try(self, name: str, step: str, action: Callable[[], None]) -> None:
        self._tell(f"{self._load.name}: {name}: {step}")
        try:
            action()
        except Exception as error:
            self._rows[name] = self._rows[name]._replace(
                reason=reason_of(error), failed=not isinstance(error, Unavailable)
            )
